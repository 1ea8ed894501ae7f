"""A store that goes wrong at a chosen commit, around one that works."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import trio

from trioloop.errors import StoreFailedError
from trioloop.ids import SessionId
from trioloop.ports import (
    Append,
    CommitAnswer,
    Lease,
    Owner,
    SessionStore,
    SessionSummary,
    StoredRow,
)

StoreFault: TypeAlias = Literal["fails", "torn", "fenced"]


class FaultyStore:
    """A store whose commits go wrong from a chosen one on; all else passes to the one inside.

    What goes wrong:

    - `fails`: nothing is written, and `StoreFailedError` raised;
    - `torn`: everything is written, and `StoreFailedError` raised, as when an answer is lost;
    - `fenced`: another owner takes the sessions concerned, so that the commit is refused.

    Args:
        kept: where everything is kept; to be read, or opened anew, behind the run.
        first: the commit that goes wrong first, counted from 1.
        count: how many go wrong from that one on; None: all.
        fault: what goes wrong.

    Attributes:
        kept: the store inside.
        commits: how many commits were asked for.
        failed: how many went wrong.
    """

    def __init__(
        self,
        kept: SessionStore,
        *,
        first: int,
        count: int | None = None,
        fault: StoreFault = "fails",
    ) -> None:
        self.kept = kept
        self.commits = 0
        self.failed = 0
        self._first = first
        self._count = count
        self._fault = fault
        self._healed = False

    def heal(self) -> None:
        """Let nothing go wrong any more."""
        self._healed = True

    @property
    def _goes_wrong(self) -> bool:
        past = self.commits - self._first
        return not self._healed and past >= 0 and (self._count is None or past < self._count)

    async def commit(self, appends: Sequence[Append]) -> list[CommitAnswer]:
        """Write all appends, or go wrong.

        Raises:
            StoreFailedError: it goes wrong.
        """
        self.commits += 1
        if not self._goes_wrong:
            return await self.kept.commit(appends)
        self.failed += 1
        await trio.lowlevel.checkpoint()
        if self._fault == "fenced":
            await self._take_over(appends)
            return await self.kept.commit(appends)
        if self._fault == "torn":
            await self.kept.commit(appends)
        raise StoreFailedError(f"the sweep lets commit {self.commits} fail")

    async def _take_over(self, appends: Sequence[Append]) -> None:
        """Let another owner take each session, and give it back unchanged."""
        for session in dict.fromkeys(append.lease.session for append in appends):
            for append in appends:
                await self.kept.release(append.lease)
            other = await self.kept.open(session, Owner(0, "elsewhere", "the sweep"), create=False)
            await self.kept.release(other)

    # What passes

    async def open(self, session: SessionId, owner: Owner, *, create: bool) -> Lease:
        """Take the right to write a session."""
        return await self.kept.open(session, owner, create=create)

    async def read(
        self, session: SessionId, *, after: int = -1, limit: int | None = None
    ) -> list[StoredRow]:
        """Rows with a seq greater than `after`, in order."""
        return await self.kept.read(session, after=after, limit=limit)

    async def sessions(self) -> list[SessionSummary]:
        """All sessions, by name."""
        return await self.kept.sessions()

    async def put_blob(self, content: bytes) -> str:
        """Keep content; the answer is its locator."""
        return await self.kept.put_blob(content)

    async def get_blob(self, locator: str) -> bytes:
        """The content of a locator."""
        return await self.kept.get_blob(locator)

    async def renew(self, leases: Sequence[Lease]) -> list[Lease]:
        """Extend leases."""
        return await self.kept.renew(leases)

    async def release(self, lease: Lease) -> None:
        """Give the right to write back."""
        await self.kept.release(lease)

    async def delete(self, session: SessionId) -> None:
        """Remove a session and its events."""
        await self.kept.delete(session)

    async def aclose(self) -> None:
        """Close the store inside."""
        await self.kept.aclose()
