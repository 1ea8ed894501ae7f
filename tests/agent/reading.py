"""What tests of the loop read in a log, and waits that a cancel may come too late for."""

from collections.abc import Sequence
from typing import TypeVar

import trio

from trioloop.agent.agent import Agent
from trioloop.events import EventData, InboxSpliced, TurnEnded, UserMessageLogged
from trioloop.log.rebuild import Request
from trioloop.messages import AssistantMessage, SystemMessage, ToolResultMessage, text_of

DataT = TypeVar("DataT", bound=EventData)


def status(agent: Agent) -> str:
    """An agent's status, in a form that type checkers don't hold on to."""
    return agent.status


def types(agent: Agent, after: int = -1) -> list[str]:
    """The types of an agent's events, but for the first and what the inbox was told."""
    return [
        event.type
        for event in agent.session.events(after)
        if event.type not in ("session/opened", "agent/inbox/spliced")
    ]


def facts(agent: Agent, kind: type[DataT]) -> list[DataT]:
    """All facts of one class in an agent's log."""
    return [event.data for event in agent.session.events() if isinstance(event.data, kind)]


def ends(agent: Agent) -> list[TurnEnded]:
    """How each turn of an agent ended."""
    return facts(agent, TurnEnded)


def reasons(agent: Agent) -> list[str]:
    """Why each turn of an agent ended, in a word."""
    return [end.reason for end in ends(agent)]


def splices(agent: Agent) -> list[InboxSpliced]:
    """All changes of an agent's inbox."""
    return facts(agent, InboxSpliced)


def admitted(agent: Agent) -> list[str]:
    """The texts of the user messages in an agent's history, in order."""
    return [text_of(fact.message.content) for fact in facts(agent, UserMessageLogged)]


def pending(agent: Agent) -> list[str]:
    """The texts of an agent's pending messages, those of the next step first."""
    inbox = agent.session.state.inbox
    return [text_of(one.message.content) for one in inbox]


def said(request: Request) -> list[str]:
    """The messages of a request, in order, each as its text with a letter for who says it."""
    return [_line(message) for message in request.messages]


def _line(message: object) -> str:
    if isinstance(message, SystemMessage):
        return f"S {message.text}"
    if isinstance(message, AssistantMessage):
        return f"A {message.text}"
    letter = "T" if isinstance(message, ToolResultMessage) else "U"
    return f"{letter} {text_of(getattr(message, 'content'))}"  # noqa: B009 - one of two classes


def heads(request: Request) -> Sequence[str]:
    """The system prompt of a request."""
    return [message.text for message in request.system]


async def pass_waits() -> None:
    """Pass two waits; the second hands over a value, so that a cancel can come too late for it.

    A task that was handed what it waits for goes on, even if it is cancelled before it does.
    """
    await trio.lowlevel.checkpoint()
    handed = trio.Event()
    trio.lowlevel.current_trio_token().run_sync_soon(handed.set)
    await handed.wait()
