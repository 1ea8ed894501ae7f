"""What the log says of compactions, and the state that this adds up to.

A bracket without an end is what a crash left: nothing was replaced, and nobody waits for it.
"""

from typing import Any, Literal, TypeAlias

import attrs

from trioloop import Event, EventData, Fold, event, events

Why: TypeAlias = Literal["pressure", "overflow", "asked"]
Outcome: TypeAlias = Literal["replaced", "not smaller", "failed", "cancelled"]


@event("compaction/start", ignorable=True)
class CompactionStarted(EventData):
    """A part of the history is about to be summarised; the asides for that follow.

    Attributes:
        why: the window was filling, a request was too large for it, or somebody asked for it.
        history: seqs of the first and the last event whose nodes are summarised.
        tokens: what they take, by the estimator.
    """

    why: Why
    history: tuple[int, int]
    tokens: int


@event("compaction/summary", ignorable=True)
class CompactionSummarised(EventData):
    """There is a summary; the message that stands for the range follows in the same append.

    Attributes:
        aside: seq of the `aside/end` whose answer it is.
        tokens: what the message takes, by the estimator.
    """

    aside: int
    tokens: int


@event("compaction/end", ignorable=True)
class CompactionEnded(EventData):
    """A compaction is over. Only where it `replaced` something has the history changed.

    Attributes:
        outcome: what came of it; `not smaller`: the summary was as large as what it stood for.
        message: why it failed, in words.
    """

    outcome: Outcome
    message: str = ""


@attrs.frozen
class CompactionState:
    """What a log says of its compactions.

    Attributes:
        replaced: how many replaced something.
        overflows: how many began because of an overflow, since the last answer or new chain.
        gave_up: the last one of the open turn replaced nothing.
        made_room: the history was rewritten, by whomever, since the last attempt that failed.
    """

    replaced: int = 0
    overflows: int = 0
    gave_up: bool = False
    made_room: bool = False


def _behind(state: CompactionState, event: Event) -> CompactionState:
    changed: dict[str, Any] = {}  # Any: fields of different types
    match event.data:
        case events.AssistantAttemptLogged():
            changed = {"made_room": False}
        case events.AssistantMessageLogged() if state.overflows:
            changed = {"overflows": 0}
        case events.TurnStarted(retry_of=None):
            changed = {"overflows": 0, "gave_up": False}
        case CompactionStarted(why="overflow"):
            changed = {"overflows": state.overflows + 1}
        case CompactionEnded(outcome="replaced"):
            changed = {"replaced": state.replaced + 1, "gave_up": False}
        case CompactionEnded():
            changed = {"gave_up": True}
        case data if getattr(data, "replaces", None) is not None:
            changed = {"made_room": True}
    return attrs.evolve(state, **changed) if changed else state


compaction_state = Fold(CompactionState, _behind)
"""The fold of a log into the state of its compactions: `session.folded(compaction_state)`."""
