"""What a log's turns and session have spent, counted a second time, by the words of the page."""

from collections.abc import Iterator, Sequence

import attrs

from tests.simulation.policies.script import PRICES
from trioloop import Event, Usage
from trioloop.events import (
    AsideEnded,
    AssistantAttemptLogged,
    AssistantMessageLogged,
    NestedCallStarted,
    RequestContextLogged,
    StepStarted,
    ToolCallStarted,
    TurnEnded,
    TurnStarted,
)


@attrs.define
class Count:
    """Steps, calls, tokens, money, and milliseconds of turns that are over."""

    steps: int = 0
    calls: int = 0
    tokens: int = 0
    money: float = 0.0
    ms: int = 0


@attrs.define
class Counts:
    """The counts of a log up to some event.

    Attributes:
        session: of all of it.
        turn: of the open or last chain of turns.
        began: when the open turn did.
        model: that is asked.
    """

    session: Count = attrs.Factory(Count)
    turn: Count = attrs.Factory(Count)
    began: int | None = None
    model: str = ""
    last: int = 0

    def take(self, event: Event) -> None:
        """Count one more event."""
        data = event.data
        if isinstance(data, TurnStarted):
            self.began = event.time
            if data.retry_of is None:
                self.turn = Count()
        elif isinstance(data, RequestContextLogged):
            self.model = data.model
        elif isinstance(data, TurnEnded) and self.began is not None:
            until = self.last if data.reason == "interrupted" else event.time
            self._add("ms", until - self.began)
            self.began = None
        elif isinstance(data, StepStarted):
            self._add("steps", 1)
        elif isinstance(data, ToolCallStarted | NestedCallStarted):
            self._add("calls", 1)
        elif isinstance(data, AssistantMessageLogged | AssistantAttemptLogged | AsideEnded):
            self._use(data.usage)
        self.last = event.time

    def _add(self, what: str, more: float) -> None:
        for count in (self.session, self.turn):
            setattr(count, what, getattr(count, what) + more)

    def _use(self, usage: Usage | None) -> None:
        if usage is not None:
            self._add("tokens", (usage.input_tokens or 0) + (usage.output_tokens or 0))
            self._add("money", PRICES[self.model].of(usage))

    def of(self, scope: str) -> Count:
        """A copy of the counts of a turn or a session."""
        return attrs.evolve(self.turn if scope == "turn" else self.session)


def counted(events: Sequence[Event]) -> Iterator[tuple[Event, Counts]]:
    """Each event of a log, with the counts before it."""
    counts = Counts()
    for event in events:
        yield event, counts
        counts.take(event)


def whole(events: Sequence[Event]) -> Count:
    """What a whole log comes to."""
    counts = Counts()
    for event in events:
        counts.take(event)
    return counts.session
