"""Logs from elsewhere may say of a policy whatever can be decoded: nothing of it fails."""

from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from trioloop import CallId, Event, EventData, Fold, MemoryStore, SessionId, events
from trioloop.codec import chain_crc, decode_event, encode_event
from trioloop.plugins import Budget, Price, limits
from trioloop.plugins.approval import (
    ASKED,
    OPEN,
    ApprovalAnswered,
    ApprovalRequested,
    ApprovalsForgotten,
    decided,
)
from trioloop.plugins.asking import MEMORY
from trioloop.plugins.compaction import compaction_state
from trioloop.plugins.compaction.events import (
    CompactionEnded,
    CompactionStarted,
    CompactionSummarised,
)
from trioloop.plugins.limits import LimitReached
from trioloop.plugins.plan_mode import ACTIVE, PlanModeSet
from trioloop.plugins.pruning import ResultsPruned
from trioloop.plugins.spending import accounts
from trioloop.plugins.subagents import ORIGIN, ChildOpened, ChildSettled
from trioloop.ports import Append, Owner, StoredRow
from trioloop.testing import ScriptedModel, Text, open_test_runtime

KINDS: tuple[type[EventData], ...] = (
    *(ApprovalRequested, ApprovalAnswered, ApprovalsForgotten),
    *(ChildOpened, ChildSettled, LimitReached, PlanModeSet, ResultsPruned),
    *(CompactionStarted, CompactionSummarised, CompactionEnded),
    *(events.TurnStarted, events.StepStarted, events.ToolCallStarted),
)
FOLDS: tuple[Fold[Any], ...] = (
    *(ASKED, OPEN, MEMORY, ACTIVE, ORIGIN, compaction_state),
    accounts({"m": Price(input=1, output=1)}),
)
WORDS = st.sampled_from(["", "a", "a.call_1_1_0", "call_1_1_0"])


def some(cls: type[EventData]) -> st.SearchStrategy[EventData]:
    """Events of a class: each field of its type, and otherwise anything; words that recur."""
    hints = get_type_hints(cls)
    hints.pop("__attrs_attrs__", None)
    return st.builds(cls, **{name: of_type(hint) for name, hint in hints.items()})


def of_type(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type, as JSON can tell them."""
    if hint is float:
        return st.floats(allow_nan=False, allow_infinity=False)
    return WORDS if hint in (str, CallId) else st.from_type(hint)


@given(st.lists(st.one_of(*(some(cls) for cls in KINDS)), max_size=12), WORDS)
def test_whatever_events_come_in_whatever_order_they_can_be_folded(
    facts: list[EventData], approval: str
) -> None:
    log = tuple(Event(seq, seq, fact) for seq, fact in enumerate(facts))
    for fold in FOLDS:
        fold(log)
    decided(log, approval)


@pytest.mark.parametrize("cls", KINDS)
def test_what_was_drawn_here_could_stand_in_a_log(cls: type[EventData]) -> None:
    @given(some(cls))
    def reads_back(fact: EventData) -> None:
        assert decode_event(encode_event(Event(1, 1, fact))).data == fact

    reads_back()


async def stored(store: MemoryStore, name: str, *facts: EventData) -> None:
    """Put a session into a store as no runtime would write it."""
    lease = await store.open(SessionId(name), Owner(1, "elsewhere"), create=True)
    rows, crc = list[StoredRow](), 0
    for seq, fact in enumerate(facts):
        payload = encode_event(Event(seq, seq, fact))
        crc = chain_crc(crc, payload)
        rows.append(StoredRow(seq, payload, crc))
    await store.commit([Append(lease, 0, f"foreign {name}", tuple(rows))])
    await store.release(lease)


def opened_by(parent: str, name: str) -> EventData:
    return events.SessionOpened(1, name, 0, parent)


def delegating(to: str) -> EventData:
    return events.AgentDelegated(CallId("call_1_1_0"), to)


async def test_agents_that_say_they_delegated_each_other_are_counted_and_limited(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    await stored(store, "a", opened_by("b", "a"), delegating("b"), delegating("a"))
    await stored(store, "b", opened_by("a", "b"), delegating("a"), delegating("c"))
    await stored(store, "c", opened_by("c", "c"), delegating("a"), delegating("nobody"))
    model = ScriptedModel(lambda _: Text("hi"))
    async with (
        open_test_runtime(model=model, store=store) as runtime,
        limits(runtime, tree=Budget(steps=3)) as spending,
    ):
        agents = [await runtime.resume_agent(name) for name in "abc"]
        codes = {(await agent.ask("go")).code for agent in agents * 3}
        assert codes == {None, "TREE_STEPS_LIMIT"}
        for agent in agents:
            assert (await spending.tree(agent)).steps >= 1
            await agent.dispose()
