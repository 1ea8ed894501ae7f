"""The catalogue: work of an agent, one scene for each way that a turn can take."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

import attrs
import trio

from tests.exhaustive.listeners import (
    BODIES,
    TOOLS,
    Bodies,
    Count,
    condition,
    listen_to_calls,
    listen_to_turns,
    look,
    section,
    uncounted,
)
from tests.exhaustive.models import WaitingApprover, WaitingModel, WaitingStore
from tests.exhaustive.policies import planning, questioning
from tests.exhaustive.waits import pass_waits
from trioloop.agent.agent import Agent
from trioloop.errors import AgentDisposedError, DuplicateMessageError
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import (
    AttemptFailed,
    Decision,
    Enter,
    PreStep,
    Reject,
    Retry,
    TurnStopping,
)
from trioloop.limits import Limits
from trioloop.messages import text_of, user_message
from trioloop.models.scripted import Script
from trioloop.plugins import (
    Budget,
    Delegate,
    Rule,
    approval,
    compaction,
    limits,
    pruning,
    retry,
    spill,
    subagents,
)
from trioloop.ports import Capabilities, RetryPolicy, SessionStore
from trioloop.runtime.open import Plugin
from trioloop.runtime.runtime import Runtime
from trioloop.testing import Answer, Fail, Reasoning, Text, ToolCall, Wait, open_test_runtime

UNWATCHED = Limits(block_warning_s=None)
"""No thread looks for what blocks: each of many short runs would start and join one."""


@attrs.frozen(eq=False)
class Stage:
    """A scene under way."""

    runtime: Runtime
    agent: Agent
    bodies: Bodies
    model: WaitingModel


@attrs.frozen(kw_only=True)
class Scene:
    """Some work of an agent.

    Attributes:
        script: what its model answers.
        act: begins the work, without waiting for it.
        furnish: registers what else it needs.
        plugins: the policies that are open.
        ends: why its turns end, if nothing disturbs them.
        takes_s: virtual seconds that it takes then.
        unwinds_s: virtual seconds that it may take from a cancel to the end of the turn.
        asks: there are policies about calls, and a person to be asked.
        sends_later: it sends some time after it began.
        texts: what the prompt reads as, each time it is asked.
        capabilities: of the model.
        reads: how the model's text comes: characters of one chunk.
    """

    script: Callable[[], Script]
    act: Callable[[Agent], Awaitable[None]]
    ends: Sequence[str]
    furnish: Callable[[Runtime, Count], None] = lambda runtime, count: None
    plugins: Sequence[Plugin] = ()
    takes_s: float = 0
    unwinds_s: float = 0
    asks: bool = False
    sends_later: bool = False
    texts: Sequence[str] = ()
    capabilities: Capabilities = attrs.field(factory=Capabilities)
    reads: int | None = None

    @asynccontextmanager
    async def open(
        self,
        count: Count = uncounted,
        store: SessionStore | None = None,
        limits: Limits = UNWATCHED,
    ) -> AsyncIterator[Stage]:
        """A runtime and an agent in which every place waits twice."""
        model = WaitingModel(self.script(), capabilities=self.capabilities, chunk_chars=self.reads)
        async with open_test_runtime(
            model=model,
            system=[section(count, self.texts)],
            store=store or WaitingStore(),
            limits=limits,
            plugins=self.plugins,
            approver=WaitingApprover(),
        ) as runtime:
            listen_to_turns(runtime.hooks, count)
            if self.asks:
                listen_to_calls(runtime.hooks, count)
            self.furnish(runtime, count)
            bodies = Bodies(count)
            BODIES.set(bodies)  # before the agent is made, whose tasks inherit it
            runtime.tools.register(look, when=condition(count))
            for other in TOOLS:
                runtime.tools.register(other)
            agent = await runtime.create_agent("a")
            yield Stage(runtime, agent, bodies, model)


# How work begins


async def _one(agent: Agent) -> None:
    agent.inject("context")
    agent.followup("one")


async def _two(agent: Agent) -> None:
    agent.followup("one")
    agent.followup("two")


async def _three(agent: Agent) -> None:
    await _two(agent)
    agent.followup("three")


async def _steered(agent: Agent) -> None:
    agent.followup("one")
    await trio.sleep(0.5)
    agent.steer("steered")
    agent.inject("context")


async def _edited(agent: Agent) -> None:
    agent.inject("dropped")
    await _two(agent)


# What it needs beside


def _retry_in_the_step(runtime: Runtime, count: Count) -> None:
    @runtime.hooks.request_error
    async def retry(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
        count("retry")
        await pass_waits()
        return Retry(0.5)


def _retry_as_a_turn(runtime: Runtime, count: Count) -> None:
    @runtime.hooks.request_error
    async def retry(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
        count("retry")
        await pass_waits()
        return Retry(0.5, fresh_turn=True)


def _steer_at_the_stop(runtime: Runtime, count: Count) -> None:
    @runtime.hooks.turn_stopping
    async def steer(turn: TurnStopping) -> None:
        count("steer")
        await pass_waits()
        message = user_message("more", id="more")
        with suppress(DuplicateMessageError, AgentDisposedError):
            turn.agent.steer(message)


def _edit_and_reject(runtime: Runtime, count: Count) -> None:
    @runtime.hooks.pre_step
    async def edit(step: PreStep, next: Next[Decision]) -> Decision:
        count("edit")
        await next()
        await pass_waits()
        texts = {text_of(message.content): message for message in step.messages}
        if "two" in texts:
            return Reject("no")
        edited = [
            user_message(f"{text}, edited", id=message.id)
            for text, message in texts.items()
            if text != "dropped"
        ]
        return Enter((*edited, user_message("added")))


def _series_in_the_second_turn(runtime: Runtime, count: Count) -> None:
    @runtime.hooks.pre_step
    async def begin_anew(step: PreStep, next: Next[Decision]) -> Decision:
        count("begin_anew")
        decision = await next()
        await pass_waits()
        assert isinstance(decision, Enter)
        return Enter(decision.messages, starts_request_series=step.turn == 2)


_LONG = "It was a dark and stormy night. " * 10

SCENES = {
    "plain": Scene(
        script=lambda: [[Reasoning("hm"), Text("hi")]], act=_one, ends=["completed"], reads=1
    ),
    "tools": Scene(
        script=lambda: [
            [ToolCall("look"), ToolCall("save"), ToolCall("write"), ToolCall("look")],
            Text("done"),
        ],
        act=_one,
        ends=["completed"],
        takes_s=0.75,
        unwinds_s=0.25,
    ),
    "retry": Scene(
        script=lambda: [Fail("SERVER"), [Text("ha"), Fail("SERVER")], Text("hi")],
        act=_one,
        ends=["completed"],
        furnish=_retry_in_the_step,
        takes_s=1,
    ),
    "fresh turn": Scene(
        script=lambda: [Fail("SERVER"), Text("hi")],
        act=_one,
        ends=["error", "completed"],
        furnish=_retry_as_a_turn,
        takes_s=0.5,
    ),
    "steer": Scene(
        script=lambda: [[Text("a"), Wait(1), Text("b")], Text("c")],
        act=_steered,
        ends=["completed"],
        takes_s=1,
        sends_later=True,
    ),
    "queue": Scene(
        script=lambda: [Text("1"), Text("2"), Text("3")], act=_three, ends=["completed"] * 3
    ),
    "stopping": Scene(
        script=lambda: [Text("1"), Text("2")],
        act=_one,
        ends=["completed"],
        furnish=_steer_at_the_stop,
    ),
    "max tokens": Scene(
        script=lambda: [Answer([Text("a"), ToolCall("look")], "length"), Text("b")],
        act=_two,
        ends=["max-tokens", "completed"],
    ),
    "pause": Scene(
        script=lambda: [Answer([Text("a")], "pause"), Text("b")], act=_one, ends=["completed"]
    ),
    "pre_step": Scene(
        script=lambda: [Text("hi")],
        act=_edited,
        ends=["completed", "blocked"],
        furnish=_edit_and_reject,
    ),
    "in-history": Scene(
        script=lambda: [ToolCall("look"), Text("1"), Text("2")],
        act=_two,
        ends=["completed"] * 2,
        furnish=_series_in_the_second_turn,
        texts=["It is one.", "It is two.", "It is three."],
        capabilities=Capabilities(system_update="in-history"),
    ),
    "contexts": Scene(
        script=lambda: [[ToolCall("note"), ToolCall("note")], ToolCall("conclude"), Text("left")],
        act=_one,
        ends=["completed"],
    ),
    "approval": Scene(
        script=lambda: [[ToolCall("look"), ToolCall("note"), ToolCall("look")], Text("done")],
        act=_one,
        ends=["completed"],
        asks=True,
    ),
    "compaction": Scene(
        script=lambda: [Text(_LONG), Text("short"), Text("2")],
        act=_two,
        ends=["completed"] * 2,
        plugins=[partial(compaction, window_tokens=200, at=0.06, keep=0.02)],
    ),
    "overflow": Scene(
        script=lambda: [
            Text(_LONG),
            Fail("CONTEXT_WINDOW_EXCEEDED"),
            [ToolCall("look")],
            Text("short"),
            Text("2"),
        ],
        act=_two,
        ends=["completed"] * 2,
        plugins=[compaction],
    ),
    "pruning": Scene(
        script=lambda: [
            ToolCall("page"),
            ToolCall("page"),
            Text("1"),
            Fail("CONTEXT_WINDOW_EXCEEDED"),
            Text("2"),
        ],
        act=_two,
        ends=["completed"] * 2,
        plugins=[partial(pruning, window_tokens=30, at=0.9, keep=0, result_chars_max=100)],
    ),
    "limits": Scene(
        script=lambda: [ToolCall("look"), ToolCall("look")],
        act=_one,
        ends=["blocked"],
        plugins=[partial(limits, session=Budget(steps=2))],
    ),
    "hand over": Scene(
        script=lambda: [ToolCall("look"), Text("this is left")],
        act=_one,
        ends=["completed"],
        plugins=[partial(limits, turn=Budget(steps=1), hand_over=True)],
    ),
    "plan": Scene(
        script=lambda: [ToolCall("exit_plan_mode", plan="look"), ToolCall("look"), Text("done")],
        act=_one,
        ends=["completed"],
        plugins=[planning],
    ),
    "rules": Scene(
        script=lambda: [[ToolCall("save"), ToolCall("look")], Text("done")],
        act=_one,
        ends=["completed"],
        plugins=[
            lambda runtime: approval(runtime, Rule(tool="save"), Rule(tool="l*", answer="deny"))
        ],
        takes_s=0.25,
        unwinds_s=0.25,
    ),
    "questions": Scene(
        script=lambda: [[ToolCall("note"), ToolCall("look"), ToolCall("note")], Text("done")],
        act=_one,
        ends=["completed"],
        plugins=[questioning],
        takes_s=0.25,
    ),
    "retry plugin": Scene(
        script=lambda: [Fail("SERVER"), [Text("ha"), Fail("SERVER")], Text("hi")],
        act=_one,
        ends=["completed"],
        plugins=[
            partial(retry, policy=RetryPolicy(first_delay_s=0.5, jitter=0), random=lambda: 0.5)
        ],
        takes_s=1.5,
    ),
    "spill": Scene(
        script=lambda: [[ToolCall("book"), ToolCall("look")], Text("done")],
        act=_one,
        ends=["completed"],
        plugins=[spill],
    ),
    "delegate": Scene(
        script=lambda: [ToolCall("research", task="look"), Text("found"), Text("done")],
        act=_one,
        ends=["completed"],
        plugins=[lambda runtime: subagents(runtime, Delegate(name="research"))],
    ),
}
