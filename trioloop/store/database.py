"""The writing side of a store's file: leases, transactions, and what follows a failed one.

Synchronous; one thread at a time calls it. A failed transaction is final for its connection: the
next one is opened only for a commit that is tried again, and only after the file has shown, row by
row, either what was there before or all that was written. What `fsync` says a second time proves
nothing, so what is found then is written once more, into the main file.
"""

import contextlib
import os
import socket
import sqlite3
import time
from collections.abc import Iterator, Sequence

from msgspec import Struct

from trioloop.errors import (
    SessionExistsError,
    SessionLockedError,
    StoreFailedError,
    TrioloopError,
    UnknownSessionError,
)
from trioloop.ids import SessionId
from trioloop.ports import (
    Append,
    CommitAnswer,
    Committed,
    Durability,
    Lease,
    Owner,
    StoredRow,
)
from trioloop.store.blobs import BlobFiles
from trioloop.store.lock import FileLock
from trioloop.store.opening import Opening
from trioloop.store.rows import SessionRow, session_row, verified_rows
from trioloop.store.rules import Head, answer_without_writing
from trioloop.store.tables import SEQ_BITS, connect_writer, unreadable


class _Written(Struct, frozen=True, gc=False):
    """An append that is to be written: the key of its session, and where that ends then."""

    key: int
    head: Head
    append: Append

    @property
    def bytes(self) -> int:
        """Of all its rows."""
        return sum([len(row.payload) for row in self.append.rows])


