"""The terminal form: a line that moves while something is under way, and colours."""

from typing import Any


def test_a_running_call_is_shown_with_its_time_and_then_its_result(terminal: Any) -> None:
    screen = terminal("run", "wait 1.5 seconds")
    screen.wait_for("wait(seconds=1.5)")
    screen.wait_for("1.1 s")
    screen.wait_for("✓")
    screen.wait_for("completed")
    assert screen.end() == 0
    assert "\r\x1b[2K" in screen.seen
    assert "\x1b[1mwait\x1b[0m" in screen.seen


def test_ctrl_c_at_the_terminal_ends_it_with_130(terminal: Any) -> None:
    screen = terminal("run", "wait 300 seconds")
    screen.wait_for("wait(seconds=300)")
    screen.type("\x03")
    screen.wait_for("stopped by Ctrl-C")
    assert screen.end() == 130
    assert "Traceback" not in screen.seen


def test_sessions_are_listed_as_a_table(terminal: Any, command: Any) -> None:
    command("run", "What is 2 + 3?", "--store", "a.db", "--session", "one")
    screen = terminal("sessions", "a.db")
    screen.wait_for("last changed")
    screen.wait_for("one")
    assert screen.end() == 0
