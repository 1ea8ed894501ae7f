"""`trioloop run` at a pipe: the answer on standard output, all about it on standard error."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import trioloop

KEPT = ("PATH", "LANG", "HOME", "PYTHONPATH", "VIRTUAL_ENV")
QUESTION = "What is 17 * 23, and how many words are in 'to be or not to be'?"


def test_without_a_model_or_a_key_the_demonstration_model_answers(command: Any) -> None:
    done = command("run", QUESTION)
    assert done.code == 0
    assert "I am trioloop's demonstration model" in done.out
    assert 'calculate(expression="17 * 23") gave 391' in done.out
    assert 'count_words(text="to be or not to be") gave 6' in done.out
    assert "the embedded demonstration model answers" in done.err.splitlines()[0]


def test_calls_are_told_as_plain_lines_on_standard_error(command: Any) -> None:
    done = command("run", QUESTION)
    assert '· calculate(expression="17 * 23")' in done.err.splitlines()
    assert '✓ calculate(expression="17 * 23")  → 391' in done.err
    assert "\x1b" not in done.err + done.out
    assert "calculate" not in done.out.splitlines()[0]


def test_json_gives_the_whole_log_as_lines_and_nothing_else(command: Any, tmp_path: Path) -> None:
    done = command("run", QUESTION, "--json", "--store", "agents.db", "--session", "one")
    assert (done.code, done.err) == (0, "")
    events = [json.loads(line) for line in done.out.splitlines()]
    stored = trioloop.read_session(tmp_path / "agents.db", "one")
    assert [(event["seq"], event["type"]) for event in events] == [
        (event.seq, event.type) for event in stored
    ]
    assert events[-1]["data"]["reason"] == "completed"


def test_a_session_goes_on_where_it_was_left(command_here: Any, tmp_path: Path) -> None:
    for question in ("What is 2 + 3?", "What is 2 + 4?"):
        assert command_here("run", question, "--store", "agents.db", "--session", "one").code == 0
    events = trioloop.read_session(tmp_path / "agents.db", "one")
    trioloop.check(events)
    assert sum(event.type == "turn/start" for event in events) == 2


def test_a_store_without_a_session_name_makes_one_and_says_so(command_here: Any) -> None:
    done = command_here("run", "What is 2 + 3?", "--store", "agents.db")
    (line,) = [line for line in done.err.splitlines() if line.startswith("session ")]
    name = line.split()[1]
    assert command_here("check", "agents.db", name).code == 0


def test_tools_of_a_file_are_called(command_here: Any, tools_file: Path) -> None:
    done = command_here("run", "Greeting for Ada, please", "--tools", tools_file)
    assert 'greeting(name="Ada") gave Hello, Ada!' in done.out


def test_a_failing_tool_is_marked_and_the_turn_completes(
    command_here: Any, tools_file: Path
) -> None:
    done = command_here("run", "Use failing with why 'no luck'", "--tools", tools_file)
    assert done.code == 0
    assert '✗ failing(why="no luck")  → no luck' in done.err


def test_what_steers_a_terminal_is_shown_as_escapes(command_here: Any, tools_file: Path) -> None:
    done = command_here("run", "Use hostile", "--tools", tools_file)
    as_json = command_here("run", "Use hostile", "--tools", tools_file, "--json")
    for text in (done.out, done.err, as_json.out):
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(text)
    assert r"\x1b]0;owned\x07" in done.out


def test_the_prompt_may_come_from_standard_input(command: Any) -> None:
    assert "gave 5" in command("run", "-", input="What is 2 + 3?\n").out


def test_the_workspace_tools_are_there_on_request(command_here: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("buy tea\n")
    done = command_here("run", "read_file notes.txt", "--workspace", tmp_path)
    assert "buy tea" in done.out


@pytest.mark.parametrize(
    ("choice", "called"), [("none", False), ("first", True), ("first:required", True)]
)
def test_tool_choice_is_obeyed(choice: str, called: bool, command_here: Any) -> None:
    done = command_here("run", "Good morning", "--tool-choice", choice)
    assert done.code == 0
    assert ("✓" in done.err or "✗" in done.err) == called


@pytest.mark.parametrize("redirect", ["", "--json", "--json 2>&1", "2>&1"])
def test_a_reader_that_goes_away_is_no_error(redirect: str, tmp_path: Path) -> None:
    command = f"{sys.executable} -m trioloop run 'What is 2 + 3?' {redirect}"
    done = subprocess.run(
        ["bash", "-c", f"{command} | head -c 1; exit ${{PIPESTATUS[0]}}"],
        cwd=tmp_path,
        env={name: os.environ[name] for name in KEPT if name in os.environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, len(done.stdout)) == (0, 1)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


def test_a_stream_without_utf_8_gets_escapes_instead_of_an_error(command: Any) -> None:
    done = command("run", "Say 'こんにちは' é", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.code == 0
    assert r"\u3053" in done.out
