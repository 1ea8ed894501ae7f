"""Agents that work for a call: how one lives inside its parent's call, and which are known (R9).

Opening their sessions is the runtime's; what is asked of them is for tools and policies.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from trioloop.agent.agent import Agent
from trioloop.errors import UnknownSessionError
from trioloop.events import AgentDelegated, Event
from trioloop.handles import SessionHandle
from trioloop.ids import SessionId, session_id
from trioloop.log.folding import Fold
from trioloop.tools.context import ToolContext

PARENT_ENDED = "parent"


def _with_child(children: frozenset[str], event: Event) -> frozenset[str]:
    data = event.data
    return children | {data.child} if isinstance(data, AgentDelegated) else children


CHILDREN: Fold[frozenset[str]] = Fold(frozenset, _with_child)
"""The names of the sessions that a session has delegated work to."""


def known_child(parent: SessionHandle, name: str) -> SessionId:
    """The session of a child.

    Raises:
        UnknownSessionError: the parent has none of that name.
    """
    if name not in parent.folded(CHILDREN):
        raise UnknownSessionError(f"{parent.name!r} has delegated nothing to {name!r}")
    return session_id(name)


@asynccontextmanager
async def working_for(
    context: ToolContext, open_child: Callable[[], Awaitable[Agent]]
) -> AsyncIterator[Agent]:
    """A child for as long as the block is open, named in its parent's log.

    Left by a cancel, its disposal goes on in the call's nursery, which waits for it.
    """
    child = await open_child()
    try:
        context.append(AgentDelegated(context.call, child.name))
        yield child
    finally:
        over = child.begin_disposal(PARENT_ENDED)
        await over.wait()  # noqa: ASYNC102 - cut short, the nursery waits for the rest
