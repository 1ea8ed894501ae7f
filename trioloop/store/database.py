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

import attrs

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
from trioloop.store.rows import SessionRow, session_row, verified_rows
from trioloop.store.rules import Head, answer_without_writing
from trioloop.store.tables import SEQ_BITS, connect_writer, unreadable


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
        self._heads: dict[SessionId, Head | None] = {}  # as last confirmed; None: no such session
        self._doubtful: dict[SessionId, Head | None] = {}  # as the last transaction would have it

    def open_session(self, session: SessionId, owner: Owner, *, create: bool) -> Lease:
        """Take the right to write a session. Errors are those of `SessionStore.open`."""
        with self._transaction(owner) as connection:
            self._refuse_held(session)
            row = session_row(connection, session)
            if create and row is not None:
                raise _exists(session, "resume it, or take another name")
            if not create and row is None:
                raise UnknownSessionError(f"the store has no session {session!r}")
            head = _take_over(connection, session, row)
            self._doubtful[session] = head
        self._held[session] = owner
        return Lease(session, head.epoch, head.next_seq)

    def add_session(self, session: SessionId, owner: Owner, rows: Sequence[StoredRow]) -> None:
        """Make a session with all of its rows, in one transaction; nobody holds it afterwards.

        Raises:
            SessionExistsError: there is one of that name.
            SessionLockedError, StoreUnreadableError, StoreFailedError: as `open_session`.
        """
        with self._transaction(owner) as connection:
            if session_row(connection, session) is not None:
                raise _exists(session, "delete that one first, or name another file")
            head = _take_over(connection, session, None)
            row = session_row(connection, session)
            assert row is not None  # it was just made
            append = Append(Lease(session, head.epoch, 0), 0, f"{head.epoch}.added", tuple(rows))
            self._doubtful[session] = self._insert(connection, row, append)

    def commit(self, appends: Sequence[Append]) -> list[CommitAnswer]:
        """Write all appends in one transaction and answer each, in order.

        Raises:
            StoreFailedError: nothing of it can be relied on; the same appends may be tried again.
        """
        if self._failure is not None:
            self._reopen()
        if not appends:
            return []
        with self._transaction() as connection:
            return [self._write(connection, append) for append in appends]

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
            del self._held[lease.session]

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

    def _write(self, connection: sqlite3.Connection, append: Append) -> CommitAnswer:
        session = append.lease.session
        row = session_row(connection, session) or SessionRow(0, Head(epoch=0))
        answer = answer_without_writing(row.head, append, held=self.holds(append.lease))
        if answer is not None:
            return answer
        head = self._doubtful[session] = self._insert(connection, row, append)
        return Committed(head.next_seq)

    def _insert(self, connection: sqlite3.Connection, row: SessionRow, append: Append) -> Head:
        """Write the rows of an append; where its session ends then."""
        head = row.head.after(append)
        base = row.key << SEQ_BITS
        connection.executemany(
            "INSERT INTO event VALUES (?, ?, ?, ?)",
            [(base + item.seq, item.crc, *self._placed(item.payload)) for item in append.rows],
        )
        size = sum(len(item.payload) for item in append.rows)
        connection.execute(
            "UPDATE session SET next_seq = ?, crc = ?, append_id = ?,"
            " bytes = bytes + ?, changed = ? WHERE id = ?",
            (head.next_seq, head.crc, head.append_id, size, _now_ms(), row.key),
        )
        return head

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


def _take_over(connection: sqlite3.Connection, session: SessionId, row: SessionRow | None) -> Head:
    """Give a session, made where there is none, to the next epoch."""
    connection.execute("UPDATE counter SET epoch = epoch + 1")
    (epoch,) = connection.execute("SELECT epoch FROM counter").fetchone()
    if row is None:
        now = _now_ms()
        connection.execute(
            "INSERT INTO session (name, epoch, next_seq, crc, append_id, bytes, created, changed)"
            " VALUES (?, ?, 0, 0, '', 0, ?, ?)",
            (session, epoch, now, now),
        )
        return Head(epoch)
    connection.execute("UPDATE session SET epoch = ? WHERE id = ?", (epoch, row.key))
    return attrs.evolve(row.head, epoch=epoch)


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
