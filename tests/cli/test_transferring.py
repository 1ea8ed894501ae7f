"""`trioloop export`, `import` and `rebuild`: exact bytes at pipes, harmless text at terminals."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import trioloop
from tests.cli.conftest import COMMAND, environment
from tests.cli.logs import STEERING, stored, two_turns
from trioloop.codec import canonical
from trioloop.store import read_rows


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return stored(tmp_path / "a.db", two_turns().events)


def run(folder: Path, arguments: Sequence[str], input: bytes = b"") -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment(folder),
        input=input,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert b"Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def test_an_exported_session_is_imported_equal(store: Path, tmp_path: Path) -> None:
    code, lines, err = run(tmp_path, ["export", "a.db", "paris"])
    assert (code, err) == (0, b"")
    assert lines == b"".join(trioloop.export_session(store, "paris"))
    assert [json.loads(line)["seq"] for line in lines.split(b"\n")[:-1]] == [*range(24)]
    code, out, err = run(tmp_path, ["import", "b.db", "paris"], lines)
    assert (code, out.decode(), err) == (0, "✓ paris  24 events, 2 turns\n", b"")
    assert read_rows(tmp_path / "b.db", "paris") == read_rows(store, "paris")


def test_a_refused_import_is_one_line_and_makes_no_file(store: Path, tmp_path: Path) -> None:
    lines = b"".join(trioloop.export_session(store, "paris"))
    for arguments, input, told in (
        (["b.db"], b"", "line 1 isn't what was exported (it is missing"),
        (["b.db"], b"no JSON\n", "line 1 isn't what was exported"),
        (["b.db"], lines.replace(b"text of m2", b"text of m3", 1), "line 17 isn't"),
        (["b.db", "rome"], lines, "'paris', not of 'rome'"),
    ):
        code, out, err = run(tmp_path, ["import", *arguments], input)
        assert (code, out) == (1, b"")
        assert told in err.decode()
        assert err.count(b"\n") == 1
    assert not (tmp_path / "b.db").exists()
    code, _, err = run(tmp_path, ["import", "a.db"], lines)
    assert (code, "the store has a session 'paris'" in err.decode()) == (1, True)


def test_a_rebuilt_request_is_the_exact_one(store: Path, tmp_path: Path, command_here: Any) -> None:
    code, out, err = run(tmp_path, ["rebuild", "a.db", "paris", "21"])
    request = trioloop.rebuild_request(trioloop.read_session(store, "paris"), 21)
    assert (code, out, err) == (0, canonical(request) + b"\n", b"")
    pretty = command_here("rebuild", store, "paris", "21", "--pretty").out
    assert pretty.startswith('{\n  "config"')
    assert json.loads(pretty) == json.loads(out)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ("rebuild|a.db|paris|5", 1, "event 5 is a user/message"),
        ("rebuild|a.db|paris|99", 1, "no event 99"),
        ("rebuild|a.db|paris|x", 2, "SEQ"),
        ("rebuild|a.db|rome|8", 1, "no session 'rome'"),
        ("export|a.db|rome", 1, "no session 'rome'"),
        ("export|none.db|paris", 1, "doesn't exist"),
        ("export|a.db", 2, "NAME"),
    ],
)
def test_bad_input_is_one_line(
    arguments: str, code: int, told: str, command_here: Any, store: Path
) -> None:
    done = command_here(*arguments.split("|"))
    assert (done.code, done.out) == (code, "")
    assert told in done.complaint


def test_of_a_damaged_session_what_stands_before_is_shown_and_told_so(
    store: Path, tmp_path: Path, command_here: Any
) -> None:
    stored(tmp_path / "whole.db", two_turns().events)
    with sqlite3.connect(store) as connection:
        connection.execute("UPDATE event SET crc = crc + 1 WHERE place = (1 << 32) + 16")
    connection.close()
    told = "session 'paris' is damaged from event 16 on"
    for arguments, shown in (
        ("explain|a.db|paris", "m1\tadmitted (turn 1)"),
        ("explain|a.db|paris|m1", "m1 is admitted"),
        ("replay|a.db|paris|--fast", "The call is through."),
        ("diff|a.db|paris|a.db|paris", "16 events, equal in both"),
        ("diff|a.db|paris|whole.db|paris", ""),
        ("explain|a.db|paris|m2", ""),
        ("rebuild|a.db|paris|21", ""),
    ):
        done = command_here(*arguments.split("|"))
        assert (done.code, told in done.complaint) == (1, True)
        assert shown in done.out
    assert command_here("rebuild", "a.db", "paris", "13").code == 0
    assert command_here("explain", "a.db", "paris", "--request", "13").code == 0
    code, lines, err = run(tmp_path, ["export", "a.db", "paris"])
    assert (code, told in err.decode()) == (1, True)
    assert run(tmp_path, ["import", "saved.db"], lines)[0] == 0
    assert read_rows(tmp_path / "saved.db", "paris") == read_rows(store, "paris", before=16)


def test_a_terminal_is_shown_json_that_steers_nothing(terminal: Any, store: Path) -> None:
    for arguments in (["export", "a.db", "paris"], ["rebuild", "a.db", "paris", "21"]):
        screen = terminal(*arguments)
        screen.wait_for("owned")
        assert screen.end() == 0
        assert not STEERING & set(screen.seen)
        for line in screen.seen.splitlines():
            json.loads(line)


def test_lines_typed_at_a_terminal_are_not_waited_for(terminal: Any) -> None:
    screen = terminal("import", "b.db")
    screen.wait_for("reads lines from standard input")
    assert screen.end() == 2


def test_a_reader_that_goes_away_is_no_error(store: Path, tmp_path: Path) -> None:
    command = f"{sys.executable} -m trioloop export a.db paris"
    done = subprocess.run(
        ["bash", "-c", f"{command} | head -c 1; exit ${{PIPESTATUS[0]}}"],
        cwd=tmp_path,
        env={**environment(tmp_path), "PATH": os.environ["PATH"]},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"{", b"")
