"""The two lists of pending messages, as the log's splices leave them (I2).

An inbox is a value: a splice gives another one. What is spliced when is decided in
`machine/inbox.py`.
"""

from collections.abc import Iterable, Iterator

import attrs

from trioloop.events import InboxSpliced, PendingMessage
from trioloop.messages import MessageList


@attrs.frozen
class Place:
    """Where a pending message stands."""

    list: MessageList
    index: int
    pending: PendingMessage


@attrs.frozen
class Inbox:
    """Pending messages in their order: each of `next_turn` opens a turn, `next_step` joins one."""

    next_turn: tuple[PendingMessage, ...] = ()
    next_step: tuple[PendingMessage, ...] = ()

    def __len__(self) -> int:
        return len(self.next_turn) + len(self.next_step)

    def __iter__(self) -> Iterator[PendingMessage]:
        """Every pending message, those of the next step first."""
        yield from self.next_step
        yield from self.next_turn

    def __contains__(self, id: object) -> bool:
        return any(pending.message.id == id for pending in self)

    def of(self, name: MessageList) -> tuple[PendingMessage, ...]:
        """One of the lists."""
        return self.next_turn if name == "next-turn" else self.next_step

    def find(self, id: str) -> Place | None:
        """Where the message of that id stands; None: it isn't pending."""
        lists: tuple[MessageList, ...] = ("next-step", "next-turn")
        for name in lists:
            for index, pending in enumerate(self.of(name)):
                if pending.message.id == id:
                    return Place(name, index, pending)
        return None

    def spliced(self, splice: InboxSpliced) -> "Inbox":
        """The inbox behind a splice that fits it."""
        before = self.of(splice.list)
        end = splice.start + splice.removed
        after = before[: splice.start] + splice.inserted + before[end:]
        if splice.list == "next-turn":
            return Inbox(after, self.next_step)
        return Inbox(self.next_turn, after)


EMPTY_INBOX = Inbox()


def put_back(claimed: Iterable[tuple[MessageList, PendingMessage]]) -> tuple[InboxSpliced, ...]:
    """The splices that put claimed messages back to the heads of their lists (R5).

    Args:
        claimed: each message with the list that it was claimed from, in the order of the claims.
    """
    messages = tuple(claimed)
    lists: tuple[MessageList, ...] = ("next-step", "next-turn")
    splices = []
    for name in lists:
        restored = tuple(
            PendingMessage(pending.message, wakeup=pending.wakeup, restored=True)
            for source, pending in messages
            if source == name
        )
        if restored:
            splices.append(InboxSpliced(name, 0, inserted=restored))
    return tuple(splices)
