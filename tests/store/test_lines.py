"""Logs as lines: read back they are equal, and whatever else is read is named by its line."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.log.random_logs import written_logs
from tests.log.writing import OPENED, LogWriter, Note, changed
from trioloop.codec import chain_crc, encode_event
from trioloop.errors import (
    DamagedExportError,
    GrammarError,
    InvalidInputError,
    UnsupportedSessionError,
)
from trioloop.events import FORMAT, Event
from trioloop.ports import StoredRow
from trioloop.store.lines import lines_of, log_of

LINE_ENDS = "\u2028\u2029\x85\x0b\x0c\r"


def rows_of(events: Sequence[Event]) -> tuple[StoredRow, ...]:
    crc, rows = 0, []
    for event in events:
        payload = encode_event(event)
        crc = chain_crc(crc, payload)
        rows.append(StoredRow(event.seq, payload, crc))
    return tuple(rows)


def exported(events: Sequence[Event]) -> bytes:
    return b"".join(lines_of(rows_of(events)))


def split(exported: bytes) -> list[bytes]:
    """The lines of some bytes, as reading a file gives them."""
    *whole, rest = exported.split(b"\n")
    return [*(line + b"\n" for line in whole), *([rest] if rest else [])]


def named_line(damaged: bytes) -> int:
    with pytest.raises(DamagedExportError) as caught:
        log_of(split(damaged))
    assert str(caught.value).startswith(f"line {caught.value.line} ")
    return caught.value.line


@given(written_logs(), st.text(LINE_ENDS + 'é漢"\\}{,'))
def test_any_log_is_read_back_equal(writer: LogWriter, text: str) -> None:
    writer.add(Note(f'{text},"crc":1}}'))
    lines = exported(writer.events)
    log = log_of(split(lines))
    assert (log.session, log.rows) == ("paris", rows_of(writer.events))
    assert b"".join(lines_of(log.rows)) == lines
    assert log_of(split(lines[:-1])) == log


@given(written_logs())
def test_each_line_is_an_event_with_its_chained_crc(writer: LogWriter) -> None:
    crc = 0
    for event, line in zip(writer.events, split(exported(writer.events)), strict=True):
        member = json.loads(line)
        crc = chain_crc(crc, encode_event(event))
        assert (member["seq"], member["type"], member["crc"]) == (event.seq, event.type, crc)
        assert member.get("last", False) == (event is writer.events[-1])


@given(written_logs(), st.data())
def test_any_changed_byte_is_found_in_its_line(writer: LogWriter, data: st.DataObject) -> None:
    lines = exported(writer.events)
    place = data.draw(st.integers(0, len(lines) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != lines[place]))
    damaged = lines[:place] + bytes([byte]) + lines[place + 1 :]
    assert named_line(damaged) == lines.count(b"\n", 0, place) + 1


@given(written_logs(), st.data())
def test_lines_that_end_anywhere_too_soon_are_no_log(
    writer: LogWriter, data: st.DataObject
) -> None:
    lines = exported(writer.events)
    length = data.draw(st.integers(0, len(lines) - 2))
    assert named_line(lines[:length]) == lines.count(b"\n", 0, length + 1) + 1


@given(written_logs(), st.data())
def test_a_lost_doubled_or_swapped_line_is_found(writer: LogWriter, data: st.DataObject) -> None:
    writer.add(Note("one"), Note("two"))
    lines = split(exported(writer.events))
    place = data.draw(st.integers(0, len(lines) - 2))
    lost = lines[:place] + lines[place + 1 :]
    doubled = lines[: place + 1] + lines[place:]
    swapped = list(lines)
    swapped[place : place + 2] = reversed(swapped[place : place + 2])
    assert named_line(b"".join(lost)) == place + 1
    assert named_line(b"".join(doubled)) == place + 2
    assert named_line(b"".join(swapped)) == place + 1
    assert named_line(b"".join([*lines, lines[-1]])) == len(lines) + 1


def test_lines_that_are_whole_but_no_log_are_refused() -> None:
    opened, note = Event(0, 0, OPENED), Event(1, 1, Note("x"))
    newer = Event(0, 0, changed(OPENED, format=FORMAT + 1))
    elsewhere = Event(0, 0, changed(OPENED, session="../paris"))
    with pytest.raises(GrammarError, match="event 1 breaks"):
        log_of(split(exported([opened, Event(1, 0, OPENED)])))
    with pytest.raises(GrammarError, match="expected seq 1"):
        log_of(split(exported([opened, opened])))
    with pytest.raises(GrammarError):
        log_of(split(exported([note])))
    with pytest.raises(UnsupportedSessionError, match="newer"):
        log_of(split(exported([newer])))
    with pytest.raises(GrammarError, match="can't name a session"):
        log_of(split(exported([elsewhere])))
    unknown = encode_event(note).replace(b"tests/note", b"tests/none")
    crc = chain_crc(0, encode_event(opened))
    rows = (*rows_of([opened]), StoredRow(1, unknown, chain_crc(crc, unknown)))
    with pytest.raises(UnsupportedSessionError, match="tests/none"):
        log_of(lines_of(rows))


def test_text_in_place_of_bytes_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="mode 'rb'"):
        log_of(["{}"])  # type: ignore[list-item]
    with pytest.raises(InvalidInputError, match="mode 'rb'"):
        log_of(exported([Event(0, 0, OPENED)]))  # type: ignore[arg-type]
