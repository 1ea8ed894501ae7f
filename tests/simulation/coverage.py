"""What runs have been through: transitions of the grammar, and where they were cancelled."""

from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias

from trioloop import Event, EventData, Session
from trioloop.events import wire_name
from trioloop.log.grammar import CHECKS
from trioloop.log.phases import MAY_FOLLOW, Phase

Transition: TypeAlias = tuple[Phase, type[EventData], Phase]
Triple: TypeAlias = tuple[str, str, str]

DECLARED: frozenset[Transition] = frozenset(
    (phase, kind, following)
    for phase, row in MAY_FOLLOW.items()
    for kind, followings in row.items()
    for following in followings
)


class Coverage:
    """What was seen.

    Attributes:
        transitions: of the grammar's table, and how often.
        triples: the grammar's phase, the type of the last event, who cancelled where.
        kinds: the types of all events.
    """

    def __init__(self) -> None:
        self.transitions: Counter[Transition] = Counter()
        self.triples: set[Triple] = set()
        self.kinds: set[str] = set()

    def saw_cancel(self, session: Session, point: str) -> None:
        """Something of a session is about to be cancelled."""
        last = session.events(session.seq - 1)[0].type
        self.triples.add((Phase(session.state.phase).name, last, point))

    def saw_transition(self, before: Phase, event: Event, after: Phase) -> None:
        """An event led from one phase to another."""
        self.transitions[before, kind_of(event), after] += 1
        self.kinds.add(event.type)

    def add(self, other: "Coverage") -> None:
        """What another run has seen counts, too."""
        self.transitions += other.transitions
        self.triples |= other.triples
        self.kinds |= other.kinds


def kind_of(event: Event) -> type[EventData]:
    """The class that the grammar's table knows an event by."""
    kind = type(event.data)
    return kind if kind in CHECKS else EventData


def told(transitions: Iterable[Transition]) -> list[str]:
    """Transitions in words, in order."""
    return [
        f"{before.name} -> {'other' if kind is EventData else wire_name(kind)} -> {after.name}"
        for before, kind, after in sorted(transitions, key=lambda one: (one[0], one[1].__name__))
    ]
