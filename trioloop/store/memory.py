"""A store that lasts as long as its process: the default, and what most tests run on."""

import hashlib
import time
from collections.abc import Sequence

import attrs
import trio

from trioloop.errors import (
    SessionExistsError,
    SessionLockedError,
    StoreError,
    UnknownSessionError,
)
from trioloop.ids import SessionId
from trioloop.ports import (
    Append,
    CommitAnswer,
    Committed,
    Lease,
    Owner,
    SessionSummary,
    StoredRow,
)
from trioloop.store.rules import Head, answer_without_writing


@attrs.define
class _Kept:
    """One session's rows, where they end, and who writes them."""

    head: Head
    created: int
    changed: int
    owner: Owner | None = None
    rows: list[StoredRow] = attrs.field(factory=list)


class MemoryStore:
    """Sessions in memory, for as long as this object lives.

    It keeps the contract of `SessionStore` whole: leases, epochs, recognised appends. Several
    runtimes may use one, in turn or at once. All methods are checkpoints and never block.
    """

    def __init__(self) -> None:
        self._sessions: dict[SessionId, _Kept] = {}
        self._blobs: dict[str, bytes] = {}
        self._epoch = 0  # of the whole store, so that a session made anew fences older owners too

    async def open(self, session: SessionId, owner: Owner, *, create: bool) -> Lease:
        """Take the right to write a session.

        Raises:
            SessionLockedError: a live owner has it.
            SessionExistsError: `create`, and there is one of that name.
            UnknownSessionError: not `create`, and there is none of that name.
        """
        await trio.lowlevel.checkpoint()
        kept = self._sessions.get(session)
        if kept is not None and kept.owner is not None:
            raise SessionLockedError(f"session {session!r}", str(kept.owner))
        if create:
            kept = self._create(session)
        elif kept is None:
            raise _unknown(session)
        kept.owner = owner
        self._epoch += 1
        kept.head = kept.head.owned(self._epoch)
        return Lease(session, kept.head.epoch, kept.head.next_seq)

    def _create(self, session: SessionId) -> _Kept:
        if session in self._sessions:
            raise SessionExistsError(
                f"the store has a session {session!r}: resume it, or take another name"
            )
        now = _now_ms()
        kept = self._sessions[session] = _Kept(Head(epoch=0), created=now, changed=now)
        return kept

    async def commit(self, appends: Sequence[Append]) -> list[CommitAnswer]:
        """Write all appends at once and answer each, in order."""
        await trio.lowlevel.checkpoint()
        return [self._commit_one(append) for append in appends]

    def _commit_one(self, append: Append) -> CommitAnswer:
        kept = self._sessions.get(append.lease.session) or _Kept(Head(epoch=0), 0, 0)
        answer = answer_without_writing(kept.head, append, held=kept.owner is not None)
        if answer is None:
            kept.rows.extend(append.rows)
            kept.head = kept.head.after(append)
            kept.changed = _now_ms()
            answer = Committed(kept.head.next_seq)
        return answer

    async def read(
        self, session: SessionId, *, after: int = -1, limit: int | None = None
    ) -> list[StoredRow]:
        """Rows with a seq greater than `after`, in order. Needs no lease.

        Raises:
            UnknownSessionError: there is none of that name.
        """
        await trio.lowlevel.checkpoint()
        rows = self._known(session).rows
        first = max(after + 1, 0)
        return rows[first:] if limit is None else rows[first : first + limit]

    async def sessions(self) -> list[SessionSummary]:
        """All sessions, by name."""
        await trio.lowlevel.checkpoint()
        return [
            SessionSummary(
                session=session,
                events=len(kept.rows),
                bytes=sum(len(row.payload) for row in kept.rows),
                created=kept.created,
                changed=kept.changed,
                epoch=kept.head.epoch,
            )
            for session, kept in sorted(self._sessions.items())
        ]

    async def put_blob(self, content: bytes) -> str:
        """Keep content; the answer is its locator, which equal content shares."""
        await trio.lowlevel.checkpoint()
        locator = hashlib.sha256(content).hexdigest()
        self._blobs[locator] = bytes(content)
        return locator

    async def get_blob(self, locator: str) -> bytes:
        """The content of a locator.

        Raises:
            StoreError: there is none.
        """
        await trio.lowlevel.checkpoint()
        try:
            return self._blobs[locator]
        except KeyError:
            raise StoreError(f"the store holds no content {locator!r}") from None

    async def renew(self, leases: Sequence[Lease]) -> list[Lease]:
        """The leases that are still held; they don't expire here."""
        await trio.lowlevel.checkpoint()
        return [lease for lease in leases if self._holds(lease)]

    async def release(self, lease: Lease) -> None:
        """Give the right to write back, even when cancelled. An old lease changes nothing."""
        if self._holds(lease):
            self._sessions[lease.session].owner = None
        await trio.lowlevel.checkpoint()

    async def delete(self, session: SessionId) -> None:
        """Remove a session and its events.

        Raises:
            SessionLockedError: a live owner has it.
            UnknownSessionError: there is none of that name.
        """
        await trio.lowlevel.checkpoint()
        owner = self._known(session).owner
        if owner is not None:
            raise SessionLockedError(f"session {session!r}", str(owner))
        del self._sessions[session]

    async def aclose(self) -> None:
        """Nothing to do: sessions and leases last as long as the store."""
        await trio.lowlevel.checkpoint()

    def _known(self, session: SessionId) -> _Kept:
        try:
            return self._sessions[session]
        except KeyError:
            raise _unknown(session) from None

    def _holds(self, lease: Lease) -> bool:
        kept = self._sessions.get(lease.session)
        return kept is not None and kept.owner is not None and kept.head.epoch == lease.epoch


def _unknown(session: SessionId) -> UnknownSessionError:
    return UnknownSessionError(f"the store has no session {session!r}")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
