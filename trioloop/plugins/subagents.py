"""Delegating: tools that give a task to an agent of its own, and its answer as their result.

A child is an agent of the same runtime that works inside its parent's call, so that whatever ends
the call ends the child (R9). Budgets of trees, which children share with their parents, are those
of `limits`.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager

import attrs
import msgspec

from trioloop import (
    Agent,
    AgentHandle,
    CallConfig,
    CallId,
    Event,
    EventData,
    Fold,
    InvalidInputError,
    Runtime,
    Settled,
    Tool,
    ToolContext,
    ToolError,
    ToolOutcome,
    UnknownSessionError,
    Usage,
    event,
    messages,
    tool,
)
from trioloop.plugins.options import (
    field,
    instance,
    or_none,
    positive,
    text,
    tools,
    whole,
)

DESCRIPTION = """\
Give a task to another agent, and wait for its answer. It knows nothing but what the task tells it.
Several can work at once: make several calls in one answer."""


@attrs.frozen(kw_only=True)
class Delegate:
    """A kind of child, with the tool that gives it tasks.

    Attributes:
        name: of the tool.
        description: of the tool, for the model.
        system: a section of the child's prompt, beside the runtime's; None: none.
        tools: of the child alone, beside the runtime's.
        config: the settings of its requests; None: the model and settings of its parent's last.
        timeout_s: seconds that a task may take; None: as long as it takes.

    Raises:
        InvalidInputError: one of them isn't what it must be.
    """

    name: str = "delegate"
    description: str = attrs.field(default=DESCRIPTION, validator=field(text))
    system: str | None = attrs.field(default=None, validator=field(or_none(text)))
    tools: Sequence[Tool] = attrs.field(default=(), validator=field(tools))
    config: CallConfig | None = None
    timeout_s: float | None = attrs.field(default=None, validator=field(or_none(positive)))


@event("subagents/opened", ignorable=True)
class ChildOpened(EventData):
    """This session is that of a child. The first event of its own, in the child's log.

    Attributes:
        call: the parent's call that it was made for.
        tool: the tool that was called.
        depth: how many delegations lead to it, 1 or more.
    """

    call: CallId
    tool: str
    depth: int


@event("subagents/settled", ignorable=True)
class ChildSettled(EventData):
    """A child is through with a task, in its parent's log.

    Attributes:
        call: the parent's call.
        child: the child's session.
        turn: the last turn that it took there.
        reason: why that ended.
        code: the code of a block or an error.
        usage: tokens of the task.
    """

    call: CallId
    child: str
    turn: int
    reason: str
    code: str | None
    usage: Usage


def _opened(known: ChildOpened | None, event: Event) -> ChildOpened | None:
    return event.data if isinstance(event.data, ChildOpened) else known


ORIGIN: Fold[ChildOpened | None] = Fold(lambda: None, _opened)
"""What made a session's agent a child; None: it is none."""


def _depth(agent: AgentHandle) -> int:
    origin = agent.session.folded(ORIGIN)
    return 0 if origin is None else origin.depth


@asynccontextmanager
async def subagents(
    runtime: Runtime, *delegates: Delegate, depth_max: int = 2
) -> AsyncIterator[None]:
    """Let agents delegate while the block is open: a tool for each kind of child.

    A child has the runtime's tools, hooks and prompt, and what its `Delegate` adds. Its answer is
    the call's result, with its name, by which a later call of the same tool goes on with it. It
    lends its call's place to its own calls (T14). Where its turn doesn't end well, the result is
    an error that says so; other calls don't notice.

    Args:
        runtime: for all its agents.
        delegates: the kinds of children; left out, one without anything of its own.
        depth_max: how many delegations may lead to an agent; one that has so many behind it has
            none of these tools.

    Raises:
        InvalidInputError: `depth_max` isn't 1 or more, or a kind of child is none.
    """
    whole("depth_max", depth_max, least=1)
    for delegate in delegates:
        instance("a kind of child", delegate, of=Delegate)
    with ExitStack() as stack:
        for delegate in delegates or (Delegate(),):
            made = _tool(runtime, delegate)
            registration = runtime.tools.register(
                made, when=lambda step: _depth(step.agent) < depth_max
            )
            stack.enter_context(registration)
        yield


def _tool(runtime: Runtime, kind: Delegate) -> Tool:
    @tool(
        name=kind.name,
        description=kind.description,
        mode="concurrent",
        timeout_s=kind.timeout_s,
    )
    async def delegate(task: str, context: ToolContext, agent: str = "") -> ToolOutcome:
        """Give a task to a child.

        Args:
            task: what is to be done, with everything that must be known for it.
            agent: the name of an agent that answered before, to go on with it; left out, a new one.
        """
        async with context.lend_place():
            return await _ask_child(runtime, kind, task, agent, context)

    return delegate


async def _ask_child(
    runtime: Runtime, kind: Delegate, task: str, name: str, context: ToolContext
) -> ToolOutcome:
    config = kind.config or _config_of(context.agent)
    working = runtime.delegate(context, name or None, tools=kind.tools, config=config)
    try:
        async with working as child:
            _prepare(child, kind, context)
            context.report_progress(f"{child.name} is at work")
            settled = await child.ask(task)
            context.append(_settlement(context, settled))
            return _outcome(kind, settled)
    except (InvalidInputError, UnknownSessionError) as error:
        raise ToolError(f"there is no agent {name!r} to go on with: leave it out") from error


def _config_of(agent: AgentHandle) -> CallConfig | None:
    """The settings of an agent's last request, but for what concerned its tools."""
    header = agent.session.state.header
    if header is None:
        return None
    return msgspec.structs.replace(header.config, tool_choice=None, parallel_tool_calls=None)


def _prepare(child: Agent, kind: Delegate, context: ToolContext) -> None:
    if kind.system is not None:
        child.prompt.section("task", kind.system)
    origin = child.session.folded(ORIGIN)
    if origin is None:
        depth = _depth(context.agent) + 1
        child.session.append(ChildOpened(context.call, kind.name, depth))
    elif origin.tool != kind.name:
        raise ToolError(f"{child.name} was made by {origin.tool}: call that to go on with it")


def _settlement(context: ToolContext, settled: Settled) -> ChildSettled:
    return ChildSettled(
        context.call, settled.agent, settled.turn, settled.reason, settled.code, settled.usage
    )


def _outcome(kind: Delegate, settled: Settled) -> ToolOutcome:
    name = settled.agent
    meta: dict[str, messages.Json] = {"agent": name, "turn": settled.turn, "reason": settled.reason}
    if settled.reason in ("completed", "max-tokens"):
        cut = " (cut off at its maximum of tokens)" if settled.reason == "max-tokens" else ""
        note = f'[{name}{cut}; to go on with it: {kind.name}(agent="{name}", task=...)]'
        return ToolOutcome(content=f"{settled.text}\n\n{note}", value=settled.text, meta=meta)
    why = f" ({settled.code})" if settled.code else ""
    words = settled.message or settled.cause or ""
    said = f"\nThe last it said: {settled.text}" if settled.text else ""
    return ToolOutcome(
        content=f"The agent {name} was {_ENDED[settled.reason]}{why}: {words}{said}",
        meta=meta,
        is_error=True,
        code="SUBAGENT_FAILED",
    )


_ENDED = {"blocked": "stopped", "aborted": "aborted", "error": "stopped by an error"}
