"""Hooks as agents ask them: scopes, order, time, context, and what hangs (H1 to H3, H6)."""

import logging

import pytest
import trio
from trio.testing import MockClock

from trioloop.agent.agent import Agent
from trioloop.events import TurnEnded
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import Decision, Hooks, PreStep, TurnStopping
from trioloop.testing import ScriptedModel, Text, open_test_runtime


def ends(agent: Agent) -> list[TurnEnded]:
    """How each turn of an agent ended."""
    return [event.data for event in agent.session.events() if isinstance(event.data, TurnEnded)]


async def test_runtime_wide_listeners_wrap_agent_scoped_ones(autojump_clock: MockClock) -> None:
    order: list[str] = []

    async def own(step: PreStep, next: Next[Decision]) -> Decision:
        order.append("own in")
        answer = await next()
        order.append("own out")
        return answer

    async def wide(step: PreStep, next: Next[Decision]) -> Decision:
        order.append("wide in")
        answer = await next()
        order.append("wide out")
        return answer

    async with open_test_runtime(model=ScriptedModel([Text("x"), Text("y")])) as runtime:
        agent, other = await runtime.create_agent("a"), await runtime.create_agent("b")
        agent.hooks.pre_step.add(own)
        runtime.hooks.pre_step.add(wide)
        await agent.ask("one")
        assert order == ["wide in", "own in", "own out", "wide out"]
        order.clear()
        await other.ask("one")
        assert order == ["wide in", "wide out"]


async def test_hooks_may_be_set_up_as_the_runtime_opens(autojump_clock: MockClock) -> None:
    asked: list[int] = []

    def setup(hooks: Hooks) -> None:
        @hooks.turn_stopping
        async def stopping(turn: TurnStopping) -> None:
            asked.append(turn.turn)

    async with open_test_runtime(model=ScriptedModel([Text("x")]), hooks=[setup]) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
    assert asked == [1]


async def test_a_hook_that_never_returns_ends_the_turn_at_its_deadline(
    autojump_clock: MockClock,
) -> None:
    async def hang(step: PreStep, next: Next[Decision]) -> Decision:
        await trio.sleep_forever()
        return await next()

    async with open_test_runtime(model=ScriptedModel([Text("b")])) as runtime:
        agent, other = await runtime.create_agent("a"), await runtime.create_agent("b")
        agent.hooks.pre_step.add(hang, timeout_s=5)
        agent.followup("one")
        assert (await other.ask("one")).reason == "completed"
        await agent.wait_idle()
        (end,) = ends(agent)
        assert (end.reason, end.code) == ("error", "HOOK_TIMEOUT")
        assert end.by is not None
        assert end.by.endswith("hang")
        assert trio.current_time() == 5


async def test_a_hook_needs_no_signal_argument_to_know_why_it_is_cancelled(
    autojump_clock: MockClock,
) -> None:
    causes: list[str | None] = []

    async def slow(step: PreStep, next: Next[Decision]) -> Decision:
        try:
            await trio.sleep_forever()
        finally:
            causes.append(agent.turn.cause if agent.turn is not None else None)
        return await next()

    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(slow)
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel("why")
        await agent.wait_idle()
    assert causes == ["why"]


@pytest.mark.parametrize("how", ["cancel", "dispose", "leave"])
async def test_a_hook_that_swallows_its_cancel_is_named_until_it_ends(
    how: str, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def swallow(step: PreStep, next: Next[Decision]) -> Decision:
        with trio.CancelScope(shield=True):
            await trio.sleep(36)
        return await next()

    async with open_test_runtime(model=ScriptedModel([Text("b")])) as runtime:
        agent, other = await runtime.create_agent("a"), await runtime.create_agent("b")
        agent.hooks.pre_step.add(swallow)
        agent.followup("one")
        await trio.sleep(1)
        with caplog.at_level(logging.WARNING, logger="trioloop"):
            if how == "cancel":
                agent.cancel()
                assert (await other.ask("one")).reason == "completed"
                assert trio.current_time() == 1
                await agent.wait_idle()
            elif how == "dispose":
                await agent.dispose()
    assert trio.current_time() == 36
    named = [record.getMessage() for record in caplog.records if "'a'" in record.getMessage()]
    assert len(named) == 3
    assert "agent.pre_step" in named[0]
    assert ends(agent)[0].reason == "aborted"


async def test_a_turn_that_closes_in_time_is_not_named(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("x")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.lowlevel.checkpoint()
        agent.cancel()
        await trio.sleep(60)
    assert caplog.records == []
