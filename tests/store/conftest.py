"""Stores of each kind, and rows to put into them."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from trioloop.codec import chain_crc, encode_event
from trioloop.events import FORMAT, Event, EventData, SessionOpened, TurnStarted
from trioloop.ids import SessionId
from trioloop.ports import Append, Lease, Owner, SessionStore, StoredRow
from trioloop.store import MemoryStore, SqliteStore

MakeRows = Callable[..., tuple[StoredRow, ...]]


@pytest.fixture
def owner() -> Owner:
    """Somebody who writes."""
    return Owner(1, "here", "test")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where an SQLite store may be."""
    return tmp_path / "agents.db"


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, path: Path) -> AsyncIterator[SessionStore]:
    """An empty store: each test that asks for it runs on every kind."""
    if request.param == "memory":
        yield MemoryStore()
        return
    sqlite = SqliteStore(path)
    yield sqlite
    await sqlite.aclose()


@pytest.fixture
def make_rows() -> MakeRows:
    """Builds rows: `make_rows(count, after=rows, session=..., size=...)`."""

    def make(
        count: int,
        *,
        after: tuple[StoredRow, ...] = (),
        session: str = "paris",
        cwd: str | None = None,
    ) -> tuple[StoredRow, ...]:
        first, crc = (after[-1].seq + 1, after[-1].crc) if after else (0, 0)
        return tuple(_rows(first, count, crc, session, cwd))

    return make


def _rows(first: int, count: int, crc: int, session: str, cwd: str | None) -> Iterator[StoredRow]:
    for seq in range(first, first + count):
        opened = SessionOpened(format=FORMAT, session=session, created=0, cwd=cwd)
        data: EventData = TurnStarted(seq) if seq else opened
        payload = encode_event(Event(seq, 1_000 + seq, data))
        crc = chain_crc(crc, payload)
        yield StoredRow(seq, payload, crc)


@pytest.fixture
def append_of() -> Callable[..., Append]:
    """Builds an append of some rows under a lease."""

    def make(lease: Lease, rows: tuple[StoredRow, ...], append_id: str = "") -> Append:
        first = rows[0].seq
        return Append(lease, first, append_id or f"{lease.epoch}.{first}", rows)

    return make


@pytest.fixture
def name() -> SessionId:
    """A session's name."""
    return SessionId("paris")
