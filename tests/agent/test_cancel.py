"""What a cancel does to the open turn, to a wake, and to what is pending (I3, I4, I5)."""

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import (
    admitted,
    ends,
    facts,
    pass_waits,
    pending,
    reasons,
    splices,
    status,
    types,
)
from trioloop.agent.notifications import StatusChanged
from trioloop.events import Event, TurnEnded, TurnStarted
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import Decision, PreStep
from trioloop.messages import user_message
from trioloop.testing import Fail, ScriptedModel, Stall, Text, Wait, open_test_runtime


async def test_a_cancel_of_an_idle_agent_changes_nothing(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.cancel()
        assert (await agent.ask("hello")).reason == "completed"


async def test_a_cancel_right_after_a_waking_send_drops_the_wake(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("hi")] * 2)) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        agent.cancel()
        await agent.wait_idle()
        assert types(agent) == []
        assert pending(agent) == ["one"]
        agent.followup("two")
        await agent.wait_idle()
        assert admitted(agent) == ["one", "two"]


async def test_a_send_after_a_cancel_of_the_wake_wakes_again(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("hi")] * 2)) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        agent.cancel()
        agent.followup("two")
        await agent.wait_idle()
        assert admitted(agent) == ["one", "two"]


async def test_a_cancel_from_the_running_notification_opens_no_turn(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        with agent.on("status", lambda _: agent.cancel()):
            agent.followup("one")
            await agent.wait_idle()
        assert types(agent) == []
        agent.wake()
        await agent.wait_idle()
        assert reasons(agent) == ["completed"]


async def test_the_first_cause_stands(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Stall()])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel("first")
        agent.cancel("second")
        await agent.dispose()
        assert [(end.reason, end.cause) for end in ends(agent)] == [("aborted", "first")]
        assert trio.current_time() == 1


