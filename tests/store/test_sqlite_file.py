"""What an SQLite store does with its file: making, locking, syncing, refusing."""

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from trioloop.errors import (
    InvalidInputError,
    SessionLockedError,
    StoreUnreadableError,
    TrioloopError,
    UnknownSessionError,
)
from trioloop.ids import SessionId
from trioloop.ports import Append, Owner, StoredRow
from trioloop.store import SqliteStore, list_sessions, read_rows, read_session

MakeRows = Callable[..., tuple[StoredRow, ...]]
AppendOf = Callable[..., Append]

HOLDER = """
import sys, trio
from trioloop.ports import Owner
from trioloop.store import SqliteStore
async def main():
    import os
    store = SqliteStore(sys.argv[1])
    await store.open("rome", Owner(os.getpid(), "elsewhere"), create=True)
    print("held", flush=True)
    await trio.sleep_forever()
trio.run(main)
"""


def sizes(folder: Path) -> dict[str, int]:
    """The files in a folder, with their bytes."""
    return {file.name: file.stat().st_size for file in folder.iterdir()}


async def test_nothing_is_made_or_locked_before_the_first_session(
    path: Path, name: SessionId, owner: Owner
) -> None:
    store = SqliteStore(path)
    assert await store.sessions() == []
    with pytest.raises(UnknownSessionError):
        await store.read(name)
    assert sizes(path.parent) == {}
    await store.open(name, owner, create=True)
    assert sizes(path.parent)[path.name] > 0
    await store.aclose()


async def test_a_store_outlives_its_object(
    path: Path, name: SessionId, owner: Owner, make_rows: MakeRows, append_of: AppendOf
) -> None:
    rows = make_rows(6)
    first = SqliteStore(path)
    lease = await first.open(name, owner, create=True)
    await first.commit([append_of(lease, rows[:3])])
    await first.aclose()
    second = SqliteStore(path)
    later = await second.open(name, owner, create=False)
    assert later.epoch > lease.epoch
    await second.commit([append_of(later, rows[3:])])
    assert await second.read(name) == list(rows)
    await second.aclose()
    assert read_rows(path, name) == rows


async def test_a_closed_store_opens_again_when_it_is_needed(
    path: Path, name: SessionId, owner: Owner
) -> None:
    store = SqliteStore(path)
    await store.open(name, owner, create=True)
    await store.aclose()
    await store.aclose()
    await store.open(name, owner, create=False)
    await store.aclose()


