"""A store in memory whose commits go wrong as a script says, and that knows what is durable."""

from collections.abc import Awaitable, Callable, Sequence

import trio

from tests.simulation.script import StoreFault
from trioloop.errors import StoreFailedError
from trioloop.ids import SessionId
from trioloop.ports import Append, CommitAnswer, Committed, Lease, Owner, StoredRow
from trioloop.store.memory import MemoryStore


class ScriptedStore(MemoryStore):
    """As `MemoryStore`, but for the faults of its commits; each method passes two waits.

    Attributes:
        durable: for each session, the seq that its next durable event will have.
        failed: commits that failed in some way.
    """

    def __init__(
        self, faults: Sequence[StoreFault], pass_waits: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__()
        self.durable: dict[SessionId, int] = {}
        self.failed = 0
        self._faults = {fault.at: fault for fault in faults}
        self._commits = 0
        self._pass_waits = pass_waits

    async def open(self, session: SessionId, owner: Owner, *, create: bool) -> Lease:
        """Take the right to write a session."""
        await self._pass_waits()
        return await super().open(session, owner, create=create)

    async def read(
        self, session: SessionId, *, after: int = -1, limit: int | None = None
    ) -> list[StoredRow]:
        """Rows with a seq greater than `after`."""
        await self._pass_waits()
        return await super().read(session, after=after, limit=limit)

    async def commit(self, appends: Sequence[Append]) -> list[CommitAnswer]:
        """Write all appends, or do what the fault of this commit says."""
        fault = self._faults.get(self._commits)
        self._commits += 1
        await self._pass_waits()
        if fault is None:
            return await self._write(appends)
        await trio.sleep(fault.seconds)
        return await self._go_wrong(fault, appends)

    async def _go_wrong(self, fault: StoreFault, appends: Sequence[Append]) -> list[CommitAnswer]:
        if fault.does == "slow":
            return await self._write(appends)
        self.failed += 1
        if fault.does == "fence":
            for append in appends[:1]:
                self._fence(append.lease.session)
            return await self._write(appends)
        if fault.does == "hang":
            await trio.sleep_forever()
        if fault.does == "torn":
            await self._write(appends)
        if fault.does == "odd":
            raise OSError(5, "Input/output error")
        raise StoreFailedError("the script says so")

    async def _write(self, appends: Sequence[Append]) -> list[CommitAnswer]:
        answers = await super().commit(appends)
        for append, answer in zip(appends, answers, strict=True):
            if isinstance(answer, Committed):
                self.durable[append.lease.session] = answer.next_seq
        return answers

    def _fence(self, session: SessionId) -> None:
        """Another owner takes the session, and gives it back unchanged."""
        kept = self._sessions[session]
        self._epoch += 1
        kept.head = kept.head.owned(self._epoch)
        kept.owner = None
