"""Sessions in one SQLite file: the embedded durable store.

The file has one owner at a time, kept by a lock beside it; anybody may read it meanwhile. What
writes is one connection, called from one worker thread at a time: a transaction is one thread
call, however many sessions it is for. Reading has connections and threads of its own, so a slow
commit holds up nobody but those who wait for it.
"""

import contextlib
import os
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import ClassVar, TypeVar

import trio

from trioloop.errors import InvalidInputError, UnknownSessionError
from trioloop.ids import SessionId
from trioloop.limits import Limits
from trioloop.ports import (
    Append,
    CommitAnswer,
    Durability,
    Lease,
    Owner,
    SessionSummary,
    StoredRow,
)
from trioloop.store.blobs import BlobFiles
from trioloop.store.database import Database
from trioloop.store.opening import Opening
from trioloop.store.rows import summaries, verified_rows
from trioloop.store.tables import blob_folder, reader, store_path

T = TypeVar("T")

_READERS_MAX = 4  # threads; each opens the file for itself


class SqliteStore:
    """Sessions in the SQLite file at `path`, made when the first session is.

    Nothing is opened or locked before it is needed. After `aclose` it may be used again.

    Args:
        path: the file. Beside it are SQLite's own `-wal` and `-shm`, the lock, and a folder of
            blob files.
        durability: `step` syncs each commit to the disk; `relaxed` survives the end of the
            process, but a power loss may take the last commits.
        blob_bytes_min: from this size in bytes on, an event is kept in a blob file.

    Raises:
        InvalidInputError: a setting that doesn't exist, or a path that names no file.
    """

    _connection_class: ClassVar[type[sqlite3.Connection]] = sqlite3.Connection

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Durability = "step",
        blob_bytes_min: int = Limits().blob_bytes_min,
    ) -> None:
        if durability not in ("step", "relaxed"):
            raise InvalidInputError(f"durability is 'step' or 'relaxed', not {durability!r}")
        self._path = store_path(path)
        self._blobs = BlobFiles(blob_folder(self._path))
        self._database = Database(
            self._path, durability, self._blobs, blob_bytes_min, self._connection_class
        )
        self._writing = trio.CapacityLimiter(1)
        self._reading = trio.CapacityLimiter(_READERS_MAX)
        self._openings: deque[Opening] = deque()  # waiting for whichever transaction comes next
        self._closing = False

    def __repr__(self) -> str:
        return f"SqliteStore({self._path!r})"

    async def open(self, session: SessionId, owner: Owner, *, create: bool) -> Lease:
        """Take the right to write a session.

        Once it has begun it can't be cancelled, so that no lease is taken and lost.

        Raises:
            SessionLockedError: a live owner has the session, or another one the file.
            SessionExistsError: `create`, and there is one of that name.
            UnknownSessionError: not `create`, and there is none of that name.
            StoreUnreadableError: the file can't be opened for writing.
            StoreFailedError: the store failed, now or before.
        """

        opening = Opening(session, owner, create)
        self._openings.append(opening)
        try:
            await self._write(self._open_waiting, abandon=False)
        except trio.Cancelled:  # noqa: ASYNC103 - as from a thread: what has begun is delivered
            if self._withdrawn(opening):
                raise
            # A lease that was given must not be lost. Bounded as any commit is: by its thread.
            with trio.CancelScope(shield=True):
                await self._write(self._open_waiting, abandon=False)
        return opening.result()

    def _open_waiting(self) -> None:
        openings = self._taken_openings()
        if openings:
            self._database.open_sessions(openings)

    def _taken_openings(self) -> list[Opening]:
        """All that wait, and are answered by whoever takes them. From any thread."""
        taken = []
        with contextlib.suppress(IndexError):
            while True:
                taken.append(self._openings.popleft())
        return taken

    def _withdrawn(self, opening: Opening) -> bool:
        """Whether nobody has taken it yet, and nobody will."""
        try:
            self._openings.remove(opening)
        except ValueError:
            return False
        return True

    async def commit(self, appends: Sequence[Append]) -> list[CommitAnswer]:
        """Write all appends in one transaction and answer each, in order.

        When it is cancelled, the transaction goes on in its thread and ends whole or absent.

        Raises:
            StoreFailedError: the transaction failed; committing it again tries a new connection.
        """
        return await self._write(lambda: self._commit(appends))

    def _commit(self, appends: Sequence[Append]) -> list[CommitAnswer]:
        openings = self._taken_openings()
        try:
            return self._database.commit(appends, openings)
        except Exception as error:
            for opening in openings:
                opening.refuse(error)
            raise

    async def read(
        self, session: SessionId, *, after: int = -1, limit: int | None = None
    ) -> list[StoredRow]:
        """Verified rows with a seq greater than `after`, in order. Needs no lease.

        Raises:
            UnknownSessionError: there is none of that name.
            DamagedSessionError: a row isn't what was written.
            StoreUnreadableError: the file can't be read.
        """

        def job() -> list[StoredRow]:
            if not os.path.exists(self._path):
                raise UnknownSessionError(f"the store has no session {session!r}")
            with reader(self._path) as connection:
                rows = verified_rows(connection, self._blobs, session, after)
                return list(islice(rows, limit))

        return await self._read(job)

    async def sessions(self) -> list[SessionSummary]:
        """All sessions, by name.

        Raises:
            StoreUnreadableError: the file can't be read.
        """

        def job() -> list[SessionSummary]:
            if not os.path.exists(self._path):
                return []
            with reader(self._path) as connection:
                return summaries(connection)

        return await self._read(job)

    async def put_blob(self, content: bytes) -> str:
        """Keep content in a file of its own, synced before this returns; the answer is its locator.

        Raises:
            StoreFailedError: it can't be written.
        """
        return await self._write(lambda: self._database.put_blob(content))

    async def get_blob(self, locator: str) -> bytes:
        """The content of a locator.

        Raises:
            StoreError: there is none, or it isn't what was put.
        """
        return await self._read(lambda: self._blobs.get(locator))

    async def renew(self, leases: Sequence[Lease]) -> list[Lease]:
        """The leases that are still held; they don't expire here."""
        await trio.lowlevel.checkpoint()
        return [lease for lease in leases if self._database.holds(lease)]

    async def release(self, lease: Lease) -> None:
        """Give the right to write back, even when cancelled. An old lease changes nothing."""
        self._database.release(lease)
        await trio.lowlevel.checkpoint()

    async def delete(self, session: SessionId) -> None:
        """Remove a session and its events. Blob files stay: other events may name them.

        Raises:
            SessionLockedError: a live owner has it.
            UnknownSessionError: there is none of that name.
        """
        await self._write(lambda: self._database.delete(session))

    async def aclose(self) -> None:
        """Close and unlock. Closing again does nothing.

        When it is cancelled while a commit hangs, that commit's thread closes when it is through.
        """
        self._closing = True
        await self._write(lambda: None)
        self._closing = False

    async def _write(self, job: Callable[[], T], *, abandon: bool = True) -> T:
        def run() -> T:
            try:
                return job()
            finally:
                if self._closing:
                    self._database.close()

        return await trio.to_thread.run_sync(run, abandon_on_cancel=abandon, limiter=self._writing)

    async def _read(self, job: Callable[[], T]) -> T:
        return await trio.to_thread.run_sync(job, abandon_on_cancel=True, limiter=self._reading)
