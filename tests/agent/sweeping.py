"""Runs with something that happens before any task step, and what must hold wherever it does."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import attrs
import trio

from tests.agent.reading import facts, pass_waits
from trioloop.agent.agent import Agent
from trioloop.errors import TrioloopError
from trioloop.events import CallConfig, UserMessageLogged
from trioloop.handles import AgentHandle
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import (
    Assembly,
    AttemptFailed,
    Decision,
    PreStep,
    RequestProposal,
    Retry,
    SectionText,
    StreamRequest,
    TurnStopping,
)
from trioloop.messages import UserMessage, text_of, user_message
from trioloop.ports import ChunkStream
from trioloop.prompt import Section
from trioloop.runtime.runtime import Runtime
from trioloop.testing import Fail, ScriptedModel, Text, ToolCall, Wait, open_test_runtime
from trioloop.tools.registry import ToolConditionContext
from trioloop.tools.tool import tool


@tool(effects="read-only")
async def look() -> str:
    """Look, with two waits."""
    await pass_waits()
    return "seen"


@tool
async def write() -> str:
    """Write, with two waits and some time."""
    await trio.sleep(0.5)
    await pass_waits()
    return "written"


async def _condition(context: ToolConditionContext) -> bool:
    await pass_waits()
    return True


async def _section(agent: AgentHandle) -> str:
    await pass_waits()
    return "You are terse."


def _slow_hooks(runtime: Runtime) -> None:
    """A listener at each place, which waits behind what it passes on."""

    @runtime.hooks.assemble
    async def assembling(
        payload: Assembly, next: Next[tuple[SectionText, ...]]
    ) -> tuple[SectionText, ...]:
        answer = await next()
        await pass_waits()
        return answer

    @runtime.hooks.pre_step
    async def pre_step(step: PreStep, next: Next[Decision]) -> Decision:
        answer = await next()
        await pass_waits()
        return answer

    @runtime.hooks.request
    async def request(proposal: RequestProposal, next: Next[CallConfig]) -> CallConfig:
        answer = await next()
        await pass_waits()
        return answer

    @runtime.hooks.stream
    async def stream(request: StreamRequest, next: Next[ChunkStream]) -> ChunkStream:
        answer = await next()
        await pass_waits()
        return answer

    @runtime.hooks.turn_stopping
    async def stopping(turn: TurnStopping) -> None:
        await pass_waits()

    runtime.tools.register(look, when=_condition)
    runtime.tools.register(write)


@attrs.frozen
class Scene:
    """Some work of an agent.

    Attributes:
        make_model: the model that it needs, made anew for each run.
        act: begins the work, without waiting for it.
        furnish: registers what else it needs.
        takes_s: virtual seconds that it takes if nothing disturbs it.
    """

    make_model: Callable[[], ScriptedModel]
    act: Callable[[Agent], Awaitable[None]]
    takes_s: float
    furnish: Callable[[Runtime], None] = lambda runtime: None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[tuple[Runtime, Agent]]:
        """A runtime and an agent in which every place waits twice."""
        sections = [Section("system", _section)]
        async with open_test_runtime(model=self.make_model(), system=sections) as runtime:
            _slow_hooks(runtime)
            self.furnish(runtime)
            agent = await runtime.create_agent("a")
            yield runtime, agent


async def _one(agent: Agent) -> None:
    agent.inject("context")
    agent.followup("one")


async def _queue(agent: Agent) -> None:
    for text in ("one", "two"):
        agent.followup(text)


async def _steered(agent: Agent) -> None:
    agent.followup("one")
    await trio.sleep(1)
    agent.steer("steer")
    agent.inject("context")


def _retry(runtime: Runtime) -> None:
    @runtime.hooks.request_error
    async def retry(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
        await pass_waits()
        return Retry(0.5, fresh_turn=len(failed.earlier) == 1)


def _steer_at_stop(runtime: Runtime) -> None:
    @runtime.hooks.turn_stopping
    async def steer(turn: TurnStopping) -> None:
        await pass_waits()
        agent = runtime.agents[turn.agent.name]
        if agent.session.state.turns == 1 and not any(
            text_of(fact.message.content) == "more" for fact in facts(agent, UserMessageLogged)
        ):
            agent.steer("more")


SCENES = {
    "plain": Scene(lambda: ScriptedModel([Text("hi")], chunk_chars=1), _one, 0),
    "tools": Scene(
        lambda: ScriptedModel([[ToolCall("look"), ToolCall("look"), ToolCall("write")], Text("x")]),
        _one,
        0.5,
    ),
    "retry": Scene(
        lambda: ScriptedModel([Fail("SERVER"), [Text("ha"), Fail("SERVER")], Text("hi")]),
        _one,
        1,
        _retry,
    ),
    "steer": Scene(
        lambda: ScriptedModel([[Text("a"), Wait(2), Text("b")], Text("c")]), _steered, 2
    ),
    "queue": Scene(lambda: ScriptedModel([Text("1"), Text("2")]), _queue, 0),
    "stopping": Scene(lambda: ScriptedModel([Text("1"), Text("2")]), _one, 0, _steer_at_stop),
}


# What must hold


class Fates:
    """What an agent's notifications told of each message."""

    def __init__(self, agent: Agent) -> None:
        self.inserted: list[str] = []
        self.ended: list[str] = []
        agent.on("inserted", lambda one: self.inserted.append(one.message.id))
        agent.on("claimed", lambda one: self.ended.append(one.message))
        agent.on("discarded", lambda one: self.ended.append(one.message))


def check_fates(agent: Agent, fates: Fates) -> None:
    """Each insertion has one end or is pending, and no message was admitted twice (S3, G5)."""
    left = [one.message.id for one in agent.session.state.inbox]
    assert sorted(fates.inserted) == sorted([*fates.ended, *left])
    admitted = [fact.message.id for fact in facts(agent, UserMessageLogged)]
    assert len(admitted) == len(set(admitted))
    for id, fate in agent.session.state.fates.items():
        assert fate.status in ("admitted", "discarded", "unadmitted", "pending"), (id, fate)
        assert (fate.status == "pending") == (id in left)
        assert (fate.status == "admitted") == (id in admitted)


def check_order(agent: Agent) -> None:
    """Follow-ups were admitted in the order that they were sent in."""
    sent = ["one", "two"]
    texts = [text_of(fact.message.content) for fact in facts(agent, UserMessageLogged)]
    taken = [text for text in texts if text in sent]
    assert taken == sent[: len(taken)]


def message(text: str) -> UserMessage:
    """A message whose id is its text."""
    return user_message(text, id=text)


async def asked(agent: Agent, text: str) -> str:
    """How an ask ended, in a word."""
    try:
        return (await agent.ask(text)).reason
    except TrioloopError as error:
        return error.code
