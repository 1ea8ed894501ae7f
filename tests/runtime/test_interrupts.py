"""A real Ctrl-C in the middle of a turn: its log closes in order, the interrupt comes out (R10)."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trioloop import check, read_session
from trioloop.events import Event, ToolResultLogged, TurnEnded
from trioloop.log.fold import fold

PROGRAM = Path(__file__).with_name("programs") / "interrupted.py"
WHERE = ["hook", "stream", "tool", "thread", "idle"]


def _interrupt(database: Path, where: str, more: int) -> tuple[int, str, str]:
    """Run the program, press Ctrl-C, and some more soon after; its exit code and what it said."""
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), str(database), where],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        try:
            assert program.stdout is not None
            assert program.stdout.readline() == "there\n"
            program.send_signal(signal.SIGINT)
            for _ in range(more):
                time.sleep(0.05)
                program.send_signal(signal.SIGINT)
            said, complained = program.communicate(timeout=60)
            return program.returncode, said, complained
        finally:
            program.kill()  # where SIGINT is ignored, as in a shell's background job


def _events(database: Path) -> list[Event]:
    events = list(read_session(database, "a"))
    check(events)
    return events


@pytest.mark.parametrize("where", WHERE)
def test_ctrl_c_closes_the_log_in_order_and_comes_out(where: str, tmp_path: Path) -> None:
    database = tmp_path / "agents.db"
    code, said, complained = _interrupt(database, where, 0)
    assert code in (-signal.SIGINT, 130)
    assert complained.rstrip().endswith("KeyboardInterrupt")
    assert "Error" not in complained
    if where in ("hook", "tool"):
        assert "cleaned up" in said
    events = _events(database)
    state = fold(events)
    assert state.turn is None
    end = events[-1].data if where != "idle" else None
    if where != "idle":
        assert isinstance(end, TurnEnded)
        assert end.reason == "aborted"
        assert len(state.inbox) == (2 if where == "hook" else 1)
    results = [event.data for event in events if isinstance(event.data, ToolResultLogged)]
    assert len(results) == {"tool": 2, "thread": 1}.get(where, 0)


@pytest.mark.parametrize(("where", "more"), [("tool", 3)])
def test_pressed_again_it_is_no_worse_than_a_killed_process(
    where: str, more: int, tmp_path: Path
) -> None:
    database = tmp_path / "agents.db"
    code, _, _ = _interrupt(database, where, more)
    assert code != 0
    events = _events(database)
    starts = sum(event.type == "turn/start" for event in events)
    ends = sum(event.type == "turn/end" for event in events)
    assert starts - ends in (0, 1)  # what is open is closed by whoever opens it next