@pytest.mark.parametrize(("durability", "level"), [("step", 2), ("relaxed", 1)])
async def test_each_durability_has_its_level_of_syncing(
    path: Path, name: SessionId, owner: Owner, durability: str, level: int
) -> None:
    opened: list[sqlite3.Connection] = []

    class Watched(sqlite3.Connection):
        def __init__(self, *args: object, **options: object) -> None:
            super().__init__(*args, **options)  # type: ignore[arg-type]
            opened.append(self)

    class WatchedStore(SqliteStore):
        _connection_class = Watched

    store = WatchedStore(path, durability=durability)  # type: ignore[arg-type]
    await store.open(name, owner, create=True)
    (connection,) = opened
    assert connection.execute("PRAGMA synchronous").fetchone() == (level,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    await store.aclose()


def test_a_setting_that_does_not_exist_is_refused(path: Path) -> None:
    with pytest.raises(InvalidInputError, match="'never'"):
        SqliteStore(path, durability="never")  # type: ignore[arg-type]
    for text in ("", ":memory:"):
        with pytest.raises(InvalidInputError, match="MemoryStore"):
            SqliteStore(text)


async def test_two_stores_of_one_process_exclude_each_other_until_one_closes(
    path: Path, name: SessionId, owner: Owner
) -> None:
    first, second = SqliteStore(path), SqliteStore(path)
    await first.open(name, owner, create=True)
    alias = path.with_name("alias.db")
    alias.symlink_to(path)
    for other in (second, SqliteStore(alias)):
        with pytest.raises(SessionLockedError, match="test 1 on here"):
            await other.open(SessionId("rome"), Owner(2, "there"), create=True)
    assert [one.session for one in await second.sessions()] == ["paris"]
    await first.aclose()
    await second.open(name, owner, create=False)
    await second.aclose()


async def test_another_process_is_named_and_its_lock_ends_with_it(
    path: Path, name: SessionId, owner: Owner
) -> None:
    holder = subprocess.Popen(  # noqa: ASYNC220 - its one line is waited for at once
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        store = SqliteStore(path)
        with pytest.raises(SessionLockedError, match=f"{holder.pid} on elsewhere"):
            await store.open(name, owner, create=True)
        assert [one.session for one in list_sessions(path)] == ["rome"]
        holder.kill()
        holder.wait()
        await store.open(name, owner, create=True)
        await store.aclose()


async def test_a_large_event_is_kept_in_a_file_of_its_own(
    path: Path, name: SessionId, owner: Owner, make_rows: MakeRows, append_of: AppendOf
) -> None:
    store = SqliteStore(path, blob_bytes_min=1_000)
    lease = await store.open(name, owner, create=True)
    rows = make_rows(3, cwd="x" * 100_000)
    await store.commit([append_of(lease, rows)])
    assert await store.read(name) == list(rows)
    await store.aclose()
    assert read_rows(path, name) == rows
    assert sizes(path.parent)[path.name] < 100_000
    (kept,) = [file for file in path.with_name("agents.db.blobs").rglob("*") if file.is_file()]
    assert kept.read_bytes() == rows[0].payload


async def test_what_a_crash_left_unfinished_is_removed_by_the_next_owner(
    path: Path, name: SessionId, owner: Owner
) -> None:
    unfinished = path.with_name("agents.db.blobs") / "new" / "half"
    unfinished.parent.mkdir(parents=True)
    unfinished.write_bytes(b"half of")
    store = SqliteStore(path)
    await store.open(name, owner, create=True)
    assert not unfinished.exists()
    await store.aclose()


async def test_a_changed_blob_file_is_found_and_put_again(path: Path) -> None:
    store = SqliteStore(path)
    locator = await store.put_blob(b"content")
    file = path.with_name("agents.db.blobs") / locator[:2] / locator
    file.write_bytes(b"CONTENT")
    with pytest.raises(TrioloopError, match="damaged"):
        await store.get_blob(locator)
    assert await store.put_blob(b"content") == locator
    assert await store.get_blob(locator) == b"content"
    await store.aclose()


# Files that are no store


def unreadable_paths(folder: Path) -> dict[str, Path]:
    """One of each kind, by what its error says."""
    text = folder / "notes.txt"
    text.write_text("no database at all" * 100)
    foreign = folder / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE other (x)")
    connection.close()
    newer = folder / "newer.db"
    with sqlite3.connect(newer) as connection:
        connection.execute(f"PRAGMA application_id = {0x7472696F}")
        connection.execute("PRAGMA user_version = 99")
        connection.execute("CREATE TABLE session (x)")
    connection.close()
    return {
        "is a directory": folder,
        "is no folder": folder / "none" / "agents.db",
        "is no trioloop store": text,
        "is no trioloop store:": foreign,
        "version 99": newer,
    }


async def test_what_cannot_be_a_store_is_refused_in_one_line(
    tmp_path: Path, name: SessionId, owner: Owner
) -> None:
    for why, path in unreadable_paths(tmp_path).items():
        before = path.read_bytes() if path.is_file() else b""
        for attempt in (lambda p=path: read_session(p, "paris"), lambda p=path: list_sessions(p)):
            with pytest.raises(StoreUnreadableError, match=why) as caught:
                attempt()
            assert "\n" not in str(caught.value)
        with pytest.raises(StoreUnreadableError, match=why):
            await SqliteStore(path).open(name, owner, create=True)
        assert path.is_dir() or not path.exists() or path.read_bytes() == before


@pytest.mark.parametrize("begun", [False, True])
def test_a_file_whose_maker_died_at_once_reads_as_a_store_without_sessions(
    path: Path, begun: bool
) -> None:
    path.touch()
    if begun:
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
        connection.close()
    assert list_sessions(path) == []
    with pytest.raises(UnknownSessionError, match="no session 'paris'"):
        read_session(path, "paris")


def test_a_missing_file_is_named(path: Path) -> None:
    with pytest.raises(StoreUnreadableError, match="doesn't exist"):
        read_session(path, "paris")
    assert not path.exists()


# Reading while it is written


async def test_reading_goes_on_while_it_is_written(
    path: Path, name: SessionId, owner: Owner, make_rows: MakeRows, append_of: AppendOf
) -> None:
    store = SqliteStore(path)
    lease = await store.open(name, owner, create=True)
    rows: tuple[StoredRow, ...] = ()
    for _ in range(30):
        new = make_rows(7, after=rows)
        await store.commit([append_of(lease, new)])
        rows += new
        assert read_rows(path, name) == rows
        assert await store.read(name, after=rows[-4].seq) == list(rows[-3:])
    await store.aclose()


async def test_a_slow_commit_holds_up_no_reader(
    path: Path, name: SessionId, owner: Owner, make_rows: MakeRows, append_of: AppendOf
) -> None:
    entered = trio.Event()
    token = trio.lowlevel.current_trio_token()
    go_on = threading.Event()

    class Slow(sqlite3.Connection):
        slow = False

        def execute(self, *args: object) -> sqlite3.Cursor:
            if Slow.slow and args == ("COMMIT",):
                token.run_sync_soon(entered.set)
                go_on.wait()
            return super().execute(*args)  # type: ignore[arg-type]

    class SlowStore(SqliteStore):
        _connection_class = Slow

    store = SlowStore(path)
    lease = await store.open(name, owner, create=True)
    Slow.slow = True
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.commit, [append_of(lease, make_rows(1))])
        await entered.wait()
        assert await store.read(name) == []
        assert len(await store.sessions()) == 1
        with trio.move_on_after(0.05) as closing:
            await store.aclose()
        assert closing.cancelled_caught
        other = SqliteStore(path)
        with pytest.raises(SessionLockedError):
            await other.open(name, owner, create=False)
        go_on.set()
    with trio.fail_after(5):
        while True:
            try:
                await other.open(name, owner, create=False)
                break
            except SessionLockedError:
                await trio.sleep(0.01)
    assert len(await other.read(name)) == 1
    await other.aclose()


async def test_sessions_that_are_opened_at_once_share_transactions(
    path: Path, owner: Owner, make_rows: MakeRows, append_of: AppendOf
) -> None:
    begun = 0

    class Counting(sqlite3.Connection):
        def execute(self, *args: object) -> sqlite3.Cursor:
            nonlocal begun
            begun += args == ("BEGIN IMMEDIATE",)
            return super().execute(*args)  # type: ignore[arg-type]

    class CountingStore(SqliteStore):
        _connection_class = Counting

    store = CountingStore(path)
    first = await store.open(SessionId("first"), owner, create=True)
    begun = 0

    async def open_one(number: int) -> None:
        lease = await store.open(SessionId(f"s{number}"), owner, create=True)
        await store.commit([append_of(lease, make_rows(1, session=f"s{number}"))])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.commit, [append_of(first, make_rows(1, session="first"))])
        for number in range(30):
            nursery.start_soon(open_one, number)
    assert begun <= 3 + 30  # at most three for all openings; one for each commit
    assert len(await store.sessions()) == 31
    await store.aclose()


async def test_an_opening_that_is_cancelled_while_it_waits_makes_no_session(
    path: Path, owner: Owner
) -> None:
    store = SqliteStore(path)
    await store.open(SessionId("first"), owner, create=True)
    with trio.CancelScope() as scope:
        scope.cancel()
        await store.open(SessionId("second"), owner, create=True)
    assert scope.cancelled_caught
    assert [one.session for one in await store.sessions()] == ["first"]
    await store.open(SessionId("second"), owner, create=True)
    await store.aclose()
