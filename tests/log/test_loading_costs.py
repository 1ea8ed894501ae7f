"""What loading a long log costs, counted: function calls and memory, by the event.

What comes of it is asked in `test_skeletons.py`; seconds are for `python -m bench log`.
"""

import sys
import tracemalloc
from collections.abc import Callable
from itertools import count
from types import FrameType

import pytest

from tests.log.writing import LogWriter, ended
from trioloop.codec import encode_event
from trioloop.log.rows import Events
from trioloop.log.skeletons import GROUP, fold_rows

STEPS = 500
CALLS_A_STEP = 4


@pytest.fixture(scope="module")
def rows() -> list[bytes]:
    """The rows of a turn of many steps with some calls each."""
    writer = LogWriter()
    turn = writer.open_turn("m1")
    for _ in range(STEPS):
        writer.step_of_calls(CALLS_A_STEP)
    writer.add(ended(turn, "aborted"))
    return [encode_event(event) for event in writer.events]


def calls_in(job: Callable[[], object]) -> int:
    """How many functions written in Python a job calls."""
    counter, before = count(), sys.getprofile()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            next(counter)

    sys.setprofile(note)
    try:
        job()
    finally:
        sys.setprofile(before)
    return next(counter)


def test_an_event_takes_few_function_calls(rows: list[bytes]) -> None:
    fold_rows(Events(rows[:100]))  # what is made once for all logs
    events = Events(rows)
    assert calls_in(lambda: fold_rows(events)) < 6 * len(rows)


def test_what_is_kept_of_an_event_is_little_more_than_its_row(rows: list[bytes]) -> None:
    events = Events(rows)
    tracemalloc.start()
    try:
        state = fold_rows(events)
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert state.seq == len(rows) - 1
    assert held < 160 * len(rows)
    assert most - held < 1_000 * GROUP
