"""What a change of the inbox must say to stand where it stands (I2, I5, R5, D6)."""

from trioloop.events import Event, InboxSpliced, PendingMessage
from trioloop.log.phases import Phase
from trioloop.log.refusal import refuse
from trioloop.log.state import State

_CLAIMING = Phase.CLAIMING  # by itself: Python 3.11 is slow to find an enum's member
_BOUNDARIES = (Phase.CLAIMING, Phase.PREPARING)


def check_splice(state: State, event: Event, data: InboxSpliced) -> None:
    """Check one splice.

    Raises:
        GrammarError: it doesn't fit the inbox, or may not stand there.
    """
    length = len(state.inbox.of(data.list))
    if not (0 <= data.start <= length and 0 <= data.removed <= length - data.start):
        there = f"a range of the {length} messages of {data.list}"
        refuse(event, "I2", there, f"{data.removed} from {data.start}")
    if data.removed == 0 and not data.inserted:
        refuse(event, "I2", "a change", "none")
    if data.removed and data.outcome is None:
        _claim(state, event, data, length)
    elif state.phase == _CLAIMING:
        refuse(event, "section 4", "the first claim of the turn", "another change of the inbox")
    else:
        if data.outcome is not None:
            _outcome(state, event, data, length)
        if data.inserted:
            _insertions(state, event, data)


def check_fork(state: State, event: Event) -> None:
    """Check the event behind those that a fork inherited.

    Raises:
        GrammarError: the fork cuts a turn, or keeps what was pending.
    """
    if state.turn is not None:
        refuse(event, "D6", "a fork behind the end of a turn", f"one in turn {state.turn.number}")
    data = event.data
    if len(state.inbox) and not (isinstance(data, InboxSpliced) and data.outcome == "forked"):
        refuse(event, "D6", "the splice that empties a fork's inbox", event.type)


def _claim(state: State, event: Event, data: InboxSpliced, length: int) -> None:
    turn = state.turn
    if turn is None or state.phase not in _BOUNDARIES:
        refuse(event, "section 4", "a claim at a step's boundary", f"one of {data.list}")
    if data.inserted:
        refuse(event, "I2", "a claim that only removes", f"{len(data.inserted)} inserted")
    if data.list == "next-step":
        if data.removed != length:
            refuse(event, "section 1", f"a claim of all {length} of next-step", f"{data.removed}")
        return
    if (data.start, data.removed) != (0, 1):
        refuse(event, "section 1", "a claim of the head of next-turn", f"{data.removed} messages")
    if turn.retry_of is not None:
        refuse(event, "R2", "a retry turn that claims next-step only", "a claim of next-turn")
    if turn.took_next_turn or event.seq > turn.start_seq + 2:
        refuse(event, "section 1", "one claim of next-turn, as the turn opens", "another one")


def _outcome(state: State, event: Event, data: InboxSpliced, length: int) -> None:
    if not data.removed:
        refuse(event, "I2", f"a removal with the outcome {data.outcome}", "none")
    if data.outcome == "replaced":
        if (data.removed, len(data.inserted)) != (1, 1):
            got = f"{data.removed} and {len(data.inserted)}"
            refuse(event, "I2", "one message replaced by one", got)
    elif data.inserted:
        refuse(event, "I2", "a removal that inserts nothing", f"{len(data.inserted)} inserted")
    if data.outcome == "forked":
        _forked(state, event, data, length)


def _forked(state: State, event: Event, data: InboxSpliced, length: int) -> None:
    until = None if state.session is None else state.session.fork_seq
    if until is None or (event.seq > until and event.seq != state.fork_due):
        refuse(event, "D6", "a forked inbox directly behind what a fork inherits", "one elsewhere")
    if data.removed != length:
        refuse(event, "D6", f"all {length} of {data.list} forked", f"{data.removed}")


def _insertions(state: State, event: Event, data: InboxSpliced) -> None:
    edited = None  # a message that takes the place of another may keep its id
    if data.outcome == "replaced":
        edited = state.inbox.of(data.list)[data.start].message.id
    ids = {pending.message.id for pending in data.inserted}
    if len(ids) < len(data.inserted):
        refuse(event, "I1", "messages with different ids", "two of the same id")
    for pending in data.inserted:
        if pending.restored:
            _restoration(state, event, data, pending)
        elif not pending.message.id:
            refuse(event, "I1", "a message with an id", "one without")
        elif pending.message.id in state.fates and pending.message.id != edited:
            fate = state.fates[pending.message.id]
            refuse(event, "I1", "a new message", f"{pending.message.id!r}, which is {fate}")


def _restoration(state: State, event: Event, data: InboxSpliced, pending: PendingMessage) -> None:
    id = pending.message.id
    fate = state.fates.get(id)
    is_fresh = state.turn is not None and id in state.turn.claims
    if fate is None or not (fate.status == "unadmitted" or is_fresh):
        was = "unknown" if fate is None else str(fate)
        refuse(
            event, "R5", "a message that was claimed and not admitted", f"{id!r}, which is {was}"
        )
    if data.start != 0 or fate.list != data.list:
        refuse(event, "R5", f"{id!r} at the head of {fate.list}", f"{data.start} of {data.list}")
    if fate.pending is None or fate.pending.message != pending.message:
        refuse(event, "R5", f"{id!r} as it was sent", "another message")
