"""Points other than task steps: the n-th event of a log."""

from collections.abc import Callable

import attrs

from tests.exhaustive.lines import line_of, line_of_event
from trioloop.agent.agent import Agent
from trioloop.events import Event
from trioloop.testing import CancelPoint


@attrs.define(eq=False)
class EventPoint:
    """The event as whose observer something is done, inside the block that appends it.

    Attributes:
        number: which event after `arm`, counted from 1.
        reached: whether the run came to it.
        event: the event that was reached.
    """

    number: int
    reached: bool = False
    passed: int = 0
    event: Event | None = None
    _action: Callable[[], object] | None = None

    def arm(self, action: Callable[[], object]) -> None:
        """Count events from here on."""
        self._action = action

    def disarm(self) -> None:
        """Count no further."""
        self._action = None

    def observe(self, event: Event) -> None:
        """Count one event."""
        if self._action is None:
            return
        self.passed += 1
        if self.passed == self.number:
            action, self._action = self._action, None
            self.reached = True
            self.event = event
            action()


def line_of_point(point: CancelPoint | EventPoint, agent: Agent, settled: int) -> str:
    """The line that a point fell in, as it is reached."""
    appended = point.event if isinstance(point, EventPoint) else None
    line = None if appended is None else line_of_event(appended)
    return line_of(agent, settled) if line is None else line
