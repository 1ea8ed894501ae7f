"""Faults of our own, and interrupts that reach an agent's task (R10, P21)."""

import pytest
import trio
import trio.lowlevel
from trio.testing import MockClock

from tests.agent.reading import ends, facts, reasons, types
from trioloop.agent.agent import Agent
from trioloop.errors import AgentFailedError, GrammarError, InternalError
from trioloop.events import ToolResultLogged
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import Decision, PreStep, TurnStopping
from trioloop.testing import ScriptedModel, Stall, Text, ToolCall, open_test_runtime
from trioloop.tools.tool import tool


@tool(effects="read-only")
async def look() -> str:
    """Look around."""
    await trio.sleep(1)
    return "seen"


def break_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the scheduler fail by a fault of its own."""

    async def broken(*_: object, **__: object) -> None:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("scheduler")

    monkeypatch.setattr("trioloop.agent.step.dispatch.run_batch", broken)


async def test_a_failing_scheduler_answers_each_call_and_ends_the_turn_internal(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    break_scheduler(monkeypatch)
    model = ScriptedModel(lambda _: [ToolCall("look"), ToolCall("look")])
    async with open_test_runtime(model=model, tools=[look], strict=False) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await agent.wait_idle()
        assert [one.code for one in facts(agent, ToolResultLogged)] == ["TOOL_INTERNAL"] * 2
        assert types(agent)[-2:] == ["step/end", "turn/end"]
        assert [(one.reason, one.code) for one in ends(agent)] == [("error", "INTERNAL")]


async def test_a_fault_disposes_of_that_agent_and_others_go_on(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    break_scheduler(monkeypatch)
    model = ScriptedModel([ToolCall("look"), Text("fine")])
    async with open_test_runtime(model=model, tools=[look], strict=False) as runtime:
        agent, other = await runtime.create_agent("a"), await runtime.create_agent("b")
        with pytest.raises(AgentFailedError):
            await agent.ask("one")
        await trio.lowlevel.checkpoint()
        await agent.dispose()
        assert list(runtime.agents) == ["b"]
        assert (await other.ask("one")).text == "fine"


async def test_a_strict_runtime_raises_the_fault(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    break_scheduler(monkeypatch)
    model = ScriptedModel([ToolCall("look")])

    async def run() -> None:
        async with open_test_runtime(model=model, tools=[look]) as runtime:
            agent = await runtime.create_agent("a")
            agent.followup("one")
            await agent.wait_idle()

    with pytest.raises(InternalError, match="scheduler") as caught:
        await run()
    assert any("please report it" in note for note in caught.value.__notes__)


async def test_a_grammar_error_that_a_listener_causes_is_the_listeners(
    autojump_clock: MockClock,
) -> None:
    async def meddling(step: PreStep, next: Next[Decision]) -> Decision:
        raise GrammarError(1, "a rule", "this", "that")

    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(meddling)
        settled = await agent.ask("one")
        assert (settled.reason, settled.code) == ("error", "GRAMMAR")
        assert "a" in runtime.agents


@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
async def test_an_interrupt_in_a_hook_closes_the_log_and_comes_out(
    error: BaseException, busy: bool, autojump_clock: MockClock
) -> None:
    async def interrupted(turn: TurnStopping) -> None:
        await trio.sleep(1)
        raise error

    agents: list[Agent] = []

    async def run() -> None:
        async with open_test_runtime(
            model=ScriptedModel([Text("x"), Stall()] if busy else [Text("x")])
        ) as runtime:
            agents.append(await runtime.create_agent("a"))
            agents[0].hooks.turn_stopping.add(interrupted)
            agents[0].followup("one")
            if busy:
                await trio.sleep(0.5)
                agents.append(await runtime.create_agent("b"))
                agents[1].followup("one")
            await trio.sleep_forever()

    with pytest.raises(type(error)) as caught:
        await run()
    assert caught.value is error
    assert trio.current_time() == 1
    assert reasons(agents[0]) == ["error"]
    if busy:
        assert reasons(agents[1]) == ["aborted"]


async def test_an_interrupt_in_a_tool_closes_the_log_and_comes_out(
    autojump_clock: MockClock,
) -> None:
    @tool
    async def interrupted() -> str:
        await trio.sleep(1)
        raise KeyboardInterrupt

    agents: list[Agent] = []

    async def run() -> None:
        async with open_test_runtime(
            model=ScriptedModel([ToolCall("interrupted")]), tools=[interrupted]
        ) as runtime:
            agents.append(await runtime.create_agent("a"))
            agents[0].followup("one")
            await trio.sleep_forever()

    with pytest.raises(KeyboardInterrupt):
        await run()
    assert len(facts(agents[0], ToolResultLogged)) == 1
    assert reasons(agents[0]) == ["error"]


async def test_an_interrupt_and_an_error_of_the_block_both_come_out(
    autojump_clock: MockClock,
) -> None:
    async def interrupted(turn: TurnStopping) -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise KeyboardInterrupt

    async def run() -> None:
        async with open_test_runtime(model=ScriptedModel([Text("x")])) as runtime:
            agent = await runtime.create_agent("a")
            agent.hooks.turn_stopping.add(interrupted)
            agent.followup("one")
            await trio.sleep(1)
            raise ValueError("mine")

    with pytest.raises(BaseExceptionGroup) as caught:  # noqa: ASYNC401 - in either order
        await run()
    assert {type(error) for error in caught.value.exceptions} == {ValueError, KeyboardInterrupt}
