"""Cancellation outranks every answer, and what comes out of a turn is judged in order (R8)."""

from collections.abc import Callable

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import ends, facts, pass_waits, pending, reasons, types
from trioloop.agent.agent import Agent
from trioloop.events import (
    AssistantAttemptLogged,
    CallConfig,
    Event,
    EventData,
    InboxSpliced,
    StepEnded,
    ToolCallStarted,
    ToolResultLogged,
    TurnEnded,
)
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import (
    AttemptFailed,
    Decision,
    PreStep,
    Reject,
    RequestProposal,
    Retry,
    TurnStopping,
)
from trioloop.limits import Limits
from trioloop.testing import Answer, Fail, ScriptedModel, Text, ToolCall, open_test_runtime
from trioloop.tools.tool import tool


def cancelling_at(kind: type[EventData], agent: Callable[[], Agent]) -> Callable[[Event], None]:
    """An observer that cancels at the first fact of a class."""

    def observe(event: Event) -> None:
        if isinstance(event.data, kind):
            agent().cancel("observer")

    return observe


@tool(effects="read-only")
async def look() -> str:
    """Look around."""
    await pass_waits()
    return "seen"


async def test_a_rejection_that_was_cancelled_is_an_abort(autojump_clock: MockClock) -> None:
    async def reject(step: PreStep, next: Next[Decision]) -> Decision:
        await pass_waits()
        agent.cancel("why")
        return Reject("no")

    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(reject)
        settled = await agent.ask("one")
        assert (settled.reason, settled.cause, settled.code) == ("aborted", "why", None)
        await agent.wait_idle()
        assert pending(agent) == ["one"]


