"""`trioloop sessions` and `trioloop check`: states of sessions, and what is wrong with a file."""

import os
import socket
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from trioloop import SqliteStore, open_runtime
from trioloop.agent.notifications import StreamStarted
from trioloop.testing import ScriptedModel, Stall, Text

Command = Callable[..., Any]  # what `conftest` gives: it can't be imported


async def three_states(file: Path) -> None:
    """One session at rest, one with pending messages, one that died in a turn."""
    async with open_runtime(model=ScriptedModel([Text("hi"), Stall()]), store=file) as runtime:
        await (await runtime.create_agent("rest")).ask("one")
        (await runtime.create_agent("wait")).inject("later")
        dying = await runtime.create_agent("dying")
        asked = trio.Event()
        dying.on(StreamStarted.kind, lambda _: asked.set())
        dying.followup("go")
        await asked.wait()
        await dying.session.checkpoint()
        with sqlite3.connect(file) as other:
            copied = file.with_name("copy.db")
            other.execute("VACUUM INTO ?", (str(copied),))
        other.close()
    os.replace(copied, file)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A file with three sessions."""
    file = tmp_path / "agents.db"
    trio.run(three_states, file)
    return file


def states(out: str) -> dict[str, str]:
    """The last cell of each row, by the first."""
    rows = [line.split("\t") for line in out.splitlines()]
    return {row[0]: row[-1] for row in rows}


def test_sessions_are_listed_with_their_states(store: Path, command_here: Command) -> None:
    told = states(command_here("sessions", store).out)
    assert told == {
        "rest": "at rest",
        "wait": "1 message pending",
        "dying": "interrupted in turn 1",
    }


def test_a_turn_is_not_interrupted_while_somebody_writes(
    store: Path, command_here: Command
) -> None:
    note = f'{{"pid":{os.getpid()},"host":"{socket.gethostname()}","name":""}}'
    store.with_name("agents.db.lock").write_text(note)
    assert states(command_here("sessions", store).out)["dying"] == "in turn 1"
    dead = f'{{"pid":{2**22 + 1},"host":"{socket.gethostname()}","name":""}}'
    store.with_name("agents.db.lock").write_text(dead)
    assert states(command_here("sessions", store).out)["dying"] == "interrupted in turn 1"


def test_a_damaged_session_is_named_and_the_others_are_listed(
    store: Path, command_here: Command
) -> None:
    change(store, "UPDATE event SET crc = crc + 1 WHERE place = (1 << 32) + 4")
    told = states(command_here("sessions", store).out)
    assert told["rest"] == "damaged from event 4 on"
    assert told["wait"] == "1 message pending"


def test_a_quick_list_reads_no_session(store: Path, command_here: Command) -> None:
    change(store, "UPDATE event SET payload = NULL")
    assert set(states(command_here("sessions", store, "--quick").out).values()) == {""}


def test_a_whole_file_passes_the_deep_check(store: Path, command_here: Command) -> None:
    done = command_here("check", store, "--deep")
    assert done.code == 0, done.err
    assert done.out.count("✓") == 3


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE session SET bytes = bytes + 1 WHERE name = 'rest'", "tells of"),
        ("DROP INDEX by_size", ""),
        ("UPDATE event SET crc = crc + 1 WHERE place = (1 << 32) + 4", "from event 4 on"),
    ],
)
def test_the_deep_check_finds_what_the_logs_do_not_show(
    store: Path, command_here: Command, statement: str, words: str
) -> None:
    change(store, "CREATE INDEX by_size ON session (bytes)")
    change(store, statement)
    done = command_here("check", store, "--deep")
    assert done.code == (1 if words else 0)
    assert words in done.out


async def one_side_file(file: Path) -> str:
    """A store with one session and one side file: its locator."""
    store = SqliteStore(file)
    async with open_runtime(store=store) as runtime:
        await runtime.create_agent("a")
        return await store.put_blob(b"content")


def test_the_deep_check_finds_a_damaged_side_file(tmp_path: Path, command_here: Command) -> None:
    file = tmp_path / "agents.db"
    locator = trio.run(one_side_file, file)
    (side_file,) = tmp_path.glob(f"agents.db.blobs/*/{locator}")
    side_file.write_bytes(b"changed")
    assert command_here("check", file).code == 0
    done = command_here("check", file, "--deep")
    assert done.code == 1
    assert f"the content {locator} isn't what was put" in done.out
    assert "can't be trusted, though every log in it is whole" in done.complaint


def change(path: Path, statement: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()
