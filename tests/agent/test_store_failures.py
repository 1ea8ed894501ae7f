"""What a failing store does to the agents whose log it keeps (D3, P19, P20)."""

from collections.abc import Sequence

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import admitted, ends, facts, pass_waits, pending, reasons, types
from trioloop.agent.agent import Agent
from trioloop.agent.notifications import TurnFailed
from trioloop.errors import FencedError, StoreFailedError
from trioloop.events import ToolResultLogged
from trioloop.ports import Append, CommitAnswer, Refused
from trioloop.store import MemoryStore
from trioloop.testing import ScriptedModel, Stall, Text, ToolCall, Wait, open_test_runtime
from trioloop.tools.tool import tool


class FaultyStore(MemoryStore):
    """A store that fails, or refuses one session, while a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.fails = False
        self.fenced: str | None = None
        self.commits = 0

    async def commit(self, appends: Sequence[Append]) -> list[CommitAnswer]:
        """Write, unless told otherwise."""
        self.commits += 1
        await trio.lowlevel.checkpoint()
        if self.fails:
            raise StoreFailedError("disk full")
        answers = await super().commit([one for one in appends if one.lease.session != self.fenced])
        left = iter(answers)
        return [
            Refused(FencedError(self.fenced, 9)) if one.lease.session == self.fenced else next(left)
            for one in appends
        ]


@tool
async def write() -> str:
    """Write, in a second."""
    await trio.sleep(1)
    return "written"


async def test_a_failure_while_it_streams_ends_the_turn_and_starts_nothing(
    autojump_clock: MockClock,
) -> None:
    store = FaultyStore()
    model = ScriptedModel([[Text("half"), Stall()]])
    async with open_test_runtime(model=model, store=store) as runtime:
        agent = await runtime.create_agent("a")
        told: list[TurnFailed] = []
        agent.on("error", told.append)
        agent.followup("one")
        agent.followup("two")
        await trio.sleep(1)
        store.fails = True
        agent.inject("context")
        await trio.sleep(5)
        assert agent.status == "idle"
        assert [(one.reason, one.code) for one in ends(agent)] == [("error", "STORE_FAILED")]
        assert types(agent)[-3:] == ["assistant/message", "step/end", "turn/end"]
        assert pending(agent) == ["context", "two"]
        assert len(model.requests) == 1
        assert [one.code for one in told] == ["STORE_FAILED"]
        store.fails = False


@tool(on_cancel="finish")
async def finish() -> str:
    """Finish whatever happens, in five seconds."""
    await trio.sleep(5)
    return "finished"


async def test_a_failure_outranks_a_cancel_that_came_before_it(autojump_clock: MockClock) -> None:
    store = FaultyStore()
    model = ScriptedModel([ToolCall("finish")])
    async with open_test_runtime(model=model, store=store, tools=[finish]) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel("why")
        await trio.sleep(1)
        store.fails = True
        agent.inject("context")
        await agent.wait_idle()
        assert [(one.reason, one.code) for one in ends(agent)] == [("error", "STORE_FAILED")]
        store.fails = False


async def test_a_failure_at_the_gate_sends_no_request(autojump_clock: MockClock) -> None:
    store = FaultyStore()
    model = ScriptedModel([])
    async with open_test_runtime(model=model, store=store) as runtime:
        agent = await runtime.create_agent("a")
        await agent.session.checkpoint()
        store.fails = True
        settled = await agent.ask("one")
        assert (settled.reason, settled.code) == ("error", "STORE_FAILED")
        assert settled.store_error is not None
        assert types(agent)[-3:] == ["assistant/attempt", "step/end", "turn/end"]
        assert model.requests == []
        store.fails = False


async def test_a_failure_in_a_call_is_no_result_of_it(autojump_clock: MockClock) -> None:
    store = FaultyStore()
    model = ScriptedModel([[ToolCall("write"), ToolCall("write")]])
    async with open_test_runtime(model=model, store=store, tools=[write]) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(0.5)
        store.fails = True
        await agent.wait_idle()
        assert [(one.reason, one.code) for one in ends(agent)] == [("error", "STORE_FAILED")]
        results = facts(agent, ToolResultLogged)
        assert len(results) == 2
        assert "disk full" not in str([one.content for one in results])
        assert len(model.requests) == 1
        store.fails = False


async def test_a_failure_that_a_body_meets_itself_is_no_fault_of_the_scheduler(
    autojump_clock: MockClock,
) -> None:
    store = FaultyStore()

    @tool(effects="read-only", on_cancel="finish")
    async def publish() -> None:
        """Tell others of this call once it is durable."""
        store.fails = True
        await agent.session.checkpoint()

    model = ScriptedModel([ToolCall("publish"), Text("again")])
    async with open_test_runtime(model=model, store=store, tools=[publish]) as runtime:
        agent = await runtime.create_agent("a")
        settled = await agent.ask("one")
        assert (settled.reason, settled.code) == ("error", "STORE_FAILED")
        store.fails = False
        await agent.session.retry_store()
        assert (await agent.ask("two")).text == "again"


async def test_an_agent_goes_on_once_the_store_does(autojump_clock: MockClock) -> None:
    store = FaultyStore()
    async with open_test_runtime(
        model=ScriptedModel([Text("1"), Text("2")]), store=store
    ) as runtime:
        agent = await runtime.create_agent("a")
        await agent.session.checkpoint()
        store.fails = True
        assert (await agent.ask("one")).code == "STORE_FAILED"
        await agent.wait_idle()
        agent.followup("two")
        await agent.wait_idle()
        assert len(ends(agent)) == 1, "it refuses turns while the store fails"
        assert pending(agent) == ["two"]
        store.fails = False
        agent.wake()
        await agent.wait_idle()
        assert reasons(agent) == ["error", "completed"]
        assert agent.session.durable_seq == agent.session.seq
        rows = await store.read(agent.name)
        assert [row.seq for row in rows] == list(range(agent.session.seq + 1))


async def test_a_failure_behind_the_turns_end_keeps_its_reason(autojump_clock: MockClock) -> None:
    store = FaultyStore()
    async with open_test_runtime(model=ScriptedModel([[Text("x")]]), store=store) as runtime:
        agent = await runtime.create_agent("a")

        def fail(told: object) -> None:
            store.fails = True

        agent.on("stream-end", fail)
        settled = await agent.ask("one")
        assert settled.reason == "completed"
        assert settled.store_error is not None
        assert "disk full" in settled.store_error
        assert reasons(agent) == ["completed"]
        store.fails = False


async def test_a_fenced_agent_stops_and_others_go_on(autojump_clock: MockClock) -> None:
    store = FaultyStore()
    model = ScriptedModel(lambda _: [Text("x"), Wait(2), Text("y")])
    async with open_test_runtime(model=model, store=store) as runtime:
        agent, other = await runtime.create_agent("a"), await runtime.create_agent("b")
        await agent.session.checkpoint()
        agent.followup("one")
        other.followup("one")
        await trio.sleep(1)
        store.fenced = "a"
        agent.inject("context")
        durable = agent.session.durable_seq
        await runtime.wait_idle()
        assert [(one.reason, one.code) for one in ends(agent)] == [("error", "FENCED")]
        assert agent.session.durable_seq == durable
        assert reasons(other) == ["completed"]
        agent.followup("two")
        await agent.wait_idle()
        assert len(ends(agent)) == 1
        rows = await store.read(agent.name)
        assert len(rows) == durable + 1


@pytest.mark.parametrize("kind", ["fails", "fenced"])
async def test_a_runtime_with_a_broken_store_is_left_in_bounded_time(
    kind: str, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    store = FaultyStore()
    agents: list[Agent] = []
    async with open_test_runtime(model=ScriptedModel([Stall()]), store=store) as runtime:
        agents.append(await runtime.create_agent("a"))
        agents[0].followup("one")
        await trio.sleep(1)
        setattr(store, kind, True if kind == "fails" else "a")
        await pass_waits()
    assert trio.current_time() <= 1 + runtime.limits.close_s
    assert len(ends(agents[0])) == 1
    assert admitted(agents[0]) == ["one"]
    assert "before it was durable" in caplog.text
