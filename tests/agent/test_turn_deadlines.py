"""A turn may be given a time at which it is cancelled, with a cause of its own (R8)."""

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import ends
from trioloop import AgentHandle
from trioloop.hooks import Decision, Next, PreStep
from trioloop.hooks.dispatch import WaterfallListener
from trioloop.testing import ScriptedModel, Stall, Text, open_test_runtime


def limit(*seconds: float) -> WaterfallListener[PreStep, Decision]:
    """A listener that gives each turn some times, each from its first step on."""

    async def listener(step: PreStep, next: Next[Decision]) -> Decision:
        agent: AgentHandle = step.agent
        assert agent.turn is not None
        for one in seconds:
            agent.turn.cancel_at(trio.current_time() + one, f"after {one:g} s")
        return await next()

    return listener


@pytest.mark.parametrize("seconds", [(3,), (3, 9), (9, 3)])
async def test_the_earliest_time_cancels_the_turn_with_its_cause(
    seconds: tuple[float, ...], autojump_clock: MockClock
) -> None:
    async with open_test_runtime(model=ScriptedModel([Stall(), Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        with agent.hooks.pre_step.add(limit(*seconds)):
            settled = await agent.ask("one")
        assert (settled.reason, settled.cause) == ("aborted", "after 3 s")
        assert trio.current_time() == 3
        assert (await agent.ask("two")).reason == "completed"


async def test_a_turn_that_ends_in_time_is_left_alone(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(limit(3))
        assert (await agent.ask("one")).reason == "completed"
        await trio.sleep(5)
        assert [end.reason for end in ends(agent)] == ["completed"]


async def test_a_time_that_is_over_commits_nothing(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(limit(-1))
        assert (await agent.ask("one")).cause == "after -1 s"
        assert "step/start" not in [event.type for event in agent.session.events()]
        assert len(agent.inbox) == 1


async def test_the_first_cause_stands(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Stall()])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(limit(3))
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel("user")
        await agent.wait_idle()
        assert [end.cause for end in ends(agent)] == ["user"]


async def test_a_host_that_cancels_first_is_named(autojump_clock: MockClock) -> None:
    with trio.move_on_after(2):
        async with open_test_runtime(model=ScriptedModel([Stall()])) as runtime:
            agent = await runtime.create_agent("a")
            agent.hooks.pre_step.add(limit(3))
            await agent.ask("one")
    assert [end.cause for end in ends(agent)] == ["host-cancelled"]


async def test_a_time_that_was_over_first_stands_against_a_cancel(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([Stall()])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(limit(3))

        async def cancel_in_the_same_moment() -> None:
            await trio.sleep(3)
            agent.cancel("late")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel_in_the_same_moment)
            settled = await agent.ask("one")
        assert (settled.reason, settled.cause) == ("aborted", "after 3 s")
