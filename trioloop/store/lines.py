"""Sessions as JSON Lines: one event a line, to be sent, kept, searched, and read back elsewhere.

A line is an event's canonical bytes with one more member at its end: `crc`, the CRC-32 chained
over the session up to there. The last line says that it is the last, so that lines which were cut
short never pass for a log. Lines end with a line feed and with nothing else: U+2028, U+0085 and
their like stand in text as they are, so split at line feeds only.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

import attrs

from trioloop.codec import chain_crc, decode_event
from trioloop.errors import DamagedExportError, InvalidInputError
from trioloop.events import SessionOpened
from trioloop.ids import SessionId
from trioloop.log.fold import LogState
from trioloop.ports import StoredRow

_END = re.compile(rb',"crc":(0|[1-9][0-9]{0,9})(,"last":true)?\}\n?')
_LAST = b',"last":true'


@attrs.frozen
class ExportedLog:
    """A log as its lines had it, verified.

    Attributes:
        session: the session's name.
        rows: its events.
    """

    session: SessionId
    rows: tuple[StoredRow, ...]


def lines_of(rows: Sequence[StoredRow]) -> Iterator[bytes]:
    """The lines of a session, each with its line feed.

    Args:
        rows: all of the session, or what can be read of it, from its first event on.
    """
    for place, row in enumerate(rows, 1):
        last = _LAST if place == len(rows) else b""
        yield b'%b,"crc":%d%b}\n' % (row.payload[:-1], row.crc, last)


def log_of(lines: Iterable[bytes]) -> ExportedLog:
    """The log that some lines hold: exactly the one that was exported, or an error.

    Args:
        lines: as `lines_of` gave them, such as a file opened with mode `rb`.

    Raises:
        DamagedExportError: a line isn't what was exported, one is missing, or there is none.
        GrammarError: the events are no log.
        UnsupportedSessionError: a newer trioloop wrote it, or nobody here declares its types (E5).
        InvalidInputError: the lines are text, not bytes.
    """
    state, rows = LogState(), list[StoredRow]()
    for row in _verified(lines):
        event = decode_event(row.payload)
        state.apply(event)
        rows.append(row)
    opened = state.session
    assert isinstance(opened, SessionOpened)  # the grammar's first rule, and there is a line
    return ExportedLog(SessionId(opened.session), tuple(rows))


def _verified(lines: Iterable[bytes]) -> Iterator[StoredRow]:
    """The rows of lines whose CRCs are chained, up to the one that says it is the last."""
    number, crc, is_last = 0, 0, False
    for number, line in enumerate(lines, 1):
        if is_last:
            raise DamagedExportError(number, "the line before it says that it is the last")
        row, is_last = _row(number, line, crc)
        crc = row.crc
        yield row
    if not is_last:
        raise DamagedExportError(number + 1, "it is missing: no line before it is the last")


def _row(number: int, line: bytes, crc: int) -> tuple[StoredRow, bool]:
    if not isinstance(line, bytes):
        raise InvalidInputError(
            f"line {number} is a {type(line).__name__}, not bytes: open the file with mode 'rb'"
        )
    at = line.rfind(b',"crc":')
    end = _END.fullmatch(line, at) if at >= 0 else None
    if end is None:
        raise DamagedExportError(number, "it doesn't end with its CRC")
    payload = line[:at] + b"}"
    if chain_crc(crc, payload) != int(end[1]):
        raise DamagedExportError(number, "its CRC doesn't match")
    return StoredRow(number - 1, payload, int(end[1])), end[2] is not None
