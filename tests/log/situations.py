"""Short logs that end in a situation worth a test."""

from tests.log.writing import (
    FAILED,
    LogWriter,
    answer,
    answer_calls,
    call_block,
    ended,
    sent,
    started,
)
from trioloop.events import (
    StepStarted,
)

A = call_block(1, 1, 0)
B = call_block(1, 1, 1)


def opened() -> LogWriter:
    """Nothing but the session."""
    return LogWriter()


def waiting() -> LogWriter:
    """A message waits."""
    writer = LogWriter()
    writer.add(sent("next-turn", "m1"))
    return writer


def turn() -> LogWriter:
    """A turn has claimed its message."""
    writer = LogWriter()
    writer.open_turn("m1")
    return writer


def step() -> LogWriter:
    """A step has started."""
    writer = turn()
    writer.add(StepStarted(1, 1))
    return writer


def admitted() -> LogWriter:
    """A request is admitted."""
    writer = turn()
    writer.admit()
    return writer


def failed() -> LogWriter:
    """An attempt failed."""
    writer = admitted()
    writer.add(FAILED)
    return writer


def calling() -> LogWriter:
    """The model asked for two calls."""
    writer = admitted()
    writer.add(answer_calls(1, 1, 2))
    return writer


def called() -> LogWriter:
    """The first call has started."""
    writer = calling()
    writer.add(started(A, dispatched=False))
    return writer


def answered() -> LogWriter:
    """The model answered."""
    writer = admitted()
    writer.add(answer())
    return writer


def results_owed() -> LogWriter:
    """Two results wait to be seen."""
    writer = turn()
    writer.step_of_calls(2)
    return writer


def step_failed() -> LogWriter:
    """A step is over without an answer."""
    writer = failed()
    writer.end_step()
    return writer


def turn_failed() -> LogWriter:
    """A turn is over without an answer."""
    writer = step_failed()
    writer.add(ended(1, "error"))
    return writer


def cut() -> LogWriter:
    """The answer was cut within its calls."""
    writer = admitted()
    writer.add(answer([A, B], "length"))
    return writer


def two_turns() -> LogWriter:
    """A second turn has claimed its message."""
    writer = LogWriter()
    writer.turn_of_text("m1")
    writer.open_turn("m2")
    return writer
