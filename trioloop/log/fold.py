"""Events to state."""

from collections.abc import Iterable

from trioloop.events import Event
from trioloop.log.state import Claimed, Fate, OpenCall, OpenStep, OpenTurn, State

__all__ = ["Claimed", "Fate", "LogState", "OpenCall", "OpenStep", "OpenTurn", "check", "fold"]


class LogState(State):
    """The state of a session, brought forward one event at a time."""

    __slots__ = ()

    def apply(self, event: Event) -> None:
        """Take the next event.

        Raises:
            GrammarError: the event may not stand there; the state is as before.
        """
        raise NotImplementedError


def fold(events: Iterable[Event]) -> LogState:
    """The state behind some events.

    Raises:
        GrammarError: they are no log.
    """
    state = LogState()
    for event in events:
        state.apply(event)
    return state


def check(events: Iterable[Event]) -> None:
    """Check that some events are a log (G1).

    Raises:
        GrammarError: one of them may not stand where it stands.
    """
    fold(events)
