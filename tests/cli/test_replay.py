"""`trioloop replay`: a session shown again, in time, as `run` shows it."""

import math
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from rich.console import Console

from tests.cli.logs import STEERING, stored, timed, two_turns
from tests.log.writing import FAILED, LogWriter, answer, ended
from trioloop.chunks import Frame, TextDelta, compact
from trioloop.cli.readable import Readable
from trioloop.cli.replaying import ReplayDisplay, Showing
from trioloop.cli.screens import PlainScreen
from trioloop.events import AssistantMessageLogged
from trioloop.messages import AssistantMessage, TextBlock


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return stored(tmp_path / "a.db", two_turns().events)


def test_a_session_is_shown_with_prompts_calls_and_answers(command: Any, store: Path) -> None:
    done = command("replay", store, "paris", "--fast")
    assert done.code == 0
    assert done.out.splitlines()[0] == "The call is through."
    assert "So it is: " in done.out
    lines = done.err.splitlines()
    assert lines[:2] == ["> text of m1", "· look(at=0)"]
    assert lines[2].startswith("✓ look(at=0)  → ")
    assert lines[3] == "> text of m2"
    assert not STEERING & set(done.out + done.err)


def test_what_run_told_of_its_turn_is_told_again(command_here: Any) -> None:
    question = "What is 17 * 23, and how many words are in 'to be or not to be'?"
    ran = command_here("run", question, "--store", "a.db", "--session", "one")
    shown = command_here("replay", "a.db", "one", "--speed", "1000")
    assert shown.out == ran.out
    told = [line for line in ran.err.splitlines() if line[0] in "·✓✗"]
    again = [line for line in shown.err.splitlines() if line[0] in "·✓✗"]
    assert [line.partition("→")[0] for line in again] == [line.partition("→")[0] for line in told]


def test_failures_and_unfinished_turns_are_told(command_here: Any, tmp_path: Path) -> None:
    writer = LogWriter()
    number = writer.open_turn("m1")
    writer.admit()
    writer.add(FAILED, answer([TextBlock("At last.")]))
    writer.end_step()
    writer.add(ended(number, "aborted"))
    writer.open_turn("m2")
    store = stored(tmp_path / "a.db", writer.events)
    done = command_here("replay", store, "paris", "--fast")
    assert done.out == "At last.\n"
    assert done.err.splitlines() == [
        "> text of m1",
        "SERVER: broken; trying again",
        "the turn was cancelled",
        "the log ends inside turn 2",
    ]


class _Watched(ReplayDisplay):
    """Keeps when it was fed, and draws nothing."""

    def __init__(self) -> None:
        console = Console(file=sys.stdout)
        super().__init__(PlainScreen(console, console))
        self.fed: list[float] = []
        self.ticked: list[float] = []
        self.began = trio.current_time()

    def feed(self, seen: Any, at: float) -> None:
        super().feed(seen, at)
        self.fed.append(round(trio.current_time() - self.began, 6))

    def tick(self, now: float) -> None:
        self.ticked.append(now)

    async def flush(self) -> None:
        await trio.lowlevel.checkpoint()


def streamed() -> list[Any]:
    """A turn whose answer takes 4 s in two frames, an hour after the session was made."""
    writer = LogWriter()
    number = writer.open_turn("m1")
    writer.admit()
    frames = [Frame(0, (TextDelta("one "),)), Frame(3_000, (TextDelta("two"),))]
    content = (TextBlock("one two"),)
    plain = answer(content)
    said = AssistantMessage(content, "scripted", "m")
    writer.add(AssistantMessageLogged(said, plain.finish, None, compact(frames, content)))
    writer.end_step()
    writer.add(ended(number))
    hour = 3_600_000
    return timed(writer.events, lambda seq: 0 if seq < 1 else hour if seq < 8 else hour + 4_000)


@pytest.mark.parametrize(
    ("speed", "times"), [(1, {0, 2, 3, 6}), (4, {0, 0.5, 0.75, 1.5}), (math.inf, {0})]
)
async def test_each_moment_comes_when_it_came_and_idle_waits_are_cut(
    autojump_clock: trio.testing.MockClock, speed: float, times: set[float]
) -> None:
    display = _Watched()
    await Showing(display, speed, animated=False).show(Readable("paris", tuple(streamed())))
    assert set(display.fed) == times
    assert display.fed == sorted(display.fed)
    assert display.ticked == []


async def test_while_nothing_comes_a_terminal_is_told_the_time_of_the_log(
    autojump_clock: trio.testing.MockClock,
) -> None:
    display = _Watched()
    await Showing(display, 10, animated=True).show(Readable("paris", tuple(streamed())))
    in_turn = [round(now) for now in display.ticked if now >= 3_600]
    assert in_turn[:4] == [3_600, 3_601, 3_602, 3_603]


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ("rome", 1, "no session 'rome'"),
        ("paris|--fast|--speed|2", 2, "not both"),
        ("paris|--speed|0", 2, "--speed"),
        ("paris|--speed|nan", 2, "--speed"),
        ("paris|--speed|inf", 2, "see --fast"),
    ],
)
def test_bad_input_is_one_line(
    arguments: str, code: int, told: str, command_here: Any, store: Path
) -> None:
    done = command_here("replay", store, *arguments.split("|"))
    assert (done.code, done.out) == (code, "")
    assert told in done.complaint


def test_ctrl_c_ends_a_replay_that_holds_no_file_open(
    started: Any, command: Any, tmp_path: Path
) -> None:
    stored(tmp_path / "a.db", timed(two_turns().events, lambda seq: 600_000 * (seq > 5)))
    running = started("replay", "a.db", "paris")
    running.wait_for("> text of m1")
    files = [path.resolve() for path in Path(f"/proc/{running.process.pid}/fd").iterdir()]
    assert not [path for path in files if path.name.startswith("a.db")]
    written = command("run", "What is 2 + 3?", "--store", "a.db", "--session", "rome")
    assert written.code == 0
    running.signal_group(2)
    done = running.end()
    assert done.code == 130
    assert "stopped by Ctrl-C" in done.err
    assert "Traceback" not in done.err


def test_a_terminal_shows_what_is_waited_for(terminal: Any, tmp_path: Path) -> None:
    answered, returned = 8, 10

    def waits(seq: int) -> int:
        return 50 * seq + 1_000 * (seq >= answered) + 1_000 * (seq >= returned)

    stored(tmp_path / "a.db", timed(two_turns().events, waits))
    screen = terminal("replay", "a.db", "paris")
    screen.wait_for("text of m1")
    screen.wait_for("waiting for the model")
    screen.wait_for("look(at=0)")
    screen.wait_for("completed · 2 steps · 1 call")
    screen.wait_for("text of m2")
    assert screen.end() == 0
