"""A body that may finish behind a cancel knows of it at once, and starts no call any more (T9)."""

from collections.abc import Callable

import pytest
from trio.testing import MockClock

from trioloop import Agent, ToolContext, tool
from trioloop.events import NestedCallStarted, ToolResultLogged
from trioloop.testing import ScriptedModel, Text, ToolCall, open_test_runtime
from trioloop.tools import NestedCall

WAYS: dict[str, Callable[[Agent], object]] = {
    "cancel": lambda agent: agent.cancel("enough"),
    "disposal": lambda agent: agent.begin_disposal("disposed"),
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_body_that_finishes_behind_a_cancel_calls_no_tool_any_more(
    way: str, autojump_clock: MockClock
) -> None:
    codes: list[str | None] = []
    told: list[bool] = []

    @tool(effects="read-only")
    async def look() -> str:
        """Look."""
        return "seen"

    @tool(on_cancel="finish")
    async def work(context: ToolContext) -> str:
        """Call a tool, be cancelled, and call it again."""
        codes.append((await context.call_tools([NestedCall("look", {})]))[0].code)
        WAYS[way](agent)
        told.append(context.cancelled)
        codes.append((await context.call_tools([NestedCall("look", {})]))[0].code)
        return "finished"

    model = ScriptedModel([ToolCall("work"), Text("never asked for")])
    async with open_test_runtime(model=model, tools=[look, work]) as runtime:
        agent = await runtime.create_agent("a")
        settled = await agent.ask("go")
        facts = [event.data for event in agent.session.events()]
    assert settled.reason == "aborted"
    assert told == [True]
    assert codes == [None, "TOOL_ABORTED_BEFORE_DISPATCH"]
    assert len([fact for fact in facts if isinstance(fact, NestedCallStarted)]) == 1
    (result,) = [fact for fact in facts if isinstance(fact, ToolResultLogged)]
    assert (result.code, result.is_error) == (None, False)
