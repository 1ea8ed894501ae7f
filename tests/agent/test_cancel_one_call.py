"""One call is cancelled by its id; its turn and its neighbours go on (T12)."""

import trio
from trio.testing import MockClock

from tests.agent.reading import facts, status
from trioloop.events import ToolResultLogged
from trioloop.ids import call_id
from trioloop.testing import ScriptedModel, Text, ToolCall, open_test_runtime
from trioloop.tools.tool import tool


@tool(effects="read-only")
async def nap() -> str:
    """Sleep for two seconds."""
    await trio.sleep(2)
    return "slept"


async def test_a_call_is_cancelled_alone(autojump_clock: MockClock) -> None:
    model = ScriptedModel([[ToolCall("nap"), ToolCall("nap")], Text("done")])
    async with open_test_runtime(model=model, tools=[nap]) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        assert agent.cancel_call(call_id(1, 1, 0))
        await agent.wait_idle()
        assert trio.current_time() == 2
        assert [one.code for one in facts(agent, ToolResultLogged)] == ["TOOL_CANCELLED", None]
        assert len(model.requests) == 2


async def test_a_call_that_does_not_run_is_not_cancelled(autojump_clock: MockClock) -> None:
    model = ScriptedModel([ToolCall("nap"), Text("done")])
    async with open_test_runtime(model=model, tools=[nap]) as runtime:
        agent = await runtime.create_agent("a")
        assert not agent.cancel_call(call_id(1, 1, 0))
        agent.followup("one")
        await trio.sleep(1)
        assert not agent.cancel_call(call_id(1, 1, 7))
        await agent.wait_idle()
        assert not agent.cancel_call(call_id(1, 1, 0))
        assert status(agent) == "idle"