class Database:
    """One owner's hold on a store's file. It locks and opens the file when it is first needed.

    Args:
        path: the file, links resolved.
        durability: `step` or `relaxed`.
        blobs: where large payloads go.
        blob_bytes_min: from which size on.
        kind: the class of its connection.
    """

    def __init__(
        self,
        path: str,
        durability: Durability,
        blobs: BlobFiles,
        blob_bytes_min: int,
        kind: type[sqlite3.Connection],
    ) -> None:
        self._path = path
        self._durability: Durability = durability
        self._blobs = blobs
        self._blob_bytes_min = blob_bytes_min
        self._kind = kind
        self._lock = FileLock(path)
        self._connection: sqlite3.Connection | None = None
        self._failure: str | None = None
        self._held: dict[SessionId, Owner] = {}
        self._keys: dict[SessionId, int] = {}  # of all that were ever held
        self._heads: dict[SessionId, Head | None] = {}  # as last confirmed; None: no such session
        self._doubtful: dict[SessionId, Head | None] = {}  # as the last transaction would have it

    def open_sessions(self, openings: Sequence[Opening]) -> None:
        """Take the right to write sessions, in one transaction, and answer each."""
        try:
            with self._transaction(openings[0].owner) as connection:
                self._open_in(connection, openings)
        except Exception as error:
            for opening in openings:
                opening.refuse(error)
            return
        self._hold(openings)

    def _open_in(self, connection: sqlite3.Connection, openings: Sequence[Opening]) -> None:
        for opening in openings:
            try:
                self._open_one(connection, opening)
            except TrioloopError as error:  # it has done nothing, and the others go on
                opening.refuse(error)

    def _open_one(self, connection: sqlite3.Connection, opening: Opening) -> None:
        session = opening.session
        self._refuse_held(session)
        row = session_row(connection, session)
        if opening.create and (row is not None or session in self._doubtful):
            raise _exists(session, "resume it, or take another name")
        if not opening.create and row is None:
            raise UnknownSessionError(f"the store has no session {session!r}")
        if session in self._doubtful:
            raise SessionLockedError(f"session {session!r}", "somebody who opens it just now")
        row = _take_over(connection, session, row)
        self._keys[session], self._doubtful[session] = row.key, row.head
        opening.grant(Lease(session, row.head.epoch, row.head.next_seq))

    def _hold(self, openings: Sequence[Opening]) -> None:
        """Note who holds the sessions whose leases were given: the transaction is through."""
        for opening in openings:
            if opening.lease is not None:
                self._held[opening.session] = opening.owner

    def add_session(self, session: SessionId, owner: Owner, rows: Sequence[StoredRow]) -> None:
        """Make a session with all of its rows, in one transaction; nobody holds it afterwards.

        Raises:
            SessionExistsError: there is one of that name.
            SessionLockedError, StoreUnreadableError, StoreFailedError: as `open_session`.
        """
        with self._transaction(owner) as connection:
            if session_row(connection, session) is not None:
                raise _exists(session, "delete that one first, or name another file")
            row = _take_over(connection, session, None)
            epoch = row.head.epoch
            append = Append(Lease(session, epoch, 0), 0, f"{epoch}.added", tuple(rows))
            written = _Written(row.key, row.head.after(append), append)
            self._write(connection, [written])
            self._doubtful[session] = written.head

    def commit(
        self, appends: Sequence[Append], openings: Sequence[Opening] = ()
    ) -> list[CommitAnswer]:
        """Write all appends in one transaction and answer each, in order.

        Args:
            appends: what is to be written.
            openings: sessions that somebody opens meanwhile, in the same transaction.

        Raises:
            StoreFailedError: nothing of it can be relied on; the same appends may be tried again.
        """
        if self._failure is not None:
            self._reopen()
        if not appends and not openings:
            return []
        written: list[_Written] = []
        with self._transaction() as connection:
            self._open_in(connection, openings)
            answers = [self._answer(connection, append, written) for append in appends]
            self._write(connection, written)
        self._hold(openings)
        return answers

    def put_blob(self, content: bytes) -> str:
        """Keep content in a file of its own, synced when this returns."""
        self._ready(None)
        try:
            return self._blobs.put(content)
        except OSError as error:
            raise StoreFailedError(
                f"content can't be kept beside {self._path!r}: {error}"
            ) from error

    def delete(self, session: SessionId) -> None:
        """Remove a session and its events; its blob files may be others' too, and stay."""
        with self._transaction() as connection:
            self._refuse_held(session)
            row = session_row(connection, session)
            if row is None:
                raise UnknownSessionError(f"the store has no session {session!r}")
            first = row.key << SEQ_BITS
            connection.execute(
                "DELETE FROM event WHERE place BETWEEN ? AND ?",
                (first, first + (1 << SEQ_BITS) - 1),
            )
            connection.execute("DELETE FROM session WHERE id = ?", (row.key,))
            self._doubtful[session] = None

    def holds(self, lease: Lease) -> bool:
        """Whether a lease still gives the right to write."""
        head = self._heads.get(lease.session)
        return lease.session in self._held and head is not None and head.epoch == lease.epoch

    def release(self, lease: Lease) -> None:
        """Give a lease back; one of an old owner changes nothing."""
        if self.holds(lease):
            self._held.pop(lease.session, None)

    def close(self) -> None:
        """Close the file and unlock it; it opens again when it is needed."""
        self._disconnect()
        self._failure = None
        self._held.clear()
        self._heads.clear()
        self._lock.release()
        self._doubtful.clear()

    # Transactions

    @contextlib.contextmanager
    def _transaction(self, owner: Owner | None = None) -> Iterator[sqlite3.Connection]:
        """Commits what its block did; a block that raises a refusal has done nothing."""
        connection = self._ready(owner)
        self._doubtful.clear()
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except (TrioloopError, MemoryError):
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            self._disconnect()
            self._failure = str(error)
            raise StoreFailedError(f"the store {self._path!r} failed: {error}") from error
        self._heads.update(self._doubtful)

    def _ready(self, owner: Owner | None) -> sqlite3.Connection:
        if self._failure is not None:
            raise StoreFailedError(f"the store {self._path!r} has failed: {self._failure}")
        return self._connection or self._open(owner or Owner(os.getpid(), socket.gethostname()))

    def _open(self, owner: Owner) -> sqlite3.Connection:
        try:
            self._lock.acquire(owner)
            connection = self._connection = self._connect()
            self._blobs.clean()
        except (sqlite3.Error, OSError) as error:
            raise unreadable(self._path, error, writing=True) from error
        finally:
            if self._connection is None:
                self._lock.release()
        return connection

    def _connect(self) -> sqlite3.Connection:
        return connect_writer(self._path, self._durability, self._kind)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def _refuse_held(self, session: SessionId) -> None:
        holder = self._held.get(session)
        if holder is not None:
            raise SessionLockedError(f"session {session!r}", str(holder))

    def _answer(
        self, connection: sqlite3.Connection, append: Append, written: list[_Written]
    ) -> CommitAnswer:
        """Answer an append; what it writes goes to the end of `written`."""
        session = append.lease.session
        held = self.holds(append.lease)
        head = self._head(connection, session, held=held)
        answer = answer_without_writing(head, append, held=held)
        if answer is not None:
            return answer
        head = self._doubtful[session] = head.after(append)
        written.append(_Written(self._keys[session], head, append))
        return Committed(head.next_seq)

    def _head(self, connection: sqlite3.Connection, session: SessionId, *, held: bool) -> Head:
        """Where a session ends: who holds it knows, for nobody else writes it."""
        known = self._doubtful.get(session) or (self._heads.get(session) if held else None)
        if known is not None:
            return known
        row = session_row(connection, session)
        return Head(epoch=0) if row is None else row.head

    def _write(self, connection: sqlite3.Connection, written: Sequence[_Written]) -> None:
        """Write the rows of appends, and where their sessions end then."""
        connection.executemany(
            "INSERT INTO event VALUES (?, ?, ?, ?)",
            [
                ((one.key << SEQ_BITS) + row.seq, row.crc, *self._placed(row.payload))
                for one in written
                for row in one.append.rows
            ],
        )
        now = _now_ms()
        connection.executemany(
            "UPDATE session SET next_seq = ?, crc = ?, append_id = ?,"
            " bytes = bytes + ?, changed = ? WHERE id = ?",
            [
                (one.head.next_seq, one.head.crc, one.head.append_id, one.bytes, now, one.key)
                for one in written
            ],
        )

    def _placed(self, payload: bytes) -> tuple[bytes | None, str | None]:
        """A payload for its row, or its locator once its own file is synced."""
        if len(payload) < self._blob_bytes_min:
            return payload, None
        return None, self._blobs.put(payload)

    # After a failure

    def _reopen(self) -> None:
        connection = None
        try:
            _forget_cached(f"{self._path}-wal")
            connection = self._connect()
            self._confirm(connection)
            (busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy:
                raise sqlite3.OperationalError("somebody reads it: try again")
        except (sqlite3.Error, OSError, TrioloopError) as error:
            if connection is not None:
                with contextlib.suppress(sqlite3.Error):
                    connection.close()
            raise StoreFailedError(f"the store {self._path!r} still fails: {error}") from error
        self._connection, self._failure = connection, None

    def _confirm(self, connection: sqlite3.Connection) -> None:
        """Compare each session with what it was, or was about to be, when the store failed."""
        for session, known in self._heads.items():
            row = session_row(connection, session)
            found = None if row is None else row.head
            if found == known:
                continue
            if session not in self._doubtful or found != self._doubtful[session]:
                raise StoreFailedError(f"session {session!r} isn't what was written")
            if found is not None:
                written = verified_rows(
                    connection, self._blobs, session, -1 if known is None else known.next_seq - 1
                )
                for _ in written:
                    pass
            self._heads[session] = found


def _take_over(
    connection: sqlite3.Connection, session: SessionId, row: SessionRow | None
) -> SessionRow:
    """Give a session, made where there is none, to the next epoch."""
    connection.execute("UPDATE counter SET epoch = epoch + 1")
    (epoch,) = connection.execute("SELECT epoch FROM counter").fetchone()
    if row is not None:
        connection.execute("UPDATE session SET epoch = ? WHERE id = ?", (epoch, row.key))
        return SessionRow(row.key, row.head.owned(epoch))
    now = _now_ms()
    (key,) = connection.execute(
        "INSERT INTO session (name, epoch, next_seq, crc, append_id, bytes, created, changed)"
        " VALUES (?, ?, 0, 0, '', 0, ?, ?) RETURNING id",
        (session, epoch, now, now),
    ).fetchone()
    return SessionRow(key, Head(epoch))


def _exists(session: SessionId, advice: str) -> SessionExistsError:
    return SessionExistsError(f"the store has a session {session!r}: {advice}")


def _forget_cached(path: str) -> None:
    """Have the kernel drop its copy of a file: it may hold what never reached the disk."""
    if not hasattr(os, "posix_fadvise") or not os.path.exists(path):
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
