"""Appending to a live log: all or nothing, in order, told to observers afterwards (D1)."""

from collections.abc import Sequence

import pytest
import trio
from trio.testing import MockClock

from trioloop.errors import EventEncodingError, GrammarError
from trioloop.events import Event, EventData, TurnStarted, event
from trioloop.limits import Limits
from trioloop.log.fold import fold
from trioloop.messages import Json
from trioloop.ports import Append, CommitAnswer
from trioloop.store import MemoryStore
from trioloop.testing import ScriptedModel, open_test_runtime


@event("test/session-note", ignorable=True)
class Note(EventData):
    """A fact of the tests' own."""

    text: str
    more: dict[str, Json] | None = None


class RecordingStore(MemoryStore):
    """A store that remembers how many events each of its transactions had."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    async def commit(self, appends: Sequence[Append]) -> list[CommitAnswer]:
        """Write."""
        self.sizes.append(sum(len(one.rows) for one in appends))
        return await super().commit(appends)


async def test_an_append_gives_the_events_with_their_places(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        session = (await runtime.create_agent("a")).session
        await trio.sleep(2)
        events = session.append(Note("a"), Note("b"))
        assert [one.seq for one in events] == [1, 2]
        assert [one.time for one in events] == [2000, 2000]
        assert session.events(0) == events
        assert session.seq == 2


async def test_a_refused_fact_takes_the_whole_append_with_it(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        session = (await runtime.create_agent("a")).session
        told: list[Event] = []
        session.observe(told.append)
        with pytest.raises(GrammarError):
            session.append(Note("a"), TurnStarted(7), Note("b"))
        assert session.seq == 0
        assert told == []
        assert session.state == fold(session.events())
        session.append(Note("c"))
        assert [one.seq for one in told] == [1]


@pytest.mark.parametrize("value", [float("nan"), {1: 2}, object(), b"bytes"])
async def test_a_value_that_is_no_json_takes_the_whole_append_with_it(
    value: object, autojump_clock: MockClock
) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        session = (await runtime.create_agent("a")).session
        with pytest.raises(EventEncodingError):
            session.append(Note("a"), Note("b", {"value": value}))  # type: ignore[dict-item]
        assert session.seq == 0


async def test_what_a_caller_changes_afterwards_is_not_in_the_log(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        session = (await runtime.create_agent("a")).session
        more: dict[str, Json] = {"list": [1]}
        session.append(Note("a", more))
        more["list"] = "changed"
        (logged,) = session.events(0)
        assert isinstance(logged.data, Note)
        assert logged.data.more == {"list": [1]}


async def test_a_snapshot_of_the_events_does_not_grow(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        session = (await runtime.create_agent("a")).session
        before = session.events()
        session.append(Note("a"))
        assert len(before) == 1


async def test_time_never_goes_back_though_the_clock_does(autojump_clock: MockClock) -> None:
    times = iter([1000, 1000, 400, 2000, 0])
    async with open_test_runtime(model=ScriptedModel([]), clock=lambda: next(times)) as runtime:
        session = (await runtime.create_agent("a")).session
        for text in "abc":
            session.append(Note(text))
        assert [one.time for one in session.events()] == [1000, 1000, 2000, 2000]


async def test_an_observer_that_appends_is_told_of_its_own_event_in_order(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        session = (await runtime.create_agent("a")).session
        first: list[int] = []
        second: list[int] = []

        def observe(told: Event) -> None:
            first.append(told.seq)
            if told.seq == 1:
                session.append(Note("mine"))

        session.observe(observe)
        session.observe(lambda told: second.append(told.seq))
        session.append(Note("a"), Note("b"))
        assert first == second == [1, 2, 3]


async def test_an_observer_that_raises_leaves_the_others_their_turn(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(told: Event) -> None:
        raise RuntimeError("observer")

    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        session = (await runtime.create_agent("a")).session
        told: list[Event] = []
        session.observe(broken)
        session.observe(told.append)
        session.append(Note("a"))
        session.append(Note("b"))
        assert len(told) == 2
    assert "observer" in caplog.text


async def test_an_observer_removed_while_it_is_told_hears_no_further_event(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        session = (await runtime.create_agent("a")).session
        told: list[Event] = []

        def once(one: Event) -> None:
            told.append(one)
            registration.close()

        registration = session.observe(once)
        session.append(Note("a"), Note("b"))
        assert len(told) == 1


async def test_an_append_is_one_transaction_however_small_those_are(
    autojump_clock: MockClock,
) -> None:
    store = RecordingStore()
    async with open_test_runtime(
        model=ScriptedModel([]), store=store, limits=Limits(commit_events_max=1)
    ) as runtime:
        session = (await runtime.create_agent("a")).session
        await session.checkpoint()
        before = len(store.sizes)
        session.append(Note("a"), Note("b"))
        session.append(Note("c"))
        await session.checkpoint()
        assert store.sizes[before:] == [2, 1]
