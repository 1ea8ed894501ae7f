"""`agent.compact()`: between turns, and all that the model has answered. CMP-19, 24."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import facts, said
from tests.plugins.compacting import LONG, SUMMARY, opened, outcomes
from tests.plugins.conversing import Summarising, converse, nodes, script
from trioloop import Agent
from trioloop.errors import AgentBusyError, AgentDisposedError, ModelFailure
from trioloop.events import AsideEnded, AsideStarted
from trioloop.hooks import Next, PreStep
from trioloop.plugins.compaction import CompactionStarted, CompactionSummarised
from trioloop.testing import (
    CancelPoint,
    Fail,
    Stall,
    Text,
    ToolCall,
    Wait,
    cancel_at_every_checkpoint,
)


async def test_by_hand_all_that_was_answered_is_summarised() -> None:
    model = Summarising([*script([[LONG], []]), Text("end")])
    async with opened(model) as runtime:
        agent = await converse(runtime, 2)
        assert await agent.compact("the names")
        assert said(model.asides[0])[-1].endswith("Above all, keep this: the names")
        assert not await agent.compact()
        await agent.ask("more?")
        assert said(model.steps[-1]) == [SUMMARY, "U more?"]


async def test_what_is_sent_meanwhile_waits_its_turn(autojump_clock: MockClock) -> None:
    model = Summarising([*script([[LONG]]), Text("end")], [Wait(1), Text("short")])
    async with opened(model) as runtime:
        agent = await converse(runtime, 1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.compact)
            await trio.sleep(0.5)
            agent.inject("context")
            assert len(agent.session.state.inbox) == 1
            settled = await agent.ask("more?")
        assert settled.text == "end"
        assert said(model.steps[-1])[0].endswith("short")


async def test_a_failure_by_hand_is_raised() -> None:
    model = Summarising(script([[LONG]]), Fail("SERVER"))
    async with opened(model) as runtime:
        agent = await converse(runtime, 1)
        with pytest.raises(ModelFailure):
            await agent.compact()
        assert outcomes(agent) == ["failed"]


async def test_an_agent_cannot_wait_for_it_in_its_own_turn() -> None:
    model = Summarising(script([[LONG]]))
    async with opened(model) as runtime:

        @runtime.hooks.pre_step
        async def inside(step: PreStep, next: Next[Any]) -> Any:
            with pytest.raises(AgentBusyError):
                await runtime.agents[step.agent.name].compact()
            return await next()

        await converse(runtime, 1)


async def test_cancelled_it_has_changed_nothing(autojump_clock: MockClock) -> None:
    model = Summarising(script([[LONG]]), [Text("half"), Stall()])
    async with opened(model) as runtime:
        agent = await converse(runtime, 1)
        before = nodes(agent)
        with trio.move_on_after(1) as scope:
            await agent.compact()
        assert scope.cancelled_caught
        assert nodes(agent) == before
        assert outcomes(agent) == ["cancelled"]
        assert facts(agent, CompactionSummarised) == []


def test_cancelled_at_any_checkpoint_it_has_replaced_all_or_nothing() -> None:
    outcomes_seen: set[str] = set()

    async def scenario(point: CancelPoint) -> None:
        model = Summarising(
            [*script([[LONG]]), Text("on")], ToolCall("give", chars=1), Text("short")
        )
        async with opened(model) as runtime:
            agent = await converse(runtime, 1)
            before = nodes(agent)
            with trio.CancelScope() as scope:
                point.arm(scope.cancel)
                await agent.compact()
            point.disarm()
            replaced = outcomes(agent) == ["replaced"]
            assert replaced == (nodes(agent) != before)
            assert len(facts(agent, CompactionStarted)) == len(outcomes(agent)) <= 1
            assert len(facts(agent, AsideStarted)) == len(facts(agent, AsideEnded))
            outcomes_seen.update(outcomes(agent))
            assert (await agent.ask("more?")).text == "on"

    assert cancel_at_every_checkpoint(scenario) > 5
    assert outcomes_seen == {"cancelled", "replaced"}


async def test_an_agent_that_is_disposed_of_meanwhile_has_replaced_nothing(
    autojump_clock: MockClock,
) -> None:
    model = Summarising(script([[LONG]]), [Text("half"), Stall()])
    async with opened(model) as runtime:
        agent = await converse(runtime, 1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_disposed_meanwhile, agent)
            await trio.sleep(1)
            await agent.dispose()
        assert outcomes(agent) == ["cancelled"]


async def _disposed_meanwhile(agent: Agent) -> None:
    with pytest.raises(AgentDisposedError):
        await agent.compact()
