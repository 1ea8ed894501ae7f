"""Ctrl-C and SIGTERM while a turn runs: one line, the code that shells expect, a closed log."""

import signal
import time
from pathlib import Path
from typing import Any

import pytest

import trioloop


@pytest.mark.parametrize(
    "ending",
    [
        (signal.SIGINT, 130, "stopped by Ctrl-C; the turn is closed", "user"),
        (signal.SIGTERM, 143, "stopped by SIGTERM; the turn is closed", "terminated"),
    ],
)
def test_a_signal_closes_the_turn_and_the_log(
    ending: tuple[int, int, str, str], started: Any, tmp_path: Path
) -> None:
    number, code, told, cause = ending
    running = started("run", "wait 300 seconds", "--store", "a.db", "--session", "one")
    running.wait_for("· wait(seconds=300)")
    running.signal_group(number)
    done = running.end()
    assert (done.code, done.complaint) == (code, told)
    events = trioloop.read_session(tmp_path / "a.db", "one")
    trioloop.check(events)
    end = events[-1].data
    assert (events[-1].type, getattr(end, "reason", ""), getattr(end, "cause", "")) == (
        "turn/end",
        "aborted",
        cause,
    )


def test_with_json_the_end_of_the_turn_is_still_printed(started: Any) -> None:
    running = started("run", "wait 300 seconds", "--json")
    for line in running.process.stdout:
        if '"tool/call"' in line:
            break
    running.signal_group(signal.SIGINT)
    done = running.end()
    assert done.code == 130
    assert '"turn/end"' in done.out.splitlines()[-1]


def test_a_signal_while_the_model_streams_keeps_what_it_said(started: Any, tmp_path: Path) -> None:
    running = started("run", "hello", "--store", "a.db", "--session", "one")
    running.process.stdout.read(10)
    running.signal_group(signal.SIGINT)
    assert running.end().code == 130
    events = trioloop.read_session(tmp_path / "a.db", "one")
    trioloop.check(events)
    (answer,) = [event.data for event in events if event.type == "assistant/message"]
    assert getattr(answer, "interrupted", False)


def test_a_tool_that_swallows_its_cancel_can_t_keep_a_person_waiting(
    started: Any, tmp_path: Path
) -> None:
    path = tmp_path / "stubborn.py"
    path.write_text(
        """
from pathlib import Path

import trio
from trioloop import tool

@tool
async def stubborn() -> str:
    \"\"\"Stubborn thing.\"\"\"
    with trio.CancelScope(shield=True):
        Path("begun").touch()
        await trio.sleep(3600)
    return "done"
"""
    )
    running = started(
        *("run", "Use stubborn", "--tools", path, "--store", "a.db", "--session", "one")
    )
    while not (tmp_path / "begun").exists():
        time.sleep(0.05)
    while running.process.poll() is None:
        running.signal_group(signal.SIGINT)
        time.sleep(0.2)
    done = running.end()
    assert (done.code, done.complaint) == (
        130,
        "gave up waiting; an open turn is closed on resuming",
    )
