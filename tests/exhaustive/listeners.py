"""A listener at each place where policy joins the loop. All wait twice, and each call counts."""

from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from typing import TypeAlias, TypeVar

import trio

from tests.exhaustive.waits import pass_waits
from trioloop.agent.agent import Agent
from trioloop.events import Event
from trioloop.handles import AgentHandle
from trioloop.hooks.dispatch import Next, WaterfallListener
from trioloop.hooks.points import Allow, Ask, CallRequest, Hooks, PrePolicy, TurnStopping
from trioloop.ports import ToolOutcome
from trioloop.prompt import Section
from trioloop.runtime.runtime import Runtime
from trioloop.tools import ToolConditionContext, ToolContext
from trioloop.tools.tool import tool

PayloadT = TypeVar("PayloadT")
AnswerT = TypeVar("AnswerT")
Count: TypeAlias = Callable[[str], None]
"""Told of each call of something scripted, by name; it may raise."""


def uncounted(where: str) -> None:
    """Count nothing."""


def around(count: Count, where: str) -> WaterfallListener[PayloadT, AnswerT]:
    """A listener that waits behind what it passes on: directly before the driver's last look."""

    async def listener(payload: PayloadT, next: Next[AnswerT]) -> AnswerT:
        count(where)
        answer = await next()
        await pass_waits()
        return answer

    listener.__qualname__ = where
    return listener


def listen_to_turns(hooks: Hooks, count: Count) -> None:
    """Listen at each hook of a turn."""
    hooks.assemble.add(around(count, "assemble"))
    hooks.pre_step.add(around(count, "pre_step"))
    hooks.request.add(around(count, "request"))
    hooks.request_error.add(around(count, "request_error"))
    hooks.stream.add(around(count, "stream"))

    @hooks.turn_stopping
    async def turn_stopping(turn: TurnStopping) -> None:
        count("turn_stopping")
        await pass_waits()


def listen_to_calls(hooks: Hooks, count: Count) -> None:
    """Listen at each hook of a call, and ask a person about those that write."""
    hooks.execute.add(around(count, "execute"))
    hooks.post_execute.add(around(count, "post_execute"))

    @hooks.pre_execute
    async def pre_execute(call: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
        count("pre_execute")
        answer = await next()
        await pass_waits()
        if isinstance(answer, Allow) and call.effects != "read-only":
            return Ask("May it?")
        return answer


def observe(runtime: Runtime, agent: Agent, count: Count) -> None:
    """Listen to all that is told."""

    def observer(event: Event) -> None:
        count("observer")

    agent.session.observe(observer)
    agent.on("*", lambda _: count("listener of the agent"))
    runtime.on("*", lambda _: count("listener of the runtime"))


def section(count: Count, texts: Iterable[str] = ()) -> Section:
    """A section of the prompt. Each time it is asked it reads as the next text, if there is one."""
    coming = iter(texts)
    last = "You are terse."

    async def source(agent: AgentHandle) -> str:
        nonlocal last
        count("section")
        await pass_waits()
        last = next(coming, last)
        return last

    return Section("system", source)


def condition(count: Count) -> Callable[[ToolConditionContext], Awaitable[bool]]:
    """A condition of a tool."""

    async def condition(context: ToolConditionContext) -> bool:
        count("condition")
        await pass_waits()
        return True

    return condition


class Bodies:
    """What the bodies of a run did.

    Attributes:
        began: the calls whose body began.
        ended: those whose body came to its end.
    """

    def __init__(self, count: Count) -> None:
        self.began: list[str] = []
        self.ended: list[str] = []
        self._count = count

    async def work(self, name: str, context: ToolContext, takes_s: float = 0) -> None:
        """Be the body of a call."""
        self.began.append(context.call)
        self._count(name)
        if takes_s:
            await trio.sleep(takes_s)
        await pass_waits()
        self.ended.append(context.call)


BODIES: ContextVar[Bodies] = ContextVar("bodies")
"""Those of the run; the tools are made once, as that takes longer than many a run."""


@tool(effects="read-only")
async def look(context: ToolContext) -> str:
    """Look."""
    await BODIES.get().work("look", context)
    return "seen"


@tool
async def write(context: ToolContext) -> str:
    """Write, in half a second; alone."""
    await BODIES.get().work("write", context, takes_s=0.5)
    return "written"


@tool(effects="read-only", on_cancel="finish")
async def save(context: ToolContext) -> str:
    """Save, which a cancel lets it finish."""
    await BODIES.get().work("save", context, takes_s=0.25)
    return "saved"


@tool(effects="idempotent")
async def note(context: ToolContext) -> str:
    """Note something, and add a context."""
    context.report_progress("noting")
    context.add_context("noted")
    await BODIES.get().work("note", context)
    return "noted"


@tool(effects="read-only")
async def conclude(context: ToolContext) -> ToolOutcome:
    """End the turn."""
    await BODIES.get().work("conclude", context)
    return ToolOutcome(content="over", concludes_turn=True)


@tool(effects="read-only")
async def page(context: ToolContext) -> str:
    """Read a page."""
    await BODIES.get().work("page", context)
    return "It was a dark and stormy night. " * 20


@tool(effects="read-only", result_bytes_max=512)
async def book(context: ToolContext) -> str:
    """Read a book, which is too long."""
    await BODIES.get().work("book", context)
    return "It was a dark and stormy night. " * 40


TOOLS = (write, save, note, conclude, page, book)
"""Those that no condition decides on."""
