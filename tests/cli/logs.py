"""Logs written by hand and put into a store's file, for the commands that look into one."""

from collections.abc import Callable, Sequence
from pathlib import Path

from tests.log.writing import LogWriter, answer, answer_calls, call_block, ended, result, started
from trioloop.codec import chain_crc, encode_event
from trioloop.events import Event, EventData
from trioloop.messages import TextBlock
from trioloop.ports import StoredRow
from trioloop.store import import_session
from trioloop.store.lines import lines_of

HOSTILE = "\x1b]0;owned\x07\x1b[2J \u202e back\x9b31m\u2028\x85 漢字"
STEERING = {"\x1b", "\x07", "\x9b", "\u202e"}


def stored(path: Path, events: Sequence[Event]) -> Path:
    """Put a log into a file."""
    rows, crc = [], 0
    for event in events:
        payload = encode_event(event)
        crc = chain_crc(crc, payload)
        rows.append(StoredRow(event.seq, payload, crc))
    import_session(path, lines_of(rows))
    return path


def timed(events: Sequence[Event], times: Callable[[int], int]) -> list[Event]:
    """A log with other times, given by seq."""
    return [Event(event.seq, times(event.seq), event.data) for event in events]


def with_fact(events: Sequence[Event], seq: int, data: EventData) -> list[Event]:
    """A log in which one fact is another."""
    return [Event(one.seq, one.time, data if one.seq == seq else one.data) for one in events]


def two_turns() -> LogWriter:
    """Two turns: one with a call whose result is hostile, one that answers so."""
    writer = LogWriter()
    number = writer.open_turn("m1")
    writer.admit()
    writer.add(answer_calls(number, 1, 1))
    block = call_block(number, 1, 0)
    call_seq = writer.add(started(block))
    writer.add(result(block.call, call_seq, HOSTILE))
    writer.end_step()
    writer.admit()
    writer.add(answer([TextBlock("The call is through.")]))
    writer.end_step()
    writer.add(ended(number))
    writer.turn_of_text("m2", f"So it is: {HOSTILE}")
    return writer
