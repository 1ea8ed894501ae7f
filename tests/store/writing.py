"""A writer on a store whose commits are slow or fail, for the tests of both."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import attrs
import trio

from trioloop.errors import StoreError
from trioloop.ids import SessionId
from trioloop.limits import Limits
from trioloop.ports import Append, CommitAnswer, Owner
from trioloop.store import MemoryStore
from trioloop.store.writer import Journal, StoreWriter

OWNER = Owner(1, "here")


class SlowStore(MemoryStore):
    """Commits take `delay_s`; with `error` set they raise it, before or after writing."""

    def __init__(self) -> None:
        super().__init__()
        self.delay_s: float = 0
        self.error: Exception | None = None
        self.fails_after_writing = False
        self.transactions: list[list[Append]] = []

    async def commit(self, appends: Sequence[Append]) -> list[CommitAnswer]:
        self.transactions.append(list(appends))
        await trio.sleep(self.delay_s)
        if self.error is not None and not self.fails_after_writing:
            raise self.error
        answers = await super().commit(appends)
        if self.error is not None:
            raise self.error
        return answers


@attrs.define
class Writing:
    """A store with a running writer, and what its journals were told."""

    store: SlowStore
    writer: StoreWriter
    durable: list[tuple[str, int]] = attrs.field(factory=list)
    failures: list[tuple[str, StoreError]] = attrs.field(factory=list)

    async def journal(self, session: str) -> Journal:
        lease = await self.store.open(SessionId(session), OWNER, create=True)
        return self.writer.journal(
            lease,
            crc=0,
            on_durable=lambda seq: self.durable.append((session, seq)),
            on_failure=lambda error: self.failures.append((session, error)),
        )


@asynccontextmanager
async def writing(limits: Limits | None = None) -> AsyncIterator[Writing]:
    store = SlowStore()
    world = Writing(store, StoreWriter(store, limits or Limits()))
    async with trio.open_nursery() as nursery:
        await nursery.start(world.writer.run)
        try:
            yield world
        finally:
            world.writer.close()


def put(journal: Journal, *seqs: int) -> None:
    journal.append([b"event %d" % seq for seq in seqs])
