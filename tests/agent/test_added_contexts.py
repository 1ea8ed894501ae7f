"""Contexts that the results of a batch add, whatever happens to its turn meanwhile (T7)."""

import trio
from trio.testing import MockClock

from tests.agent.reading import ends, facts, pending, reasons, said
from trioloop.events import ToolResultLogged
from trioloop.limits import Limits
from trioloop.messages import user_message
from trioloop.testing import ScriptedModel, Text, ToolCall, open_test_runtime
from trioloop.tools.context import ToolContext
from trioloop.tools.tool import tool


@tool(effects="read-only")
async def note(text: str, context: ToolContext, wait_s: float = 0) -> str:
    """Add a context and wait."""
    context.add_context(user_message(text, source="tool"))
    await trio.sleep(wait_s)
    return text


async def test_contexts_join_the_next_step_in_model_order(autojump_clock: MockClock) -> None:
    calls = [ToolCall("note", text="a", wait_s=2), ToolCall("note", text="b")]
    model = ScriptedModel([calls, Text("hi")])
    async with open_test_runtime(model=model, tools=[note]) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        assert said(model.requests[1])[2:] == ["T a", "T b", "U a", "U b"]


async def test_the_contexts_of_a_cancelled_batch_are_parked(autojump_clock: MockClock) -> None:
    calls = [ToolCall("note", text="a"), ToolCall("note", text="b", wait_s=50)]
    model = ScriptedModel([calls, Text("hi")])
    async with open_test_runtime(model=model, tools=[note]) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel()
        await agent.wait_idle()
        assert trio.current_time() == 1
        assert reasons(agent) == ["aborted"]
        assert pending(agent)[0] == "a"
        assert not any(one.wakeup for one in agent.inbox.next_step)


async def test_the_contexts_of_a_disposed_agent_are_parked(autojump_clock: MockClock) -> None:
    calls = [ToolCall("note", text="a"), ToolCall("note", text="b", wait_s=50)]
    model = ScriptedModel([calls, Text("hi")])
    async with open_test_runtime(model=model, tools=[note]) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        await agent.dispose()
        assert trio.current_time() == 1
        assert [(one.reason, one.cause) for one in ends(agent)] == [("aborted", "disposed")]
        assert len(facts(agent, ToolResultLogged)) == 2
        assert pending(agent)[0] == "a"


async def test_a_full_inbox_takes_a_batchs_contexts(autojump_clock: MockClock) -> None:
    model = ScriptedModel([ToolCall("note", text="a", wait_s=1), Text("hi")])
    limits = Limits(queue_messages_max=1)
    async with open_test_runtime(model=model, tools=[note], limits=limits) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(0.5)
        agent.send("later", wakeup=False)
        await agent.wait_idle()
        assert said(model.requests[1])[-1] == "U a"