async def test_a_cancel_at_the_end_of_the_last_step_is_an_abort(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.session.observe(cancelling_at(StepEnded, lambda: agent))
        settled = await agent.ask("one")
        assert (settled.reason, settled.cause, settled.text) == ("aborted", "observer", "hi")


async def test_a_cancel_at_the_end_of_a_step_that_nobody_is_asked_behind_is_an_abort(
    autojump_clock: MockClock,
) -> None:
    def observe(event: Event) -> None:
        if isinstance(event.data, StepEnded) and event.data.step == 2:
            agent.cancel("observer")

    model = ScriptedModel([Answer((Text("a"),), finish="pause")] * 2)
    async with open_test_runtime(model=model, limits=Limits(pauses_max=1)) as runtime:
        agent = await runtime.create_agent("a")
        agent.session.observe(observe)
        assert (await agent.ask("one")).reason == "aborted"


async def test_a_cancel_as_the_turn_stops_is_an_abort(autojump_clock: MockClock) -> None:
    async def stopping(turn: TurnStopping) -> None:
        await pass_waits()
        agent.cancel("why")

    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.turn_stopping.add(stopping)
        assert (await agent.ask("one")).reason == "aborted"


async def test_a_cancel_at_the_end_of_a_failed_step_is_an_abort(autojump_clock: MockClock) -> None:
    told: list[object] = []
    async with open_test_runtime(model=ScriptedModel([Fail("AUTH")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.session.observe(cancelling_at(StepEnded, lambda: agent))
        agent.on("error", told.append)
        settled = await agent.ask("one")
        assert (settled.reason, settled.cause) == ("aborted", "observer")
    assert told == []


async def test_nobody_is_asked_about_an_attempt_that_failed_into_a_cancel(
    autojump_clock: MockClock,
) -> None:
    asked: list[AttemptFailed] = []

    async def retry(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
        asked.append(failed)
        return Retry(0)

    async with open_test_runtime(model=ScriptedModel([Fail("SERVER")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request_error.add(retry)
        agent.session.observe(cancelling_at(AssistantAttemptLogged, lambda: agent))
        assert (await agent.ask("one")).reason == "aborted"
        assert types(agent)[-3:] == ["assistant/attempt", "step/end", "turn/end"]
    assert asked == []


async def test_a_cancel_from_the_error_notification_leaves_the_error(
    autojump_clock: MockClock,
) -> None:
    """The turn's end was decided and told before it."""
    async with open_test_runtime(model=ScriptedModel([Fail("AUTH")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.on("error", lambda _: agent.cancel("late"))
        settled = await agent.ask("one")
        assert (settled.reason, settled.code) == ("error", "AUTH")


async def test_a_cancel_at_the_end_of_the_turn_changes_nothing_of_it(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("1"), Text("2")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.session.observe(cancelling_at(TurnEnded, lambda: agent))
        assert (await agent.ask("one")).reason == "completed"
        assert (await agent.ask("two")).reason == "completed"


async def test_a_cancel_as_a_call_starts_starts_no_further_call(autojump_clock: MockClock) -> None:
    model = ScriptedModel([[ToolCall("look")] * 5])
    async with open_test_runtime(model=model, tools=[look]) as runtime:
        agent = await runtime.create_agent("a")
        agent.session.observe(cancelling_at(ToolCallStarted, lambda: agent))
        settled = await agent.ask("one")
        assert settled.reason == "aborted"
        assert len(facts(agent, ToolCallStarted)) == 1
        assert len(facts(agent, ToolResultLogged)) == 5


async def test_a_cancel_at_a_result_starts_no_further_call(autojump_clock: MockClock) -> None:
    @tool
    async def write() -> str:
        await pass_waits()
        return "written"

    model = ScriptedModel([[ToolCall("write")] * 3])
    async with open_test_runtime(model=model, tools=[write]) as runtime:
        agent = await runtime.create_agent("a")
        agent.session.observe(cancelling_at(ToolResultLogged, lambda: agent))
        await agent.ask("one")
        assert [one.code for one in facts(agent, ToolResultLogged)] == [
            None,
            "TOOL_ABORTED_BEFORE_DISPATCH",
            "TOOL_ABORTED_BEFORE_DISPATCH",
        ]


async def test_a_deadline_that_passes_in_a_hook_without_waits_is_an_abort(
    autojump_clock: MockClock,
) -> None:
    """Nobody called cancel, but the host's time is over as the hook returns."""

    async def slow(step: PreStep, next: Next[Decision]) -> Decision:
        with trio.CancelScope(shield=True):
            await trio.sleep(5)
        return await next()

    agents: list[Agent] = []
    with trio.move_on_after(2):
        async with open_test_runtime(model=ScriptedModel([])) as runtime:
            agents.append(await runtime.create_agent("a"))
            agents[0].hooks.pre_step.add(slow)
            agents[0].followup("one")
            await trio.sleep_forever()
    assert trio.current_time() == 5
    assert [(end.reason, end.cause) for end in ends(agents[0])] == [("aborted", "host-cancelled")]
    assert types(agents[0]) == ["turn/start", "turn/end"]


async def test_a_deadline_that_passes_while_nothing_waits_is_an_abort(
    autojump_clock: MockClock,
) -> None:
    """Trio hasn't noticed yet that the host's time is over, as no task has waited since."""

    async def stopping(turn: TurnStopping) -> None:
        autojump_clock.jump(5)

    agents: list[Agent] = []
    with trio.move_on_after(2):
        async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
            agents.append(await runtime.create_agent("a"))
            agents[0].hooks.turn_stopping.add(stopping)
            agents[0].followup("one")
            await trio.sleep_forever()
    assert [(end.reason, end.cause) for end in ends(agents[0])] == [("aborted", "host-cancelled")]


# Strays


async def stray_cancelled() -> trio.Cancelled:
    """A Cancelled that belongs to no open scope any more."""
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.lowlevel.checkpoint()
        except trio.Cancelled as cancelled:  # noqa: ASYNC103 - to be stray
            return cancelled  # noqa: ASYNC104
    raise AssertionError


@pytest.mark.parametrize("place", ["pre_step", "request", "request_error", "turn_stopping"])
async def test_a_stray_cancelled_is_an_error_that_names_its_listener(
    place: str, autojump_clock: MockClock
) -> None:
    async def pre_step(step: PreStep, next: Next[Decision]) -> Decision:
        raise await stray_cancelled()

    async def request(proposal: RequestProposal, next: Next[CallConfig]) -> CallConfig:
        raise await stray_cancelled()

    async def request_error(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
        raise await stray_cancelled()

    async def turn_stopping(turn: TurnStopping) -> None:
        raise await stray_cancelled()

    model = ScriptedModel([Fail("AUTH") if place == "request_error" else Text("hi"), Text("2")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        listener = locals()[place]
        with getattr(agent.hooks, place).add(listener):
            settled = await agent.ask("one")
        assert (settled.reason, settled.code) == ("error", "LEAKED_CANCEL")
        by = ends(agent)[0].by
        assert by is not None
        assert by.endswith(place)
        assert (await agent.ask("two")).reason in ("completed", "error")


async def test_a_stray_cancelled_while_the_turn_is_cancelled_is_an_abort(
    autojump_clock: MockClock,
) -> None:
    async def pre_step(step: PreStep, next: Next[Decision]) -> Decision:
        agent.cancel("why")
        raise await stray_cancelled()

    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(pre_step)
        settled = await agent.ask("one")
        assert (settled.reason, settled.cause) == ("aborted", "why")


async def test_a_cancelled_turned_into_an_error_stays_an_abort(autojump_clock: MockClock) -> None:
    async def pre_step(step: PreStep, next: Next[Decision]) -> Decision:
        try:
            await trio.sleep(5)
        except trio.Cancelled as cancelled:
            raise ExceptionGroup("mine", [ValueError("a"), KeyError("b")]) from cancelled  # noqa: ASYNC104
        return await next()

    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(pre_step)
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel("why")
        await agent.wait_idle()
        assert trio.current_time() == 1
        assert ends(agent)[0].also == ("ValueError: a", "KeyError: 'b'")
        assert reasons(agent) == ["aborted"]


async def test_a_listeners_own_timeout_is_no_abort(autojump_clock: MockClock) -> None:
    async def pre_step(step: PreStep, next: Next[Decision]) -> Decision:
        with trio.fail_after(1):
            await trio.sleep(5)
        return await next()

    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(pre_step)
        settled = await agent.ask("one")
        assert settled.reason == "error"
        assert trio.current_time() == 1


async def test_what_is_steered_as_the_turn_stops_stays_unclaimed_behind_a_cancel(
    autojump_clock: MockClock,
) -> None:
    async def stopping(turn: TurnStopping) -> None:
        agent.steer("more")
        agent.cancel("why")

    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.turn_stopping.add(stopping)
        assert (await agent.ask("one")).reason == "aborted"
        assert pending(agent) == ["more"]
        assert len(facts(agent, InboxSpliced)) == 3  # "one" and its claim, "more" and no claim
