"""Events to state: checked by the grammar, then folded in (G9).

`LogState.apply` looks up one row of one table: a check from the grammar, which raises before
anything has changed, and a change, which gets what the check found and can't fail behind it. Each
event costs O(1), amortised, but for replacements in the history.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import attrs

from trioloop.events import Event, EventData
from trioloop.log.changes import CHANGES, Change
from trioloop.log.grammar import CHECKS, Check, following
from trioloop.log.phases import MAY_FOLLOW, Phase
from trioloop.log.state import Claimed, Fate, OpenCall, OpenStep, OpenTurn, State

__all__ = ["Claimed", "Fate", "LogState", "OpenCall", "OpenStep", "OpenTurn", "check", "fold"]


class LogState(State):
    """The state of a session, brought forward one event at a time."""

    __slots__ = ()

    def apply(self, event: Event, kind: type[EventData] | None = None) -> None:
        """Take the next event.

        Args:
            event: the event, or one whose data has the fields alone that are needed here.
            kind: the class that such data stands for; None: its own.

        Raises:
            GrammarError: the event may not stand there; the state is as before.
            UnsupportedSessionError: the log has another format (E5).
        """
        data = event.data
        kind = kind or type(data)
        rules = _RULES[self.phase].get(kind)
        seq, time = event.seq, event.time
        if rules is None:
            self.phase = following(self, event, kind if kind in CHECKS else EventData)[0]
        else:
            check, change, phase = rules
            if seq != self.seq + 1 or time < self.time or seq == self.fork_due:
                following(self, event, kind)
            found = check(self, event, data)
            self.phase = change(self, event, data, found) or phase
        self.seq = seq
        self.time = time

    def apply_rows(self, rows: Sequence[Event], standing_for: "StandIns") -> None:
        """Take the next events, whose data has the fields alone that are needed here.

        Raises:
            GrammarError: one of them may not stand there; the state is the one behind those before.
            UnsupportedSessionError: the log has another format (E5).
        """
        in_order, rules = self._are_in_order(rows), standing_for.rules
        for row in rows:
            rule = rules[self.phase].get(type(row)) if in_order else None
            if rule is None:
                self.apply(row, standing_for.kinds[type(row)])
                continue
            check, change, phase = rule
            data = row.data
            self.phase = change(self, row, data, check(self, row, data)) or phase
            self.seq = row.seq
            self.time = row.time

    def _are_in_order(self, rows: Sequence[Event]) -> bool:
        """Whether the place of each is beyond doubt, so that only its type and data are checked."""
        first, behind = self.seq + 1, self.seq + 1 + len(rows)
        times = [row.time for row in rows]
        return (
            self.session is not None
            and not first <= self.fork_due < behind
            and [row.seq for row in rows] == list(range(first, behind))
            and [self.time, *times] == sorted([self.time, *times])
        )


def fold(events: Iterable[Event]) -> LogState:
    """The state behind some events, from the first of a log on.

    Raises:
        GrammarError: they are no log.
        UnsupportedSessionError: the log has another format (E5).
    """
    state = LogState()
    for event in events:
        state.apply(event)
    return state


def check(events: Iterable[Event]) -> None:
    """Check that some events are a log (G1).

    Raises:
        GrammarError: one of them may not stand where it stands; `seq`, `rule`, `expected` and
            `got` tell which and why.
        UnsupportedSessionError: the log has another format (E5).
    """
    fold(events)


Rule: TypeAlias = tuple[Check, Change, Phase]

_RULES: Sequence[Mapping[type[EventData], Rule]] = [
    {
        kind: (CHECKS[kind], CHANGES[kind], phases[0])
        for kind, phases in MAY_FOLLOW[phase].items()
        if kind is not EventData
    }
    for phase in Phase
]
"""For each phase and each type that may follow: its check, its change, where that leads to."""


@attrs.frozen
class StandIns:
    """Classes of events that stand for others, with fewer fields of data.

    Attributes:
        kinds: for each, the class of data that it stands for.
        rules: those of these classes, by phase.
    """

    kinds: Mapping[type[Event], type[EventData]]
    rules: Sequence[Mapping[type[Event], Rule]]

    @classmethod
    def of(cls, kinds: Mapping[type[Event], type[EventData]]) -> "StandIns":
        """Those classes, under the rules of what they stand for."""
        rules = [
            {row: rules[kind] for row, kind in kinds.items() if kind in rules} for rules in _RULES
        ]
        return cls(kinds, rules)
