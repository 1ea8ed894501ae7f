"""A log that is loaded by its skeletons is the log that was written, and stays rows till read."""

import gc
import inspect
from collections.abc import Callable, Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.log.random_logs import written_logs
from tests.log.writing import LogWriter, Note, ended
from trioloop.codec import encode_event
from trioloop.errors import GrammarError, UnsupportedSessionError
from trioloop.events import Event, ToolResultLogged, UnknownEvent
from trioloop.log.fold import fold
from trioloop.log.rows import Events
from trioloop.log.skeletons import KEPT, LEFT_OUT, fold_rows, skeleton


def rows(events: Sequence[Event]) -> list[bytes]:
    """Events as a store keeps them."""
    return [encode_event(event) for event in events]


def refusal(load: Callable[[], object]) -> str | None:
    """Why a log can't be loaded."""
    try:
        load()
    except GrammarError as error:
        return str(error)
    return None


@given(written_logs(), st.data())
def test_a_log_of_rows_adds_up_to_what_its_events_do(
    writer: LogWriter, data: st.DataObject
) -> None:
    events = writer.events
    length = data.draw(st.integers(0, len(events)))
    group = data.draw(st.sampled_from([1, 2, 5, 1000]))
    loaded = Events(rows(events[:length]))
    state = fold_rows(loaded, group=group)
    assert state == fold(events[:length])
    assert list(loaded) == events[:length]


@given(written_logs(), st.data())
def test_a_loaded_log_goes_on_as_the_one_that_was_written(
    writer: LogWriter, data: st.DataObject
) -> None:
    events = writer.events
    length = data.draw(st.integers(0, len(events)))
    group = data.draw(st.sampled_from([1, 2, 5, 1000]))
    state = fold_rows(Events(rows(events[:length])), group=group)
    for event in events[length:]:
        state.apply(event)
    assert state == writer.state
    assert list(state.surface.nodes) == list(writer.state.surface.nodes)


@given(written_logs(), st.data())
def test_rows_that_are_no_log_are_refused_in_the_same_words(
    writer: LogWriter, data: st.DataObject
) -> None:
    kept = [event.data for event in writer.events]
    del kept[data.draw(st.integers(0, len(kept) - 1))]
    events = [Event(seq, 0, fact) for seq, fact in enumerate(kept)]
    loaded = Events(rows(events))
    assert refusal(lambda: fold_rows(loaded, group=3)) == refusal(lambda: fold(events))


def log_of_calls() -> list[Event]:
    """A log whose first turn has calls, with another turn behind it."""
    writer = LogWriter()
    writer.open_turn("m1")
    writer.step_of_calls(2)
    writer.add(ended(1, "error"))
    writer.turn_of_text("m2")
    return writer.events


def changed_row(row: bytes, **changes: object) -> bytes:
    """A row with other values in its data."""
    whole = msgspec.json.decode(row)
    whole["data"].update(changes)
    return msgspec.json.encode(whole)


def test_a_row_that_cant_be_read_whole_is_found_when_it_is_asked_for() -> None:
    events = log_of_calls()
    place = next(e.seq for e in events if isinstance(e.data, ToolResultLogged))
    spoilt = rows(events)
    spoilt[place] = changed_row(spoilt[place], content=5)
    loaded = Events(spoilt)
    state = fold_rows(loaded)
    assert loaded[place - 1] == events[place - 1]
    with pytest.raises(UnsupportedSessionError, match="tool/result holds what can't be read"):
        loaded[place]
    with pytest.raises(UnsupportedSessionError, match="tool/result holds what can't be read"):
        list(state.surface.history)


def test_a_row_whose_needed_fields_cant_be_read_isnt_loaded() -> None:
    spoilt = rows(log_of_calls())
    spoilt[1] = changed_row(spoilt[1], start="first")
    with pytest.raises(UnsupportedSessionError, match="agent/inbox/spliced holds what can't be"):
        fold_rows(Events(spoilt))


def test_types_that_nobody_declares_load_only_where_they_may_be_ignored() -> None:
    events = log_of_calls()
    row = b'{"type":"some/thing","seq":%d,"time":%d,%b"data":{"a":1}}'
    first, time = len(events), events[-1].time
    more = LogWriter(*(event.data for event in events))
    more.turn_of_text("m3")
    behind = [
        encode_event(Event(event.seq + 1, event.time, event.data)) for event in more.events[first:]
    ]
    refused = Events([*rows(events), row % (first, time, b""), *behind])
    with pytest.raises(UnsupportedSessionError, match="'some/thing'"):
        fold_rows(refused)
    loaded = Events([*rows(events), row % (first, time, b'"ignorable":true,'), *behind])
    assert fold_rows(loaded).turns == 3
    assert isinstance(loaded[first].data, UnknownEvent)


def test_events_of_an_application_pass_unread() -> None:
    writer = LogWriter()
    writer.add(Note())
    writer.turn_of_text("m1")
    spoilt = rows(writer.events)
    spoilt[1] = changed_row(spoilt[1], text=5)
    loaded = Events(spoilt)
    assert fold_rows(loaded) == writer.state
    with pytest.raises(UnsupportedSessionError):
        loaded[1]


def test_what_is_left_out_is_a_part_of_what_there_is() -> None:
    assert KEPT.isdisjoint(LEFT_OUT)
    for cls, left_out in LEFT_OUT.items():
        whole = set(inspect.signature(cls).parameters)
        needed = {field.name for field in msgspec.structs.fields(skeleton(cls))}
        assert needed
        assert needed | left_out == whole
        assert needed.isdisjoint(left_out)


def test_a_session_of_rows_is_read_from_any_place() -> None:
    events = log_of_calls()
    loaded = Events(rows(events))
    assert len(loaded) == len(events)
    assert loaded[-1] == events[-1]
    assert loaded[3:7] == events[3:7]
    loaded.extend(events[:1])
    assert list(loaded) == [*events, events[0]]


@pytest.mark.parametrize("enabled", [True, False])
def test_loading_leaves_the_garbage_collector_as_it_was(enabled: bool) -> None:
    spoilt = rows(log_of_calls())
    del spoilt[3]
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        assert fold_rows(Events(rows(log_of_calls()))).turns == 2
        assert gc.isenabled() is enabled
        assert refusal(lambda: fold_rows(Events(spoilt))) is not None
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()
