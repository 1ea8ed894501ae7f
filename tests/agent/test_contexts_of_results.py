"""Messages that results add wait for the next step, whatever ends the turn (T7, I5)."""

import pytest
import trio
import trio.testing

from trioloop import ToolContext, tool
from trioloop.messages import text_of
from trioloop.testing import ScriptedModel, Text, ToolCall, open_test_runtime


@tool(effects="read-only")
async def note(context: ToolContext) -> str:
    """Add a context."""
    context.add_context("noted")
    return "ok"


@tool(effects="read-only")
async def slow() -> str:
    """Take long."""
    await trio.sleep(60)
    return "done"


CALLS = [ToolCall("note"), ToolCall("slow")]


async def test_a_context_joins_the_next_step_behind_the_results(
    autojump_clock: trio.testing.MockClock,
) -> None:
    model = ScriptedModel([CALLS, Text("seen")])
    async with open_test_runtime(model=model, tools=[note, slow]) as runtime:
        agent = await runtime.create_agent()
        await agent.ask("go")
        kinds = [message.__class__.__name__ for message in model.requests[1].messages]
    assert kinds[-3:] == ["ToolResultMessage", "ToolResultMessage", "UserMessage"]


@pytest.mark.parametrize("how", ["cancel", "dispose", "leave"])
async def test_a_context_stays_pending_when_the_turn_is_cut_off(
    how: str, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_test_runtime(model=ScriptedModel([CALLS]), tools=[note, slow]) as runtime:
        agent = await runtime.create_agent()
        agent.followup("go")
        await trio.sleep(1)
        if how == "cancel":
            agent.cancel()
            await agent.wait_idle()
        elif how == "dispose":
            await agent.dispose()
    last = agent.session.state.last_turn
    assert last is not None
    assert (last.reason, last.cause) == ("aborted", "user" if how == "cancel" else "disposed")
    pending = [text_of(one.message.content) for one in agent.session.state.inbox]
    assert pending == ["noted"]
