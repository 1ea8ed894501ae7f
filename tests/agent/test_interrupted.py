"""A process that died in the middle, and the log that another one finds (P22, D4)."""

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import admitted, ends, facts, pending, reasons, said, types
from trioloop.events import AssistantAttemptLogged, AssistantMessageLogged, ToolResultLogged
from trioloop.ids import session_id
from trioloop.ports import Append, Owner
from trioloop.store import MemoryStore
from trioloop.testing import ScriptedModel, Stall, Text, ToolCall, open_test_runtime
from trioloop.tools.tool import tool

NAME = session_id("a")


@tool
async def write() -> str:
    """Write, in a minute."""
    await trio.sleep(60)
    return "written"


async def died(model: ScriptedModel, *sends: str) -> MemoryStore:
    """A store as it was a second after some sends, when its process died."""
    store, image = MemoryStore(), MemoryStore()
    async with open_test_runtime(model=model, store=store, tools=[write]) as runtime:
        agent = await runtime.create_agent(NAME)
        for text in sends:
            agent.followup(text)
        await trio.sleep(1)
        await agent.session.checkpoint()
        rows = tuple(await store.read(NAME))
        lease = await image.open(NAME, Owner(1, "gone"), create=True)
        await image.commit([Append(lease, 0, "copy", rows)])
        await image.release(lease)
    return image


async def test_a_death_while_it_streams_leaves_an_interrupted_turn(
    autojump_clock: MockClock,
) -> None:
    store = await died(ScriptedModel([[Text("half"), Stall()]]), "one", "two")
    model = ScriptedModel([Text("2"), Text("3")])
    async with open_test_runtime(model=model, store=store) as runtime:
        agent = await runtime.resume_agent(NAME)
        assert reasons(agent) == ["interrupted"]
        assert types(agent)[-2:] == ["step/end", "turn/end"]
        assert facts(agent, AssistantMessageLogged) == []
        assert facts(agent, AssistantAttemptLogged) == []
        assert pending(agent) == ["two"]
        await trio.sleep(10)
        assert len(ends(agent)) == 1
        settled = await agent.ask("three")
        assert settled.reason == "completed"
        assert said(model.requests[0]) == ["U one", "U two"]
        assert admitted(agent) == ["one", "two", "three"]


async def test_a_death_while_calls_run_tells_which_may_have_happened(
    autojump_clock: MockClock,
) -> None:
    store = await died(ScriptedModel([[ToolCall("write"), ToolCall("write")]]), "one")
    model = ScriptedModel([Text("2")])
    async with open_test_runtime(model=model, store=store, tools=[write]) as runtime:
        agent = await runtime.resume_agent(NAME)
        codes = [one.code for one in facts(agent, ToolResultLogged)]
        assert codes == ["TOOL_OUTCOME_UNKNOWN", "TOOL_NOT_STARTED"]
        assert (await agent.ask("two")).reason == "completed"
        assert len(said(model.requests[0])) == 5


@pytest.mark.parametrize("sends", [0, 1])
async def test_a_log_that_was_whole_is_left_as_it_is(sends: int, autojump_clock: MockClock) -> None:
    store = await died(ScriptedModel([Text("x")]), *["one"][:sends])
    async with open_test_runtime(model=ScriptedModel([]), store=store) as runtime:
        agent = await runtime.resume_agent(NAME)
        assert len(await store.read(NAME)) == agent.session.seq + 1


async def test_a_repair_is_not_repaired_again(autojump_clock: MockClock) -> None:
    store = await died(ScriptedModel([[Text("half"), Stall()]]), "one")
    lengths = []
    for _ in range(3):
        async with open_test_runtime(model=ScriptedModel([]), store=store) as runtime:
            lengths.append((await runtime.resume_agent(NAME)).session.seq)
    assert len(set(lengths)) == 1
