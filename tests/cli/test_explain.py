"""`trioloop explain`: fates of messages and origins of requests, at pipes and at terminals."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.logs import STEERING, stored, two_turns
from tests.log.writing import LogWriter, sent
from trioloop.events import InboxSpliced, UserMessageLogged
from trioloop.messages import user_message


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return stored(tmp_path / "a.db", two_turns().events)


def test_all_messages_are_told_as_lines_of_cells(command: Any, store: Path) -> None:
    done = command("explain", store, "paris")
    assert (done.code, done.err) == (0, "")
    assert [line.split("\t") for line in done.out.splitlines()] == [
        ["m1", "admitted (turn 1)", "1, 3, 5", "text of m1"],
        ["m2", "admitted (turn 2)", "16, 18, 20", "text of m2"],
    ]


def test_one_message_is_told_event_by_event(command_here: Any, store: Path) -> None:
    done = command_here("explain", store, "paris", "m2")
    assert done.out.splitlines()[:2] == ["m2 is admitted (turn 2)", "text of m2"]
    assert [(line.split("\t")[0], line.split("\t")[3]) for line in done.out.splitlines()[2:]] == [
        ("16", "sent to next-turn"),
        ("18", "claimed by turn 2"),
        ("20", "admitted by step 1 of turn 2"),
    ]


def test_a_message_that_was_dropped_tells_how(command_here: Any, tmp_path: Path) -> None:
    writer = LogWriter()
    writer.add(sent("next-step", "s1", wakeup=False))
    writer.add(InboxSpliced("next-step", 0, 1, outcome="canceled"))
    done = command_here("explain", stored(tmp_path / "a.db", writer.events), "paris", "s1")
    assert "sent to next-step, without waking" in done.out
    assert "discarded: canceled" in done.out.splitlines()[-1]


def test_a_request_tells_the_events_that_made_it(command_here: Any, store: Path) -> None:
    done = command_here("explain", store, "paris", "--request", "23")
    assert done.code == 1
    assert "event 23 is a turn/end" in done.complaint
    assert "the last one before it is event 21" in done.complaint
    done = command_here("explain", store, "paris", "--request", "21")
    told = [line.split("\t") for line in done.out.splitlines()]
    assert told[0] == ["the request of event 21: turn 2, step 1"]
    assert [line[:2] for line in told[1:]] == [
        ["6", "settings"],
        ["5", "user"],
        ["8", "assistant"],
        ["10", "tool result"],
        ["13", "assistant"],
        ["20", "user"],
    ]
    assert told[1][2] == "scripted m, tools: look"
    assert not STEERING & set(done.out)


def test_what_a_summary_stands_for_is_told_below_it(command_here: Any, tmp_path: Path) -> None:
    writer = LogWriter()
    last = writer.turn_of_text("m1", "So it is.")
    (first, _), *_ = writer.state.surface.nodes
    summary = user_message("All was said.", source="compaction")
    seq = writer.add(UserMessageLogged(summary, replaces=(first, last)))
    writer.turn_of_text("m2")
    store = stored(tmp_path / "a.db", writer.events)
    request = next(one.seq for one in reversed(writer.events) if one.type == "assistant/message")
    done = command_here("explain", store, "paris", "--request", str(request))
    told = [line.split("\t") for line in done.out.splitlines()]
    assert told[2:5] == [
        [str(seq), "user", "All was said."],
        [str(first), "for user", "text of m1"],
        [str(last), "for assistant", "So it is."],
    ]
    done = command_here("explain", store, "paris", "m1")
    assert done.out.splitlines()[-1] == f"event {seq} stands for it in the history by now"


def test_a_session_without_messages_says_so(command_here: Any, tmp_path: Path) -> None:
    store = stored(tmp_path / "a.db", LogWriter().events)
    assert command_here("explain", store, "paris").out == "no messages\n"


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ("paris|ghost", 1, "knows no message 'ghost'"),
        ("rome", 1, "the store has no session 'rome'"),
        ("No Name", 1, "can't name a session"),
        ("paris|m1|--request|8", 2, "not both"),
        ("paris|--request|-1", 2, "--request"),
        ("paris|--request|99", 1, "no event 99"),
    ],
)
def test_bad_input_is_one_line(
    arguments: str, code: int, told: str, command_here: Any, store: Path
) -> None:
    done = command_here("explain", store, *arguments.split("|"))
    assert (done.code, done.out) == (code, "")
    assert told in done.complaint


def test_a_terminal_has_columns_where_they_fit_and_lines_where_not(
    terminal: Any, store: Path
) -> None:
    for columns, place in (
        (100, "1, 3, 5     \x1b[0mtext of m1"),
        (40, "1, 3, 5\x1b[0m\r\n  text"),
    ):
        screen = terminal("explain", str(store), "paris", COLUMNS=str(columns))
        screen.wait_for("m1")
        assert screen.end() == 0
        assert place in screen.seen
