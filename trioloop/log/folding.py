"""Folds of an application's own: state that is read from a log, and from nothing else.

The state of the session itself, which the grammar needs, is in `fold`.
"""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import attrs

from trioloop.events import Event

StateT = TypeVar("StateT")


@attrs.frozen(eq=False)
class Fold(Generic[StateT]):
    """A state that the events of a log add up to.

    `session.folded(fold)` keeps it up to date at the cost of the events that are new; called with
    the events of any log, it gives the state behind them. Both are equal at every event (G9).

    Attributes:
        start: makes the state before any event.
        step: given the state and the next event, it gives the state behind that. A state that has
            changed should be a new one: whoever asked before keeps what they were given.
    """

    start: Callable[[], StateT]
    step: Callable[[StateT, Event], StateT]

    def __call__(self, events: Iterable[Event]) -> StateT:
        """The state behind some events, from the first of a log on."""
        return self.behind(self.start(), events)

    def behind(self, state: StateT, events: Iterable[Event]) -> StateT:
        """The state behind some events that follow a state."""
        for event in events:
            state = self.step(state, event)
        return state
