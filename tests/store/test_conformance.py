"""Our own stores keep every promise of a store, and one that breaks any is told which."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest
import trio

from trioloop.ids import SessionId
from trioloop.ports import (
    Append,
    CommitAnswer,
    Committed,
    Lease,
    Owner,
    SessionStore,
    SessionSummary,
    StoredRow,
)
from trioloop.store import MemoryStore
from trioloop.testing import STORE_PROMISES, StorePromise, store_conformance


@pytest.mark.parametrize("promise", STORE_PROMISES, ids=lambda promise: promise.__name__)
async def test_our_stores_keep_every_promise(store: SessionStore, promise: StorePromise) -> None:
    await promise(store)


class Forgetful(MemoryStore):
    """Answers, and keeps nothing."""

    async def commit(self, appends: Sequence[Append]) -> list[CommitAnswer]:
        await trio.lowlevel.checkpoint()
        return [Committed(append.rows[-1].seq + 1) for append in appends]


class Trusting(MemoryStore):
    """Lets everybody in."""

    async def open(self, session: SessionId, owner: Owner, *, create: bool) -> Lease:
        kept = self._sessions.get(session)
        if kept is not None:
            kept.owner = None
        return await super().open(session, owner, create=create)


class Unfenced(MemoryStore):
    """Takes an old lease for a new one."""

    async def commit(self, appends: Sequence[Append]) -> list[CommitAnswer]:
        heads = {one.session: one.epoch for one in await self.sessions()}
        return await super().commit(
            [
                attrs.evolve(one, lease=attrs.evolve(one.lease, epoch=heads[one.lease.session]))
                for one in appends
            ]
        )


class Unhurried(MemoryStore):
    """Answers without a checkpoint."""

    async def sessions(self) -> list[SessionSummary]:
        return []


class Crashing(MemoryStore):
    """Raises what no store should."""

    async def read(
        self, session: SessionId, *, after: int = -1, limit: int | None = None
    ) -> list[StoredRow]:
        await trio.lowlevel.checkpoint()
        raise KeyError(session)


class Short(MemoryStore):
    """Reads one row less than there are."""

    async def read(
        self, session: SessionId, *, after: int = -1, limit: int | None = None
    ) -> list[StoredRow]:
        return (await super().read(session, after=after, limit=limit))[:-1]


class Doubling(MemoryStore):
    """Doesn't recognise an append that is repeated."""

    async def commit(self, appends: Sequence[Append]) -> list[CommitAnswer]:
        renamed = [
            attrs.evolve(one, append_id=f"{id(one)}.{trio.current_time()}") for one in appends
        ]
        return await super().commit(renamed)


@pytest.mark.parametrize(
    ("broken", "promise"),
    [
        (Forgetful, "What is committed is read back"),
        (Trusting, "refused to others, naming who holds it"),
        (Unfenced, "writes nothing"),
        (Unhurried, "listed by name"),
        (Crashing, r"What is committed is read back.* KeyError\('paris'\)"),
        (Short, "read back"),
        (Doubling, "recognised by its id"),
    ],
)
async def test_a_store_that_breaks_a_promise_is_told_which(
    broken: Callable[[], SessionStore], promise: str
) -> None:
    @asynccontextmanager
    async def one() -> AsyncIterator[SessionStore]:
        yield broken()

    with pytest.raises(AssertionError, match=promise):
        await store_conformance(one)


async def test_a_whole_store_passes(tmp_path: Path) -> None:
    opened = 0

    @asynccontextmanager
    async def one() -> AsyncIterator[SessionStore]:
        nonlocal opened
        opened += 1
        yield MemoryStore()

    await store_conformance(one)
    assert opened == len(STORE_PROMISES)
