"""What is sent while a cancelled turn unwinds, and what a model learns of it later (I4, R8)."""

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import admitted, ends, facts, pending, reasons, said, types
from trioloop import tool
from trioloop.events import AssistantAttemptLogged, Event, ToolResultLogged
from trioloop.hooks import AttemptFailed, Decision, Next, PreStep, Retry
from trioloop.testing import Fail, ScriptedModel, Text, ToolCall, open_test_runtime


@tool(effects="read-only")
async def slow_to_stop() -> str:
    """Takes three seconds to clean up."""
    try:
        await trio.sleep_forever()
    finally:
        with trio.CancelScope(shield=True):
            await trio.sleep(3)
    return "never"


@tool(effects="once")
async def write(text: str) -> str:
    """Write, which takes for ever."""
    await trio.sleep_forever()
    return text


@pytest.mark.parametrize("removed", [False, True], ids=["kept", "removed"])
async def test_a_followup_while_a_cancelled_tool_unwinds_has_a_turn_behind_it(
    removed: bool, autojump_clock: MockClock
) -> None:
    model = ScriptedModel([ToolCall("slow_to_stop"), Text("hi")])
    async with open_test_runtime(model=model, tools=[slow_to_stop]) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel()
        await trio.sleep(1)
        late = agent.followup("two")
        await trio.sleep(1)
        assert pending(agent) == ["two"]
        if removed:
            assert agent.inbox.remove(late)
        await agent.wait_idle()
        assert trio.current_time() == 4
        assert reasons(agent) == (["aborted"] if removed else ["aborted", "completed"])


async def test_a_prompt_while_a_pre_step_is_being_cancelled_runs_behind_it(
    autojump_clock: MockClock,
) -> None:
    async def slow(step: PreStep, next: Next[Decision]) -> Decision:
        if step.turn == 1:
            try:
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    await trio.sleep(2)
        return await next()

    async with open_test_runtime(model=ScriptedModel([Text("1"), Text("2")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(slow)
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel()
        await trio.sleep(1)
        agent.followup("two")
        await agent.wait_idle()
        assert reasons(agent) == ["aborted", "completed", "completed"]
        assert sorted(admitted(agent)) == ["one", "two"]


async def test_a_listener_that_sends_as_it_is_cancelled_has_a_turn_behind_it(
    autojump_clock: MockClock,
) -> None:
    async def send_on_cancel(step: PreStep, next: Next[Decision]) -> Decision:
        if step.turn == 1:
            try:
                await trio.sleep_forever()
            finally:
                agent.followup("from the listener")
        return await next()

    async with open_test_runtime(model=ScriptedModel([Text("1"), Text("2")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(send_on_cancel)
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel(discard_inbox=True)
        await agent.wait_idle()
        assert reasons(agent)[:2] == ["aborted", "completed"]
        assert "from the listener" in admitted(agent)


async def test_a_cancelled_lone_call_is_told_to_the_model_with_the_next_prompt(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([ToolCall("write", text="x"), Text("I was writing.")])
    async with open_test_runtime(model=model, tools=[write]) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("write x")
        await trio.sleep(1)
        agent.cancel()
        await agent.wait_idle()
        settled = await agent.ask("what did you just do?")
        assert (settled.reason, settled.text) == ("completed", "I was writing.")
        (result,) = facts(agent, ToolResultLogged)
        assert result.code == "TOOL_ABORTED"
        asked = list(model.requests[1].history)
        assert asked[1].calls[0].arguments == '{"text":"x"}'  # type: ignore[union-attr]
        assert "unknown" in said(model.requests[1])[2]
        assert said(model.requests[1])[3] == "U what did you just do?"


async def test_a_cancel_from_whoever_sees_the_failed_attempt_asks_nobody(
    autojump_clock: MockClock,
) -> None:
    asked: list[AttemptFailed] = []

    async def retry(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
        asked.append(failed)
        return Retry(0)

    def cancel(event: Event) -> None:
        if event.type == "assistant/attempt":
            agent.cancel("seen")

    async with open_test_runtime(model=ScriptedModel([Fail("SERVER")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request_error.add(retry)
        agent.session.observe(cancel)
        agent.followup("one")
        await agent.wait_idle()
        assert asked == []
        assert [(end.reason, end.cause) for end in ends(agent)] == [("aborted", "seen")]
        assert len(facts(agent, AssistantAttemptLogged)) == 1


async def test_idle_waits_for_a_recovery_that_a_cancel_does_not_reach(
    autojump_clock: MockClock,
) -> None:
    async def recover(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
        with trio.CancelScope(shield=True):
            await trio.sleep(5)
        return Retry(0)

    async with open_test_runtime(model=ScriptedModel([Fail("SERVER")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request_error.add(recover)
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel()
        await agent.wait_idle()
        assert trio.current_time() == 5
        assert reasons(agent) == ["aborted"]
        assert types(agent)[-3:] == ["assistant/attempt", "step/end", "turn/end"]
