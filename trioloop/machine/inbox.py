"""What may be done with the inbox, each as the splices that do it (section 3).

Pure: an inbox is read, never changed; the splices are events for the log. `claim_turn` and
`claim_step` decide which messages a turn takes when.
"""

from collections.abc import Sequence

from trioloop.errors import DuplicateMessageError
from trioloop.events import InboxSpliced, PendingMessage, SpliceOutcome
from trioloop.log.fold import LogState
from trioloop.log.inbox import EMPTY_INBOX, Inbox, Place, put_back
from trioloop.messages import MessageList, UserMessage

__all__ = [
    "EMPTY_INBOX",
    "Inbox",
    "Place",
    "claim_step",
    "claim_turn",
    "clear",
    "insert",
    "put_back",
    "remove",
    "replace",
    "restore",
    "splice",
    "wakes",
]


def splice(
    inbox: Inbox,
    target: MessageList,
    start: int,
    *,
    removed: int = 0,
    inserted: Sequence[PendingMessage] = (),
    outcome: SpliceOutcome | None = None,
) -> InboxSpliced:
    """The change of one list, as list slices understand it.

    Args:
        inbox: as it is.
        target: which of its lists.
        start: where; negative counts from the end, beyond either end means that end.
        removed: how many go, as far as there are.
        inserted: what takes their place.
        outcome: what becomes of those that go; None: the open turn claims them.
    """
    length = len(inbox.of(target))
    first, _, _ = slice(start, None).indices(length)
    gone = max(0, min(removed, length - first))
    return InboxSpliced(target, first, gone, tuple(inserted), outcome)


def insert(inbox: Inbox, target: MessageList, pending: PendingMessage) -> InboxSpliced:
    """A message at the end of a list."""
    return InboxSpliced(target, len(inbox.of(target)), inserted=(pending,))


def remove(inbox: Inbox, id: str, outcome: SpliceOutcome = "canceled") -> InboxSpliced | None:
    """The removal of one message; None: it isn't pending."""
    place = inbox.find(id)
    return None if place is None else InboxSpliced(place.list, place.index, 1, outcome=outcome)


def replace(state: LogState, id: str, message: UserMessage) -> InboxSpliced | None:
    """Another message in the place of one, which is discarded; None: that one isn't pending.

    The new message wakes as the old one would have, and has its id where it brings none.

    Raises:
        DuplicateMessageError: the log knows the new message's id as that of a third one.
    """
    place = state.inbox.find(id)
    if place is None:
        return None
    old = place.pending
    if not message.id:
        message = UserMessage(message.content, old.message.id, message.source)
    if message.id != id and message.id in state.fates:
        raise DuplicateMessageError(message.id, str(state.fates[message.id]))
    new = PendingMessage(message, wakeup=old.wakeup, after_cancel=old.after_cancel)
    return InboxSpliced(place.list, place.index, 1, (new,), "replaced")


def restore(state: LogState, turn: int) -> tuple[InboxSpliced, ...]:
    """What a turn claimed and didn't admit, back at the heads of its lists (R5).

    Once: what has been put back, or was claimed by a later turn since, stays where it is.
    """
    return put_back(
        (fate.list, fate.pending)
        for fate in state.fates.values()
        if fate.turn == turn and fate.status == "unadmitted"
        if fate.list is not None and fate.pending is not None
    )


def clear(inbox: Inbox, outcome: SpliceOutcome = "canceled") -> tuple[InboxSpliced, ...]:
    """The removal of everything pending: next-step, then next-turn (I3)."""
    lists: tuple[MessageList, ...] = ("next-step", "next-turn")
    return tuple(
        InboxSpliced(name, 0, len(inbox.of(name)), outcome=outcome)
        for name in lists
        if inbox.of(name)
    )


def claim_turn(inbox: Inbox) -> tuple[InboxSpliced, ...]:
    """The first claim of a turn; a retry turn's is that of a step (R2).

    All of next-step joins, and then the head of next-turn, which the turn is opened for; but where
    only next-step holds something that wakes, what waits in next-turn stays for a turn of its own.
    """
    joining = claim_step(inbox)
    claims = () if joining is None else (joining,)
    is_steered = wakes(inbox.next_step) and not wakes(inbox.next_turn)
    if is_steered or not inbox.next_turn:
        return claims
    return (*claims, InboxSpliced("next-turn", 0, 1))


def claim_step(inbox: Inbox) -> InboxSpliced | None:
    """The claim at a later step's boundary: all of next-step; None: it is empty."""
    waiting = len(inbox.next_step)
    return InboxSpliced("next-step", 0, waiting) if waiting else None


def wakes(messages: Sequence[PendingMessage]) -> bool:
    """Whether one of some messages wakes an idle agent."""
    return any(pending.wakeup for pending in messages)
