"""Calls that a dead process left open, and that `resume_agent(rerun=True)` runs again (D4)."""

from collections import Counter
from collections.abc import Sequence

import attrs
import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import ends, facts, pending, reasons, said
from trioloop.agent.agent import Agent
from trioloop.agent.notifications import Settled
from trioloop.codec import decode_event
from trioloop.events import Event, NestedCallStarted, ToolCallStarted, ToolResultLogged
from trioloop.hooks import Allow, CallRequest, Deny, Next
from trioloop.hooks.points import Hooks, PrePolicy
from trioloop.ids import session_id
from trioloop.log.fold import OpenCall, fold
from trioloop.ports import Append, Owner, StoredRow
from trioloop.store import MemoryStore
from trioloop.testing import ScriptedModel, Text, ToolCall, open_test_runtime
from trioloop.tools import NestedCall, Tool, ToolContext, tool

NAME = session_id("a")


class World:
    """Tools of each kind, and which of their bodies ran, by key."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, str]] = []

    @property
    def tools(self) -> list[Tool]:
        """A tool of each kind, and two that call others."""

        @tool(effects="read-only")
        async def look(context: ToolContext) -> str:
            """Look."""
            return await self.work("look", context)

        @tool(effects="idempotent")
        async def put(line: str, context: ToolContext) -> str:
            """Put a line down."""
            return await self.work("put", context)

        @tool
        async def pay(context: ToolContext) -> str:
            """Pay."""
            return await self.work("pay", context)

        @tool(effects="idempotent")
        async def tidy(context: ToolContext) -> str:
            """Look, put two equal lines down and another one."""
            lines = [NestedCall("put", {"line": line}) for line in ("same", "same", "other")]
            await context.call_tools([NestedCall("look", {}), *lines])
            return await self.work("tidy", context)

        @tool(effects="idempotent")
        async def shop(context: ToolContext) -> str:
            """Pay, from inside a call."""
            await context.call_tools([NestedCall("pay", {})])
            return await self.work("shop", context)

        return [look, put, pay, tidy, shop]

    async def work(self, name: str, context: ToolContext) -> str:
        """A body that takes a second."""
        self.ran.append((name, context.key))
        await trio.sleep(1)
        return f"{name} is done"


CALLS = [
    ToolCall("look"),
    ToolCall("look"),
    ToolCall("put", line="x"),
    ToolCall("pay"),
    ToolCall("tidy"),
    ToolCall("shop"),
    ToolCall("look"),
]


def polite(hooks: Hooks) -> None:
    """A pre-policy that waits, and writes what is put down in capitals."""

    async def change(request: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
        await trio.sleep(1)
        if request.name != "put":
            return await next()
        return Allow({"line": str(request.arguments["line"]).upper()})

    hooks.pre_execute(change)


async def image(rows: Sequence[StoredRow]) -> MemoryStore:
    """A store that has these rows of the session."""
    store = MemoryStore()
    lease = await store.open(NAME, Owner(1, "gone"), create=True)
    await store.commit([Append(lease, 0, "copy", tuple(rows))])
    await store.release(lease)
    return store


async def turn_of_calls(*, asks: bool = False) -> tuple[World, Sequence[StoredRow]]:
    """The rows of a turn with calls of all kinds that came to its end."""
    store, world = MemoryStore(), World()
    model = ScriptedModel([CALLS, Text("done")])
    hooks = [polite] if asks else []
    async with open_test_runtime(
        model=model, store=store, tools=world.tools, hooks=hooks
    ) as runtime:
        agent = await runtime.create_agent(NAME)
        await agent.ask("go")
    return world, await store.read(NAME)


@attrs.frozen
class TakenUp:
    """What came of taking up a log."""

    events: tuple[Event, ...]
    rows: Sequence[StoredRow]
    ran: list[tuple[str, str]]


async def taken_up(rows: Sequence[StoredRow], *, rerun: bool = True) -> TakenUp:
    """Take up a log that ends with these rows, and wait until nothing more happens."""
    store, world = await image(rows), World()
    async with open_test_runtime(
        model=ScriptedModel([]), store=store, tools=world.tools, hooks=[polite]
    ) as runtime:
        agent = await runtime.resume_agent(NAME, rerun=rerun)
        await agent.wait_idle()
        events = agent.session.events()
    return TakenUp(events, await store.read(NAME), world.ran)


def open_calls(events: Sequence[Event]) -> list[OpenCall]:
    """The calls that a log leaves without a result."""
    turn = fold(events).turn
    if turn is None or turn.step is None:
        return []
    return [turn.step.calls[block.call] for block in turn.step.unanswered]


def has_paid(call: OpenCall) -> bool:
    """Whether a call is a payment, or may have made one."""
    nested = (call.nested or {}).values()
    return "pay" in (call.block.name, *(one.name for one in nested if one.dispatched))


def runs_again(call: OpenCall) -> bool:
    """Whether a call is to be run again."""
    return call.dispatched and not has_paid(call)


def assert_right(rows: Sequence[StoredRow], after: TakenUp) -> None:
    """What must hold of each log that was taken up."""
    left = open_calls([decode_event(row.payload) for row in rows])
    again = [f"{NAME}/{call.block.call}" for call in left if runs_again(call)]
    assert Counter(key for _, key in after.ran if key.count("/") == 1) == Counter(again)
    codes = {
        event.data.call: event.data.code
        for event in after.events
        if isinstance(event.data, ToolResultLogged)
    }
    for call in left:
        lost = "TOOL_OUTCOME_UNKNOWN" if call.dispatched else "TOOL_NOT_STARTED"
        assert codes[call.block.call] == (None if runs_again(call) else lost)
    starts = [e.data.call for e in after.events if isinstance(e.data, ToolCallStarted)]
    assert len(set(starts)) == len(starts)
    assert after.rows[: len(rows)] == rows
    assert fold(after.events).turn is None


@pytest.mark.parametrize("asks", [False, True])
async def test_behind_each_event_harmless_calls_run_again_and_no_other(
    asks: bool, autojump_clock: MockClock
) -> None:
    world, rows = await turn_of_calls(asks=asks)
    keys = Counter(world.ran)
    ran: set[str] = set()
    for length in range(1, len(rows) + 1):
        after = await taken_up(rows[:length])
        assert_right(rows[:length], after)
        assert Counter(after.ran) <= keys  # each under the key that it had, or would have had
        ran |= {name for name, _ in after.ran}
    assert ran == {"look", "put", "tidy", "shop", "pay"}


async def test_a_death_while_calls_run_again_is_taken_up_alike(
    autojump_clock: MockClock,
) -> None:
    world, rows = await turn_of_calls()
    keys = Counter(world.ran)
    for length in range(8, len(rows), 5):
        once_more = await taken_up(rows[:length])
        for died in range(length, len(once_more.rows) + 1):
            after = await taken_up(once_more.rows[:died])
            assert_right(once_more.rows[:died], after)
            assert Counter(after.ran) <= keys


async def test_what_was_taken_up_once_stays_as_it_is(autojump_clock: MockClock) -> None:
    _, rows = await turn_of_calls()
    for length in range(1, len(rows) + 1, 4):
        after = await taken_up(rows[:length])
        assert (await taken_up(after.rows)).rows == after.rows


async def test_a_call_that_may_have_paid_from_inside_never_pays_again(
    autojump_clock: MockClock,
) -> None:
    _, rows = await turn_of_calls()
    began = next(seq for seq, row in enumerate(rows) if b'"name":"pay"' in row.payload[:200])
    for length in range(began, len(rows)):
        facts = [decode_event(row.payload).data for row in rows[:length]]
        paid = any(isinstance(fact, NestedCallStarted) and fact.name == "pay" for fact in facts)
        after = await taken_up(rows[:length])
        assert not (paid and "pay" in {name for name, _ in after.ran})


# What may happen meanwhile


async def died_in_looks() -> MemoryStore:
    """A store whose process died while two looks and a payment behind them were open."""
    store, world = MemoryStore(), World()
    model = ScriptedModel([[ToolCall("look"), ToolCall("look"), ToolCall("pay")]])
    async with open_test_runtime(model=model, store=store, tools=world.tools) as runtime:
        agent = await runtime.create_agent(NAME)
        agent.followup("go")
        await trio.sleep(0.5)
        await agent.session.checkpoint()
        return await image(await store.read(NAME))


def codes(agent: Agent) -> list[str | None]:
    """How the calls of an agent ended."""
    return [result.code for result in facts(agent, ToolResultLogged)]


async def test_nothing_runs_again_unless_it_is_asked_for(autojump_clock: MockClock) -> None:
    world = World()
    async with open_test_runtime(store=await died_in_looks(), tools=world.tools) as runtime:
        agent = await runtime.resume_agent(NAME)
        assert (agent.status, reasons(agent), world.ran) == ("idle", ["interrupted"], [])


async def test_whoever_watches_hears_that_the_turn_is_settled_as_interrupted(
    autojump_clock: MockClock,
) -> None:
    world, told = World(), list[Settled]()
    async with open_test_runtime(store=await died_in_looks(), tools=world.tools) as runtime:
        runtime.on("settled", told.append)
        agent = await runtime.resume_agent(NAME, rerun=True)
        assert agent.status == "running"
        await agent.wait_idle()
        assert [(one.turn, one.reason) for one in told] == [(1, "interrupted")]
        assert agent.session.durable_seq == agent.session.seq
        assert codes(agent) == [None, None, "TOOL_NOT_STARTED"]


async def test_a_message_that_comes_meanwhile_gets_its_turn_and_sees_the_results(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([Text("seen")])
    async with open_test_runtime(
        model=model, store=await died_in_looks(), tools=World().tools
    ) as runtime:
        agent = await runtime.resume_agent(NAME, rerun=True)
        assert (await agent.ask("and?")).text == "seen"
        assert reasons(agent) == ["interrupted", "completed"]
        assert said(model.requests[0])[-4:-2] == ["T look is done", "T look is done"]


async def test_what_was_pending_before_stays_pending(autojump_clock: MockClock) -> None:
    store, world = MemoryStore(), World()
    model = ScriptedModel([[ToolCall("look")]])
    async with open_test_runtime(model=model, store=store, tools=world.tools) as runtime:
        agent = await runtime.create_agent(NAME)
        agent.followup("go")
        agent.followup("later")
        await trio.sleep(0.5)
        await agent.session.checkpoint()
        left = await image(await store.read(NAME))
    async with open_test_runtime(store=left, tools=world.tools) as runtime:
        agent = await runtime.resume_agent(NAME, rerun=True)
        await agent.wait_idle()
        assert (pending(agent), reasons(agent)) == (["later"], ["interrupted"])


async def test_a_cancel_stops_what_runs_again(autojump_clock: MockClock) -> None:
    async with open_test_runtime(store=await died_in_looks(), tools=World().tools) as runtime:
        agent = await runtime.resume_agent(NAME, rerun=True)
        await trio.sleep(0.5)
        agent.cancel()
        await agent.wait_idle()
        assert codes(agent) == ["TOOL_ABORTED", "TOOL_ABORTED", "TOOL_NOT_STARTED"]
        assert reasons(agent) == ["aborted"]


async def test_disposed_of_at_once_the_turn_is_closed_all_the_same(
    autojump_clock: MockClock,
) -> None:
    world = World()
    async with open_test_runtime(store=await died_in_looks(), tools=world.tools) as runtime:
        agent = await runtime.resume_agent(NAME, rerun=True)
        await agent.dispose()
        assert (reasons(agent), world.ran) == (["aborted"], [])


async def test_a_host_that_leaves_closes_the_turn(autojump_clock: MockClock) -> None:
    store = await died_in_looks()
    with trio.CancelScope() as host:
        async with open_test_runtime(store=store, tools=World().tools) as runtime:
            agent = await runtime.resume_agent(NAME, rerun=True)
            host.cancel()
            await trio.sleep(10)
    assert [end.cause for end in ends(agent)] == ["host-cancelled"]


async def test_maintenance_waits_until_the_turn_is_closed(autojump_clock: MockClock) -> None:
    async with open_test_runtime(store=await died_in_looks(), tools=World().tools) as runtime:
        agent = await runtime.resume_agent(NAME, rerun=True)

        async def job() -> list[str]:
            return reasons(agent)

        assert await agent.run_maintenance(job) == ["interrupted"]


async def test_a_call_whose_tool_has_gone_or_is_denied_now_is_lost(
    autojump_clock: MockClock,
) -> None:
    world = World()
    async with open_test_runtime(store=await died_in_looks(), tools=world.tools) as runtime:
        runtime.tools.guard(lambda request: Deny("no more looking"))
        agent = await runtime.resume_agent(NAME, rerun=True)
        await agent.wait_idle()
        assert codes(agent) == [*["TOOL_OUTCOME_UNKNOWN"] * 2, "TOOL_NOT_STARTED"]
    for left_out in ("look", "nothing"):
        tools = [one for one in world.tools if one.name != left_out]
        async with open_test_runtime(store=await died_in_looks()) as runtime:
            agent = await runtime.resume_agent(NAME, rerun=True, tools=tools)
            await agent.wait_idle()
            assert (codes(agent)[0] is None) == (left_out == "nothing")
