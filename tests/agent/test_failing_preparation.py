"""What is raised or cancelled before a step is committed commits nothing of it (P6, P7, R8)."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import ends, pass_waits, pending, types
from trioloop.agent.agent import Agent
from trioloop.errors import ModelFailure
from trioloop.events import CallConfig
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
)
from trioloop.ports import PreparedCall
from trioloop.runtime.runtime import Runtime
from trioloop.testing import ScriptedModel, Text, open_test_runtime
from trioloop.tools.registry import ToolConditionContext
from trioloop.tools.tool import tool

Act: TypeAlias = Callable[[], Awaitable[None]]


@tool(effects="read-only")
async def answer() -> int:
    """The answer."""
    return 42


class Unprepared(ScriptedModel):
    """A model whose preparation is what a test says."""

    def __init__(self, prepare: Act) -> None:
        super().__init__([Text("hi")])
        self._prepare = prepare
        self.asked = 0

    async def prepare(self, config: CallConfig) -> PreparedCall:  # type: ignore[override]
        """Do that last, so that no wait of its own is behind it."""
        self.asked += 1
        prepared = await super().prepare(config)
        await self._prepare()
        return prepared


def _installed(runtime: Runtime, place: str, act: Act) -> None:
    async def condition(context: ToolConditionContext) -> bool:
        await act()
        return True

    async def section(agent: AgentHandle) -> str:
        await act()
        return "text"

    async def assembling(
        payload: Assembly, next: Next[tuple[SectionText, ...]]
    ) -> tuple[SectionText, ...]:
        answer = await next()
        await act()
        return answer

    async def pre_step(step: PreStep, next: Next[Decision]) -> Decision:
        answer = await next()
        await act()
        return answer

    async def request(proposal: RequestProposal, next: Next[CallConfig]) -> CallConfig:
        answer = await next()
        await act()
        return answer

    if place == "condition":
        runtime.tools.register(answer, when=condition)
    elif place == "section":
        runtime.prompt.section("s", section)
    elif place == "assemble":
        runtime.hooks.assemble.add(assembling)
    elif place == "pre_step":
        runtime.hooks.pre_step.add(pre_step)
    elif place == "request":
        runtime.hooks.request.add(request)


PLACES = ["condition", "section", "assemble", "pre_step", "request", "prepare"]


async def run_with(place: str, act: Act, then: Callable[[Agent], Awaitable[None]]) -> None:
    """Run something with an agent whose turns come by `act` at that place."""
    model = Unprepared(act) if place == "prepare" else ScriptedModel([Text("hi")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        _installed(runtime, place, act)
        await then(agent)
        assert model.requests == []


@pytest.mark.parametrize("place", PLACES)
async def test_nobody_is_asked_behind_a_cancel_however_quick_it_was(
    place: str, autojump_clock: MockClock
) -> None:
    asked: list[str] = []

    def act_at(at: str) -> Act:
        async def act() -> None:
            asked.append(at)
            if at == place:
                agent.cancel("why")

        return act

    model = Unprepared(act_at("prepare"))
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        for at in PLACES:
            _installed(runtime, at, act_at(at))
        assert (await agent.ask("one")).reason == "aborted"
    last = "assemble" if place == "section" else place  # the assembly is asked as a whole
    assert asked == PLACES[: PLACES.index(last) + 1]
    assert model.asked == (1 if place == "prepare" else 0)


@pytest.mark.parametrize("place", PLACES)
async def test_what_raises_before_admission_commits_nothing(
    place: str, autojump_clock: MockClock
) -> None:
    async def act() -> None:
        await trio.lowlevel.checkpoint()
        raise ValueError("broken")

    async def then(agent: Agent) -> None:
        told: list[object] = []
        agent.on("error", told.append)
        settled = await agent.ask("one")
        assert settled.reason == "error"
        assert settled.code == ("TOOL_ACTIVATION_FAILED" if place == "condition" else "UNKNOWN")
        assert settled.message is not None
        assert "broken" in settled.message
        assert types(agent) == ["turn/start", "turn/end"]
        assert [(one.list, one.why) for one in ends(agent)[0].unadmitted] == [
            ("next-turn", "error")
        ]
        assert len(told) == 1

    await run_with(place, act, then)


@pytest.mark.parametrize("discards", [False, True])
@pytest.mark.parametrize("place", PLACES)
async def test_a_cancel_before_admission_commits_nothing(
    place: str, discards: bool, autojump_clock: MockClock
) -> None:
    async def act() -> None:
        await trio.sleep(5)

    async def then(agent: Agent) -> None:
        told: list[object] = []
        agent.on("error", told.append)
        agent.inject("context")
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel("why", discard_inbox=discards)
        await agent.wait_idle()
        assert trio.current_time() == 1
        assert types(agent) == ["turn/start", "turn/end"]
        assert [(end.reason, end.cause) for end in ends(agent)] == [("aborted", "why")]
        assert pending(agent) == ([] if discards else ["context", "one"])
        assert len(ends(agent)[0].unadmitted) == (2 if discards else 0)
        assert told == []

    await run_with(place, act, then)


@pytest.mark.parametrize("place", PLACES)
async def test_a_cancel_that_comes_too_late_for_the_last_wait_commits_nothing(
    place: str, autojump_clock: MockClock
) -> None:
    """The listener was handed its value, and is cancelled before it goes on (R8)."""

    async def act() -> None:
        await pass_waits()
        for agent in agents:
            agent.cancel("why")

    agents: list[Agent] = []

    async def then(agent: Agent) -> None:
        agents.append(agent)
        settled = await agent.ask("one")
        assert (settled.reason, settled.cause) == ("aborted", "why")
        assert types(agent) == ["turn/start", "turn/end"]
        await agent.wait_idle()
        assert pending(agent) == ["one"]

    await run_with(place, act, then)


@pytest.mark.parametrize("place", PLACES)
async def test_what_is_raised_instead_of_the_cancel_is_told_beside_it(
    place: str, autojump_clock: MockClock
) -> None:
    async def act() -> None:
        try:
            await trio.sleep(5)
        except trio.Cancelled:
            raise ValueError("while cleaning up") from None  # noqa: ASYNC104 - a listener that does so

    async def then(agent: Agent) -> None:
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel("why")
        await agent.wait_idle()
        (end,) = ends(agent)
        assert (end.reason, end.cause) == ("aborted", "why")
        assert len(end.also) == 1
        assert "while cleaning up" in end.also[0]

    await run_with(place, act, then)


async def test_a_failing_preparation_is_not_retried(autojump_clock: MockClock) -> None:
    async def act() -> None:
        raise ModelFailure("TRANSPORT", "no route")

    asked: list[object] = []
    async with open_test_runtime(model=Unprepared(act)) as runtime:
        agent = await runtime.create_agent("a")

        @agent.hooks.request_error
        async def retry(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
            asked.append(failed)
            return Retry()

        settled = await agent.ask("one")
        assert (settled.reason, settled.code, settled.message) == ("error", "TRANSPORT", "no route")
    assert asked == []


async def test_an_error_with_a_code_of_its_own_keeps_it(autojump_clock: MockClock) -> None:
    class QuotaSpentError(Exception):
        code = "MY_QUOTA"

    async def act() -> None:
        raise QuotaSpentError("spent")

    async def then(agent: Agent) -> None:
        settled = await agent.ask("one")
        assert (settled.code, settled.message) == ("MY_QUOTA", "spent")
        assert ends(agent)[0].by is not None

    await run_with("pre_step", act, then)


async def test_steering_during_a_failing_preparation_is_kept(autojump_clock: MockClock) -> None:
    async def act() -> None:
        if not agents[0].session.state.inbox.next_step:
            agents[0].steer("steer")
        raise ValueError("broken")

    agents: list[Agent] = []

    async def then(agent: Agent) -> None:
        agents.append(agent)
        await agent.ask("one")
        await agent.wait_idle()
        assert pending(agent) == ["steer"]
        assert len(ends(agent)) == 1

    await run_with("pre_step", act, then)


@pytest.mark.parametrize("first", [True, False])
async def test_of_two_cancels_either_may_discard(first: bool, autojump_clock: MockClock) -> None:
    async def act() -> None:
        agents[0].cancel("one", discard_inbox=first)
        agents[0].cancel("two", discard_inbox=not first)

    agents: list[Agent] = []

    async def then(agent: Agent) -> None:
        agents.append(agent)
        assert (await agent.ask("one")).cause == "one"
        assert pending(agent) == []
        assert [one.why for one in ends(agent)[0].unadmitted] == ["aborted"]

    await run_with("pre_step", act, then)