async def test_a_cancel_keeps_what_is_pending_and_parks_it(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Stall(), Text("2"), Text("3")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        agent.followup("two")
        await trio.sleep(1)
        agent.steer("steer")
        agent.cancel()
        await agent.wait_idle()
        assert trio.current_time() == 1
        assert pending(agent) == ["steer", "two"]
        await trio.sleep(10)
        assert reasons(agent) == ["aborted"]
        agent.followup("three")
        await agent.wait_idle()
        assert admitted(agent) == ["one", "steer", "two", "three"]


async def test_a_cancel_that_discards_drops_next_step_then_next_turn(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([Stall()])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        agent.followup("two")
        await trio.sleep(1)
        agent.steer("steer")
        agent.cancel(discard_inbox=True)
        await agent.wait_idle()
        assert [(one.list, one.outcome) for one in splices(agent)[-2:]] == [
            ("next-step", "canceled"),
            ("next-turn", "canceled"),
        ]
        assert pending(agent) == []
        assert reasons(agent) == ["aborted"]
        assert trio.current_time() == 1


async def test_a_later_cancel_may_still_discard(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Stall()])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        agent.followup("two")
        await trio.sleep(1)
        agent.cancel("first")
        agent.cancel("second", discard_inbox=True)
        await agent.wait_idle()
        assert pending(agent) == []
        assert ends(agent)[0].cause == "first"


async def test_a_discarding_cancel_with_nothing_open_empties_the_inbox(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.inject("context")
        agent.followup("one")
        agent.cancel(discard_inbox=True)
        await agent.wait_idle()
        assert pending(agent) == []
        assert types(agent) == []


async def test_an_observer_of_the_discard_sees_the_signal_set(autojump_clock: MockClock) -> None:
    causes: list[str | None] = []
    async with open_test_runtime(model=ScriptedModel([Stall()])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        agent.inject("two")
        agent.on("discarded", lambda _: causes.append(agent.turn.cause if agent.turn else None))
        agent.cancel("why", discard_inbox=True)
        await agent.wait_idle()
    assert causes == ["why"]


# After the cancel


async def test_a_waking_message_after_the_cancel_opens_a_turn_of_its_own(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([Stall(), Text("2")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel()
        agent.steer("late")
        assert [one.after_cancel for one in agent.inbox.next_turn] == [True]
        await agent.wait_idle()
        assert reasons(agent) == ["aborted", "completed"]
        assert admitted(agent) == ["one", "late"]


async def test_what_does_not_wake_after_the_cancel_is_parked(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Stall()])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel()
        agent.inject("late")
        await agent.wait_idle()
        assert reasons(agent) == ["aborted"]
        assert pending(agent) == ["late"]


async def test_removing_the_late_message_before_the_turn_has_closed_opens_no_turn(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([Stall()])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel()
        agent.inbox.remove(agent.followup("late"))
        await agent.wait_idle()
        assert reasons(agent) == ["aborted"]


async def test_a_second_cancel_that_discards_drops_the_late_message_too(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([Stall()])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel()
        agent.followup("late")
        agent.cancel(discard_inbox=True)
        await agent.wait_idle()
        assert reasons(agent) == ["aborted"]
        assert pending(agent) == []


async def test_the_queue_before_a_cancel_waits_behind_the_turn_of_the_late_message(
    autojump_clock: MockClock,
) -> None:
    """The late message opens turns again; they take the queue in its order."""
    async with open_test_runtime(model=ScriptedModel([Stall(), Text("2"), Text("3")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        agent.followup("two")
        await trio.sleep(1)
        agent.cancel()
        agent.followup("late")
        await agent.wait_idle()
        assert admitted(agent) == ["one", "two", "late"]


async def test_a_cancel_of_the_next_turn_stops_messages_sent_after_an_earlier_cancel(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([Stall(), Stall(), Text("3"), Text("4")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel("first")
        agent.followup("two")
        agent.followup("three")
        await trio.sleep(1)
        agent.cancel("second")
        await trio.sleep(1)
        assert reasons(agent) == ["aborted", "aborted"]
        assert pending(agent) == ["three"]
        assert status(agent) == "idle"


async def test_a_late_message_cancelled_in_preparation_stays_parked(
    autojump_clock: MockClock,
) -> None:
    async def hang(step: PreStep, next: Next[Decision]) -> Decision:
        await trio.sleep_forever()
        return await next()

    async with open_test_runtime(model=ScriptedModel([Stall()])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        agent.hooks.pre_step.add(hang)
        agent.cancel()
        agent.followup("late")
        await trio.sleep(1)
        agent.cancel()
        await agent.wait_idle()
        assert trio.current_time() == 2
        assert reasons(agent) == ["aborted", "aborted"]
        assert pending(agent) == ["late"]


async def test_a_wake_before_the_cancel_is_dropped_by_it(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Stall()])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        agent.followup("two")
        await trio.sleep(1)
        agent.wake()
        agent.cancel()
        await agent.wait_idle()
        assert reasons(agent) == ["aborted"]
        assert pending(agent) == ["two"]


async def test_a_wake_after_the_cancel_goes_on_when_the_turn_has_closed(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([Stall(), Text("2")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        agent.followup("two")
        await trio.sleep(1)
        agent.cancel()
        agent.wake()
        await agent.wait_idle()
        assert reasons(agent) == ["aborted", "completed"]


# Observers


async def test_an_observer_of_the_turns_end_may_send_and_a_turn_opens(
    autojump_clock: MockClock,
) -> None:
    def observe(event: Event) -> None:
        if isinstance(event.data, TurnEnded) and event.data.reason == "aborted":
            agent.followup("late")

    async with open_test_runtime(model=ScriptedModel([Stall(), Text("2")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.session.observe(observe)
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel()
        await agent.wait_idle()
        assert reasons(agent) == ["aborted", "completed"]


async def test_a_cancel_between_two_turns_stops_the_driver(autojump_clock: MockClock) -> None:
    def observe(event: Event) -> None:
        if isinstance(event.data, TurnEnded):
            agent.cancel()

    async with open_test_runtime(model=ScriptedModel([Text("1")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        agent.followup("two")
        agent.session.observe(observe)
        await agent.wait_idle()
        assert reasons(agent) == ["completed"]
        assert pending(agent) == ["two"]


async def test_a_cancel_from_the_observer_of_turn_start_closes_the_turn_without_a_step(
    autojump_clock: MockClock,
) -> None:
    def observe(event: Event) -> None:
        if isinstance(event.data, TurnStarted):
            agent.cancel("observer")

    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.session.observe(observe)
        agent.followup("one")
        await agent.wait_idle()
        assert types(agent) == ["turn/start", "turn/end"]
        assert ends(agent)[0].cause == "observer"
        assert pending(agent) == ["one"]


@pytest.mark.parametrize("discards", [False, True])
async def test_a_waiter_for_idle_is_told_when_preparation_is_cancelled(
    discards: bool, autojump_clock: MockClock
) -> None:
    async def slow(step: PreStep, next: Next[Decision]) -> Decision:
        await pass_waits()
        await trio.sleep(5)
        return await next()

    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(slow)
        agent.followup("one")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.wait_idle)
            await trio.sleep(1)
            agent.cancel(discard_inbox=discards)
        assert trio.current_time() == 1
        assert types(agent) == ["turn/start", "turn/end"]
        assert pending(agent) == ([] if discards else ["one"])
        assert [one.why for one in ends(agent)[0].unadmitted] == (["aborted"] if discards else [])


async def test_a_steer_before_a_failing_end_is_parked(autojump_clock: MockClock) -> None:
    model = ScriptedModel([[Wait(1), Fail("AUTH")], Text("2")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(0.5)
        agent.steer("steer")
        await agent.wait_idle()
        assert reasons(agent) == ["error"]
        assert [one.message.content for one in agent.inbox.next_step] == [
            user_message("steer").content
        ]


async def test_consecutive_turns_share_one_running_interval(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("1"), Text("2")])) as runtime:
        agent = await runtime.create_agent("a")
        told: list[StatusChanged] = []
        agent.on("status", told.append)
        agent.followup("one")
        agent.followup("two")
        await agent.wait_idle()
        assert len(facts(agent, TurnEnded)) == 2
        assert [one.status for one in told] == ["running", "idle"]
