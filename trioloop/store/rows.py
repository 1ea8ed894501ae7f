"""Rows of a store's file, read back and verified against the CRC that is chained over a session.

Nothing is believed that the chain doesn't confirm: a changed byte, a lost row and a malformed page
are all named by the first seq that they touch.
"""

import sqlite3
from collections.abc import Iterator
from typing import TypeAlias

import attrs

from trioloop.codec import chain_crc
from trioloop.errors import (
    DamagedSessionError,
    StoreError,
    StoreUnreadableError,
    UnknownSessionError,
)
from trioloop.ids import SessionId
from trioloop.ports import SessionSummary, StoredRow
from trioloop.store.blobs import BlobFiles
from trioloop.store.rules import Head
from trioloop.store.tables import SEQ_BITS

_SEQ_MASK = (1 << SEQ_BITS) - 1
# A row as it is in the file: content, or the locator of a blob file that has it
_Place: TypeAlias = tuple[int, int | None, bytes | str | None]


@attrs.frozen
class SessionRow:
    """A session's row: its key, and where it ends."""

    key: int
    head: Head


def session_row(connection: sqlite3.Connection, session: str) -> SessionRow | None:
    """The row of a session, or None where there is none of that name."""
    found = connection.execute(
        "SELECT id, epoch, next_seq, crc, append_id FROM session WHERE name = ?", (session,)
    ).fetchone()
    if found is None:
        return None
    key, epoch, next_seq, *rest = found
    if not isinstance(next_seq, int):  # damage; no session ends there, so that all of it is read
        next_seq = 1 << SEQ_BITS
    return SessionRow(key, Head(epoch, next_seq, *rest))


def summaries(connection: sqlite3.Connection) -> list[SessionSummary]:
    """All sessions, by name.

    Raises:
        StoreUnreadableError: their table is damaged.
    """
    try:
        rows = connection.execute(
            "SELECT name, next_seq, bytes, created, changed, epoch FROM session ORDER BY name"
        ).fetchall()
    except sqlite3.Error as error:
        raise _list_damaged(error) from error
    return [SessionSummary(*row) for row in rows]


def verified_rows(
    connection: sqlite3.Connection, blobs: BlobFiles, session: SessionId, after: int = -1
) -> Iterator[StoredRow]:
    """The rows of a session with a seq greater than `after`, in order.

    Raises:
        UnknownSessionError: there is none of that name.
        StoreUnreadableError: the table of sessions is damaged.
        DamagedSessionError: once what stands before the first damaged event has been given.
    """
    try:
        row = session_row(connection, session)
    except sqlite3.Error as error:
        raise _list_damaged(error) from error
    if row is None:
        raise UnknownSessionError(f"the store has no session {session!r}")
    return _Verification(connection, blobs, session, row).rows(max(after, -1))


def _list_damaged(error: sqlite3.Error) -> StoreUnreadableError:
    return StoreUnreadableError(f"the store's list of sessions is damaged: {error}")


@attrs.define
class _Verification:
    """One reading of one session."""

    connection: sqlite3.Connection
    blobs: BlobFiles
    session: SessionId
    row: SessionRow

    def rows(self, after: int) -> Iterator[StoredRow]:
        """Rows after `after`, each compared with the one before it."""
        head = self.row.head
        if after >= head.next_seq - 1:
            return
        seq, crc = after, 0
        try:
            places = self._places(max(after, 0))
            if after >= 0:
                crc = self._anchor(after, places)
            for place, found, kept in places:
                seq += 1
                if place & _SEQ_MASK != seq:
                    raise self._damage(seq, "its row is missing")
                content = kept if type(kept) is bytes else self._large(seq, kept)
                crc = chain_crc(crc, content)
                if crc != found:
                    raise self._damage(seq, "its CRC doesn't match")
                yield StoredRow(seq, content, crc)
        except sqlite3.Error as error:
            raise self._damage(seq + 1, str(error)) from error
        if (seq + 1, crc) != (head.next_seq, head.crc):
            raise self._damage(min(seq + 1, head.next_seq), "the session doesn't end there")

    def _places(self, first: int) -> Iterator[_Place]:
        base = self.row.key << SEQ_BITS
        return self.connection.execute(
            "SELECT place, crc, coalesce(payload, blob) FROM event"
            " WHERE place BETWEEN ? AND ? ORDER BY place",
            (base + first, base + _SEQ_MASK),
        )

    def _anchor(self, seq: int, places: Iterator[_Place]) -> int:
        """The CRC that the chain goes on from behind an event."""
        place, crc, _ = next(places, (-1, None, None))
        if place & _SEQ_MASK != seq:
            raise self._damage(seq, "its row is missing")
        if not isinstance(crc, int):
            raise self._damage(seq, "its CRC is no number")
        return crc

    def _large(self, seq: int, locator: bytes | str | None) -> bytes:
        """The content of an event that has it in a blob file."""
        if not isinstance(locator, str):
            raise self._damage(seq, "its content is missing")
        try:
            return self.blobs.get(locator)
        except StoreError as error:
            raise self._damage(seq, str(error)) from error

    def _damage(self, seq: int, why: str) -> DamagedSessionError:
        return DamagedSessionError(self.session, seq, why)
