"""An agent's inbox as its users see and change it (I2, I5).

Each change is one splice in the log; which splice is decided in `machine/inbox`.
"""

from collections.abc import Callable

import trio

from trioloop.agent.composing import checked
from trioloop.events import EventData, PendingMessage
from trioloop.ids import MessageId
from trioloop.limits import Limits
from trioloop.machine import inbox as changes
from trioloop.messages import Content, UserMessage
from trioloop.session import Session


class Mailbox:
    """The two lists of pending messages.

    Args:
        session: the log that holds them.
        check_open: raises where the agent takes no more changes.
        limits: `message_bytes_max` is used.
    """

    __slots__ = ("_check_open", "_limits", "_session")

    def __init__(self, session: Session, check_open: Callable[[], None], limits: Limits) -> None:
        self._session = session
        self._check_open = check_open
        self._limits = limits

    @property
    def next_turn(self) -> tuple[PendingMessage, ...]:
        """Messages that open a turn of their own, in order."""
        return self._session.state.inbox.next_turn

    @property
    def next_step(self) -> tuple[PendingMessage, ...]:
        """Messages that join at the next step boundary, in order."""
        return self._session.state.inbox.next_step

    def __len__(self) -> int:
        return len(self._session.state.inbox)

    def remove(self, id: MessageId) -> bool:
        """Discard a pending message; False: it isn't pending."""
        splice = changes.remove(self._session.state.inbox, id)
        return self._apply(() if splice is None else (splice,))

    def replace(self, id: MessageId, message: Content | UserMessage) -> bool:
        """Put another message in a pending one's place; False: it isn't pending.

        The new one keeps the old one's id where it has none of its own.

        Raises:
            DuplicateMessageError: the new message's id is known already.
            InvalidInputError: it is empty or too large.
        """
        splice = changes.replace(self._session.state, id, checked(message, self._limits))
        return self._apply(() if splice is None else (splice,))

    def clear(self) -> int:
        """Discard everything, next-step first; how many messages there were."""
        found = len(self)
        self._apply(changes.clear(self._session.state.inbox))
        return found

    def restore(self, turn: int) -> int:
        """Put back what a turn claimed and didn't admit (R5), once; how many messages that were."""
        splices = changes.restore(self._session.state, turn)
        self._apply(splices)
        return sum(len(splice.inserted) for splice in splices)

    @trio.lowlevel.enable_ki_protection
    def _apply(self, splices: tuple[EventData, ...]) -> bool:
        self._check_open()
        if splices:
            self._session.append(*splices)
        return bool(splices)
