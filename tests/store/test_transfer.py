"""Sessions out of one file and into another: equal, or nothing at all."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

import trioloop
from trioloop.errors import (
    DamagedExportError,
    DamagedSessionError,
    InvalidInputError,
    SessionExistsError,
    SessionLockedError,
    StoreUnreadableError,
)
from trioloop.ids import SessionId
from trioloop.models import DemonstrationModel
from trioloop.ports import Append, Owner, StoredRow
from trioloop.store import SqliteStore, list_sessions, read_rows
from trioloop.store.tables import reader

MakeRows = Callable[..., tuple[StoredRow, ...]]
AppendOf = Callable[..., Append]
ROOT = str(Path(__file__).resolve().parents[2])


@pytest.fixture
def talked(path: Path) -> Path:
    """A store with one session of two turns, closed."""

    async def talk() -> None:
        async with trioloop.open_runtime(model=DemonstrationModel(), store=path) as runtime:
            agent = await runtime.create_agent("paris")
            await agent.ask("Hello! " + "x" * 300_000)
            await agent.ask("Goodbye.")

    trio.run(talk)
    return path


def files(folder: Path) -> dict[str, int]:
    return {str(file): file.stat().st_size for file in folder.rglob("*") if file.is_file()}


async def test_an_imported_session_is_equal_and_goes_on(talked: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    assert trioloop.import_session(other, trioloop.export_session(talked, "paris")) == "paris"
    assert read_rows(other, "paris") == read_rows(talked, "paris")
    [mine], [theirs] = list_sessions(talked), list_sessions(other)
    assert (mine.events, mine.bytes) == (theirs.events, theirs.bytes)
    assert trioloop.diff(*(trioloop.read_session(one, "paris") for one in (talked, other))) is None
    async with trioloop.open_runtime(model=DemonstrationModel(), store=other) as runtime:
        agent = await runtime.resume_agent("paris")
        assert (await agent.ask("Hello again!")).turn == 3


def test_a_refused_import_leaves_no_trace(talked: Path, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    lines = [*trioloop.export_session(talked, "paris")]
    with pytest.raises(DamagedExportError):
        trioloop.import_session(folder / "a.db", lines[:-1])
    with pytest.raises(InvalidInputError, match="'paris', not of 'rome'"):
        trioloop.import_session(folder / "a.db", lines, name="rome")
    assert files(folder) == {}
    before = read_rows(talked, "paris")
    with pytest.raises(SessionExistsError):
        trioloop.import_session(talked, lines, name="paris")
    assert read_rows(talked, "paris") == before
    with pytest.raises(StoreUnreadableError):
        trioloop.import_session(folder / "none" / "a.db", lines)


async def test_a_file_that_somebody_writes_takes_no_import(
    talked: Path, tmp_path: Path, owner: Owner
) -> None:
    store = SqliteStore(tmp_path / "busy.db")
    await store.open(SessionId("rome"), owner, create=True)
    with pytest.raises(SessionLockedError):
        trioloop.import_session(
            tmp_path / "busy.db", trioloop.export_session(talked, "paris"), name="paris"
        )
    await store.aclose()


async def test_what_stands_before_damage_is_exported_and_is_a_log(
    talked: Path, tmp_path: Path
) -> None:
    with sqlite3.connect(talked) as connection:
        connection.execute("UPDATE event SET crc = crc + 1 WHERE place = (1 << 32) + 9")
    connection.close()
    with pytest.raises(DamagedSessionError) as caught:
        trioloop.export_session(talked, "paris")
    saved = tmp_path / "saved.db"
    lines = trioloop.export_session(talked, "paris", before=caught.value.seq)
    trioloop.import_session(saved, lines)
    assert len(read_rows(saved, "paris")) == 9
    async with trioloop.open_runtime(model=DemonstrationModel(), store=saved) as runtime:
        agent = await runtime.resume_agent("paris")
        assert (await agent.ask("Hello again!")).reason == "completed"


IMPORTER = """
import os, sys
from trioloop.store import database, import_session, list_sessions
lines, path = sys.argv[1:]
calls = death = 0
class Dying(database.sqlite3.Connection):
    def execute(self, statement, *values):
        global calls
        calls += calls > 0 or statement.startswith("BEGIN")
        if calls == death:
            os._exit(9)
        return super().execute(statement, *values)
connect = database.connect_writer
database.connect_writer = lambda path, durability, kind: connect(path, durability, Dying)
while True:
    death += 1
    child = os.fork()
    if not child:
        with open(lines, "rb") as file:
            import_session(path, file)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(code, *[one.session for one in list_sessions(path)], flush=True)
    if code == 0:
        break
"""


def test_an_import_that_dies_anywhere_leaves_all_or_nothing(talked: Path, tmp_path: Path) -> None:
    exported = tmp_path / "paris.jsonl"
    exported.write_bytes(b"".join(trioloop.export_session(talked, "paris")))
    into = tmp_path / "into.db"
    done = subprocess.run(
        [sys.executable, "-c", IMPORTER, str(exported), str(into)],
        env={**os.environ, "PYTHONPATH": ROOT},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    *deaths, last = done.stdout.splitlines()
    assert last == "0 paris"
    assert deaths == ["9"] * len(deaths)
    assert len(deaths) > 5
    assert read_rows(into, "paris") == read_rows(talked, "paris")


async def test_readers_that_are_open_never_lock_out_a_writer(
    path: Path, owner: Owner, make_rows: MakeRows, append_of: AppendOf
) -> None:
    first = SqliteStore(path)
    rows = make_rows(6)
    lease = await first.open(SessionId("paris"), owner, create=True)
    await first.commit([append_of(lease, rows[:3])])
    with reader(str(path)) as early:
        counted = early.execute("SELECT count(*) FROM event").fetchone()
        await first.commit([append_of(lease, rows[3:])])
        await first.aclose()
        with reader(str(path)):
            second = SqliteStore(path)
            await second.open(SessionId("rome"), owner, create=True)
            await second.delete(SessionId("paris"))
            await second.aclose()
        assert early.execute("SELECT count(*) FROM event").fetchone() == counted == (3,)
    assert [one.session for one in list_sessions(path)] == ["rome"]


async def test_somebody_else_s_reader_leaves_nothing_that_its_owner_may_not_write(
    talked: Path, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    before = files(talked.parent)
    assert len(trioloop.read_session(talked, "paris")) > 0
    assert files(talked.parent) == before
    store = SqliteStore(talked)
    await store.open(SessionId("rome"), owner, create=True)
    assert [one.session for one in list_sessions(talked)] == ["paris", "rome"]
    await store.aclose()
    assert files(talked.parent).keys() == before.keys()
    (talked.parent / "text.db").write_text("no database at all " * 100)
    with pytest.raises(StoreUnreadableError, match=r"text\.db' is no trioloop store"):
        list_sessions(talked.parent / "text.db")


def test_an_export_that_nobody_reads_holds_no_file_open(talked: Path) -> None:
    lines = trioloop.export_session(talked, "paris")
    next(lines)
    opened = [os.path.realpath(f"/proc/self/fd/{one}") for one in os.listdir("/proc/self/fd")]
    assert not [file for file in opened if file.startswith(str(talked))]
