"""What an SQLite store does when its disk fails at any one call: poisoned, reported, reopened.

The n-th statement of a run fails for n = 1, 2, 3, ... until a run ends clean; after each, nothing
acknowledged is lost and the file reads back as one of the two states it may have.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from trioloop.errors import StoreFailedError, TrioloopError
from trioloop.ids import SessionId
from trioloop.ports import Append, Committed, Owner, StoredRow
from trioloop.store import SqliteStore, read_rows
from trioloop.store.blobs import BlobFiles

MakeRows = Callable[..., tuple[StoredRow, ...]]
AppendOf = Callable[..., Append]
PARIS, ROME = SessionId("paris"), SessionId("rome")
OWNER = Owner(1, "here")


class Disk:
    """Fails the call number `fails_at` and, with `for_good`, all after it."""

    def __init__(self) -> None:
        self.calls = 0
        self.fails_at = 0
        self.after_doing_it = False
        self.for_good = False

    def passes(self) -> bool:
        self.calls += 1
        failing = self.fails_at and (
            self.calls >= self.fails_at if self.for_good else self.calls == self.fails_at
        )
        return not failing

    def reset(self, fails_at: int = 0) -> None:
        self.calls, self.fails_at = 0, fails_at


DISK = Disk()


class FailingConnection(sqlite3.Connection):
    """A connection whose statements fail as `DISK` says."""

    def execute(self, *args: object) -> sqlite3.Cursor:
        return self._do(super().execute, *args)

    def executemany(self, *args: object) -> sqlite3.Cursor:
        return self._do(super().executemany, *args)

    def _do(self, act: Callable[..., sqlite3.Cursor], *args: object) -> sqlite3.Cursor:
        if DISK.passes():
            return act(*args)
        if DISK.after_doing_it:
            act(*args)
        raise sqlite3.OperationalError("disk I/O error")


class FailingStore(SqliteStore):
    """An SQLite store on a disk that fails."""

    _connection_class = FailingConnection


@pytest.fixture(autouse=True)
def disk() -> Disk:
    """A disk that works until a test says otherwise."""
    DISK.__init__()  # type: ignore[misc]
    return DISK


@pytest.mark.parametrize("after_doing_it", [False, True])
async def test_a_commit_that_fails_at_any_statement_is_whole_or_absent_and_can_be_repeated(
    tmp_path: Path,
    make_rows: MakeRows,
    append_of: AppendOf,
    disk: Disk,
    after_doing_it: bool,
) -> None:
    rows = make_rows(4)
    failed = 0
    for fails_at in range(1, 40):
        path = tmp_path / f"{fails_at}.db"
        store = FailingStore(path)
        lease = await store.open(PARIS, OWNER, create=True)
        await store.commit([append_of(lease, rows[:2])])
        disk.after_doing_it = after_doing_it
        disk.reset(fails_at)
        append = append_of(lease, rows[2:])
        try:
            await store.commit([append])
        except StoreFailedError:
            failed += 1
            with pytest.raises(StoreFailedError, match="has failed"):
                await store.open(ROME, OWNER, create=True)
            disk.reset()
            assert read_rows(path, PARIS) in (rows[:2], rows)
            assert await store.commit([append]) == [Committed(4)]
        disk.reset()
        assert await store.read(PARIS) == list(rows)
        await store.open(ROME, OWNER, create=True)
        await store.aclose()
        if failed < fails_at:
            break
    assert failed >= 4


async def test_a_store_stays_failed_until_its_disk_works(
    path: Path,
    make_rows: MakeRows,
    append_of: AppendOf,
    disk: Disk,
) -> None:
    store = FailingStore(path)
    lease = await store.open(PARIS, OWNER, create=True)
    disk.reset(1)
    disk.for_good = True
    append = append_of(lease, make_rows(2))
    for _ in range(3):
        with pytest.raises(StoreFailedError, match="disk I/O error"):
            await store.commit([append])
    with pytest.raises(StoreFailedError, match="has failed"):
        await store.delete(ROME)
    with pytest.raises(StoreFailedError, match="has failed"):
        await store.put_blob(b"x")
    assert await store.read(PARIS) == []
    disk.reset()
    assert await store.commit([append]) == [Committed(2)]
    await store.aclose()


async def test_a_failed_open_takes_no_lease(path: Path, disk: Disk) -> None:
    store = FailingStore(path)
    await store.open(ROME, OWNER, create=True)
    disk.reset(4)
    disk.after_doing_it = True
    with pytest.raises(StoreFailedError):
        await store.open(PARIS, OWNER, create=True)
    disk.reset()
    assert await store.commit([]) == []
    lease = await store.open(PARIS, OWNER, create=True)
    assert lease.next_seq == 0
    await store.aclose()


async def test_a_file_that_does_not_read_back_as_written_stays_failed(
    path: Path,
    make_rows: MakeRows,
    append_of: AppendOf,
    disk: Disk,
) -> None:
    store = FailingStore(path)
    lease = await store.open(PARIS, OWNER, create=True)
    rows = make_rows(4)
    await store.commit([append_of(lease, rows[:2])])
    disk.reset(1)
    append = append_of(lease, rows[2:])
    with pytest.raises(StoreFailedError):
        await store.commit([append])
    with sqlite3.connect(path) as other:
        other.execute("UPDATE session SET next_seq = 1")
    other.close()
    with pytest.raises(StoreFailedError, match="'paris' isn't what was written"):
        await store.commit([append])
    with sqlite3.connect(path) as other:
        other.execute("UPDATE session SET next_seq = 2")
    other.close()
    assert await store.commit([append]) == [Committed(4)]
    await store.aclose()


async def test_content_that_cannot_be_kept_fails_its_commit(
    path: Path,
    make_rows: MakeRows,
    append_of: AppendOf,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(self: BlobFiles, content: bytes) -> str:
        raise OSError(28, "No space left on device")

    store = SqliteStore(path, blob_bytes_min=10)
    lease = await store.open(PARIS, OWNER, create=True)
    append = append_of(lease, make_rows(2))
    with monkeypatch.context() as patch:
        patch.setattr(BlobFiles, "put", full)
        with pytest.raises(StoreFailedError, match="No space left"):
            await store.put_blob(b"x")
        with pytest.raises(StoreFailedError, match="No space left"):
            await store.commit([append])
        assert await store.read(PARIS) == []
    assert await store.commit([append]) == [Committed(2)]
    assert len(await store.read(PARIS)) == 2
    await store.aclose()


async def test_a_refused_open_leaves_the_store_working(path: Path) -> None:
    store = SqliteStore(path)
    for _ in range(2):
        with pytest.raises(TrioloopError, match="no session"):
            await store.open(PARIS, OWNER, create=False)
    await store.open(PARIS, OWNER, create=True)
    await store.aclose()
