"""`trioloop chat`: follow-ups, steering, Ctrl-C, and a script at a pipe."""

import json
from typing import Any


def test_lines_of_a_pipe_are_turns_one_after_the_other(command: Any) -> None:
    done = command("chat", input="What is 2 + 3?\n\nWhat is 2 + 4?")
    assert done.code == 0
    assert done.out.index("gave 5") < done.out.index("gave 6")
    assert done.out.count("demonstration model") == 1


def test_a_script_prints_its_events_as_json(command: Any) -> None:
    done = command("chat", "--json", input="What is 2 + 3?\nWhat is 2 + 4?\n")
    events = [json.loads(line) for line in done.out.splitlines()]
    assert sum(event["type"] == "turn/end" for event in events) == 2
    assert done.err == ""


def test_a_follow_up_is_asked_for_and_answered(terminal: Any) -> None:
    screen = terminal("chat")
    screen.wait_for("> ")
    screen.type("What is 2 + 3?\n")
    screen.wait_for("gave 5")
    screen.wait_for("> ")
    screen.type("and 2 + 4?\n")
    screen.wait_for("gave 6")
    screen.wait_for("> ")
    screen.type("\x04")
    assert screen.end() == 0


def test_typing_while_it_works_steers(terminal: Any) -> None:
    screen = terminal("chat")
    screen.wait_for("> ")
    screen.type("wait 2 seconds\n")
    screen.wait_for("· ")
    screen.type("also what is 2 + 3?\n")
    screen.wait_for("steered: also what is 2 + 3?")
    screen.wait_for("gave waited 2 s")
    screen.wait_for("gave 5")
    screen.wait_for("completed")
    assert screen.seen.count("completed") == 1


def test_ctrl_c_cancels_the_turn_and_twice_leaves(terminal: Any) -> None:
    screen = terminal("chat")
    screen.wait_for("> ")
    screen.type("wait 300 seconds\n")
    screen.wait_for("· ")
    screen.type("\x03")
    screen.wait_for("the turn was cancelled")
    screen.wait_for("> ")
    screen.type("What is 2 + 3?\n")
    screen.wait_for("gave 5")
    screen.wait_for("> ")
    screen.type("\x03")
    screen.wait_for("again leaves")
    screen.type("\x03")
    assert screen.end() == 130
    assert "Traceback" not in screen.seen


def test_quit_leaves(terminal: Any) -> None:
    screen = terminal("chat")
    screen.wait_for("> ")
    screen.type("/quit\n")
    assert screen.end() == 0
