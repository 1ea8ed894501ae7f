"""Damaged bytes are found, named by the first seq that they touch, and contained."""

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from trioloop.errors import (
    DamagedSessionError,
    StoreUnreadableError,
    UnknownSessionError,
)
from trioloop.ids import SessionId
from trioloop.ports import Append, Owner, StoredRow
from trioloop.store import SqliteStore, read_rows, read_session

MakeRows = Callable[..., tuple[StoredRow, ...]]
AppendOf = Callable[..., Append]


@pytest.fixture
async def rows(
    path: Path, owner: Owner, make_rows: MakeRows, append_of: AppendOf
) -> dict[str, tuple[StoredRow, ...]]:
    """A store at `path` with two sessions of 60 events each, closed."""
    store = SqliteStore(path)
    written = {}
    for session in ("paris", "rome"):
        lease = await store.open(SessionId(session), owner, create=True)
        written[session] = make_rows(60, session=session)
        await store.commit([append_of(lease, written[session])])
    await store.aclose()
    return written


def bytes_of(path: Path) -> bytes:
    return path.read_bytes()


def overwrite(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def change(path: Path, statement: str, *values: object) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(statement, values)
    connection.close()


@pytest.mark.parametrize(
    ("statement", "seq"),
    [
        ("UPDATE event SET payload = x'7b7d' WHERE place = (1 << 32) + 7", 7),
        ("UPDATE event SET payload = NULL WHERE place = (1 << 32) + 7", 7),
        ("UPDATE event SET payload = 'text' WHERE place = (1 << 32) + 7", 7),
        ("UPDATE event SET crc = crc + 1 WHERE place = (1 << 32) + 7", 7),
        ("UPDATE event SET payload = NULL, blob = 'x' WHERE place = (1 << 32) + 7", 7),
        ("DELETE FROM event WHERE place = (1 << 32) + 7", 7),
        ("DELETE FROM event WHERE place = (1 << 32)", 0),
        ("DELETE FROM event WHERE place >= (1 << 32) + 50 AND place < (2 << 32)", 50),
        ("DELETE FROM event WHERE place < (2 << 32)", 0),
        ("UPDATE session SET next_seq = 30 WHERE id = 1", 30),
        ("UPDATE session SET next_seq = 90 WHERE id = 1", 60),
        ("UPDATE session SET next_seq = 'none' WHERE id = 1", 60),
        ("UPDATE session SET crc = 'none' WHERE id = 1", 60),
        ("UPDATE event SET crc = 'none' WHERE place = (1 << 32) + 7", 7),
        ("UPDATE session SET name = 'oslo' WHERE id = 1", 0),
    ],
)
async def test_the_first_damaged_event_is_named_and_what_stands_before_it_is_read(
    path: Path, rows: dict[str, tuple[StoredRow, ...]], statement: str, seq: int
) -> None:
    change(path, statement)
    name = "oslo" if "oslo" in statement else "paris"
    with pytest.raises(DamagedSessionError) as caught:
        read_session(path, name)
    assert caught.value.seq == seq
    assert f"from event {seq} on" in str(caught.value)
    assert read_rows(path, name, before=seq) == rows["paris"][:seq]
    assert len(read_session(path, name, before=seq)) == seq
    assert read_rows(path, "rome") == rows["rome"]
    if name == "paris":
        store = SqliteStore(path)
        with pytest.raises(DamagedSessionError):
            await store.read(SessionId("paris"))
        assert await store.read(SessionId("rome")) == list(rows["rome"])


async def test_damage_of_the_event_that_reading_goes_on_from_is_named(
    path: Path, rows: dict[str, tuple[StoredRow, ...]]
) -> None:
    change(path, "UPDATE event SET crc = 'none' WHERE place = (1 << 32) + 7")
    with pytest.raises(DamagedSessionError) as caught:
        await SqliteStore(path).read(SessionId("paris"), after=7)
    assert caught.value.seq == 7


async def test_a_zeroed_page_is_found_and_other_sessions_are_read(
    path: Path, rows: dict[str, tuple[StoredRow, ...]]
) -> None:
    content = bytes_of(path)
    found = set()
    for start in range(4096, len(content), 4096):
        overwrite(path, content[:start] + bytes(4096) + content[start + 4096 :])
        found |= {reading(path, *item) for item in rows.items()}
        overwrite(path, content)
    assert {"whole", "damaged"} <= found


async def test_any_changed_bit_is_found_or_harmless(
    path: Path, rows: dict[str, tuple[StoredRow, ...]]
) -> None:
    content = bytes_of(path)
    dice = random.Random(7)
    found = set()
    for _ in range(300):
        place, bit = dice.randrange(len(content)), 1 << dice.randrange(8)
        changed = bytearray(content)
        changed[place] ^= bit
        overwrite(path, bytes(changed))
        found |= {reading(path, *item) for item in rows.items()}
    assert {"whole", "damaged"} <= found


def reading(path: Path, session: str, expected: tuple[StoredRow, ...]) -> str:
    """What became of a session; fails where it reads as anything that was never written."""
    try:
        found, what = read_rows(path, session), "whole"
    except DamagedSessionError as error:
        found, what = read_rows(path, session, before=error.seq), "damaged"
        expected = expected[: error.seq]
    except (StoreUnreadableError, UnknownSessionError):
        return "unreadable"
    assert found == expected
    return what


async def test_a_file_cut_short_never_reads_as_what_was_not_written(
    path: Path, rows: dict[str, tuple[StoredRow, ...]]
) -> None:
    content = bytes_of(path)
    for length in range(0, len(content), 1_000):
        overwrite(path, content[:length])
        reading(path, "rome", rows["rome"])


async def test_a_lost_blob_file_is_damage_of_its_event_alone(
    path: Path, name: SessionId, owner: Owner, make_rows: MakeRows, append_of: AppendOf
) -> None:
    store = SqliteStore(path, blob_bytes_min=1_000)
    lease = await store.open(name, owner, create=True)
    rows = make_rows(2, cwd="x" * 5_000)
    await store.commit([append_of(lease, rows)])
    other = await store.open(SessionId("rome"), owner, create=True)
    await store.commit([append_of(other, make_rows(2, session="rome"))])
    await store.aclose()
    for file in path.with_name("agents.db.blobs").rglob("*"):
        if file.is_file():
            file.unlink()
    with pytest.raises(DamagedSessionError, match="can't be read") as caught:
        read_session(path, "paris")
    assert caught.value.seq == 0
    assert len(read_session(path, "rome")) == 2
