"""`trioloop diff`: where two logs part."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.logs import HOSTILE, STEERING, stored, two_turns, with_fact
from tests.log.writing import answer
from trioloop.events import Event
from trioloop.messages import TextBlock


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return stored(tmp_path / "a.db", two_turns().events)


def test_equal_logs_are_told_so(command: Any, store: Path, tmp_path: Path) -> None:
    other = stored(tmp_path / "b.db", two_turns().events)
    done = command("diff", store, "paris", other, "paris")
    assert (done.code, done.out, done.err) == (0, "= 24 events, equal in both\n", "")


def test_the_fields_that_differ_stand_side_by_side(
    command: Any, store: Path, tmp_path: Path
) -> None:
    other_text = answer([TextBlock(f"So it isn't: {HOSTILE}")])
    other = stored(tmp_path / "b.db", with_fact(two_turns().events, 21, other_text))
    done = command("diff", store.name, "paris", other.name, "paris")
    assert (done.code, done.err) == (1, "")
    told, labels, path, values = done.out.splitlines()
    assert told == "≠ 21 events equal, then event 21 differs, assistant/message in both"
    assert [part.strip() for part in labels.split("│")] == ["a.db paris", "b.db paris"]
    assert path == "data.message.content[0].text"
    one, two = (part.strip() for part in values.split("│"))
    assert one.startswith('"So it is: ')
    assert two.startswith("\"So it isn't: ")
    assert not STEERING & set(done.out)


def test_a_long_text_is_shown_from_where_it_parts(command_here: Any, tmp_path: Path) -> None:
    stores = [
        stored(
            tmp_path / f"{end}.db",
            with_fact(two_turns().events, 21, answer([TextBlock("x" * 5_000 + end)])),
        )
        for end in ("left", "right")
    ]
    done = command_here("diff", stores[0], "paris", stores[1], "paris")
    values = done.out.splitlines()[-1]
    assert "left" in values
    assert "right" in values
    assert len(values) <= 120


def test_a_log_that_goes_on_further_is_named(
    command_here: Any, store: Path, tmp_path: Path
) -> None:
    shorter = stored(tmp_path / "b.db", two_turns().events[:17])
    done = command_here("diff", "a.db", "paris", "b.db", "paris")
    assert done.code == 1
    assert "17 events equal, then only a.db paris goes on" in done.out
    assert '"turn/start"' in done.out
    assert shorter.exists()


def test_bad_input_is_one_line(command_here: Any, store: Path) -> None:
    assert "no session 'rome'" in command_here("diff", store, "paris", store, "rome").complaint
    assert "b.db' doesn't exist" in command_here("diff", store, "paris", "b.db", "x").complaint
    assert command_here("diff", store, "paris").code == 2


def test_a_narrow_terminal_has_one_below_the_other(
    terminal: Any, store: Path, tmp_path: Path
) -> None:
    other = with_fact(two_turns().events, 21, answer([TextBlock("Otherwise " + "漢" * 80)]))
    stored(tmp_path / "b.db", other)
    screen = terminal("diff", "a.db", "paris", "b.db", "paris", COLUMNS="40")
    screen.wait_for("  < ")
    screen.wait_for("  > ")
    assert screen.end() == 1
    assert "│" not in screen.seen


def test_times_and_identifiers_may_be_ignored(command_here: Any, tmp_path: Path) -> None:
    events = two_turns().events
    later = [Event(event.seq, event.time + 5_000, event.data) for event in events]
    stored(tmp_path / "a.db", events)
    stored(tmp_path / "b.db", later)
    done = command_here("diff", "a.db", "paris", "b.db", "paris")
    assert (done.code, "time" in done.out) == (1, True)
    done = command_here("diff", "a.db", "paris", "b.db", "paris", "--ignore-times")
    assert (done.code, done.out) == (0, "= 24 events, equal in both\n")
    other = with_fact(later, 21, answer([TextBlock("So it isn't.")]))
    stored(tmp_path / "c.db", other)
    done = command_here("diff", "a.db", "paris", "c.db", "paris", "--ignore-times", "--ignore-ids")
    assert done.code == 1
    assert "data.message.content[0].text" in done.out
    assert "time" not in done.out.splitlines()[2:]
