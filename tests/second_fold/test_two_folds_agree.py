"""Two readings of a log, written apart from each other, say the same at every prefix (G9)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.log.random_logs import written_logs
from tests.log.writing import LogWriter
from tests.second_fold.first_view import first_view, rows_of
from tests.second_fold.recording import Run, recorded
from tests.second_fold.runs import RUNS
from tests.second_fold.second_fold import view
from tests.second_fold.sweep import swept
from trioloop.events import Event
from trioloop.log.fold import LogState, fold
from trioloop.log.repair import repair


def assert_agreement(events: list[Event], *, after: int = -1) -> None:
    """Both readings say the same of every prefix of a log that goes further than `after`."""
    rows = rows_of(events)
    state = fold(events[: after + 1])
    assert view(rows[: after + 1]) == first_view(state)
    for count, event in enumerate(events[after + 1 :], after + 2):
        state.apply(event)
        assert view(rows[:count]) == first_view(state), f"after event {event.seq}, {event.type}"


def test_of_an_empty_log() -> None:
    assert view([]) == first_view(LogState())


@settings(max_examples=40, deadline=None)
@given(written_logs())
def test_of_any_written_log(writer: LogWriter) -> None:
    assert_agreement(writer.events)


@settings(max_examples=40, deadline=None)
@given(written_logs(), st.data())
def test_of_any_repaired_log(writer: LogWriter, data: st.DataObject) -> None:
    cut = writer.events[: data.draw(st.integers(1, len(writer.events)))]
    facts = repair(cut)
    repaired = [Event(seq, cut[-1].time, fact) for seq, fact in enumerate(facts, len(cut))]
    assert_agreement([*cut, *repaired], after=cut[-1].seq)


@pytest.mark.parametrize("run", RUNS)
def test_of_real_runs(run: Run) -> None:
    for events in recorded(run).logs.values():
        assert_agreement(events)


def test_of_a_run_that_is_cancelled_at_every_point() -> None:
    """Points next to each other give logs that begin alike: what was compared once is enough."""
    before: list[Event] = []
    for events in swept().logs:
        pairs = zip(before, events, strict=False)
        same = next((n for n, (one, other) in enumerate(pairs) if one != other), len(before))
        assert_agreement(events, after=min(same, len(events)) - 1)
        before = events
