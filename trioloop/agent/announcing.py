"""From the log to those who watch and wait: inbox events become notifications and answers.

Observes one session. What a notification is, and who gets it, is in `notifications`; whoever asked
for the outcome of a message is in `asking`.
"""

from trioloop.agent.asking import Askers
from trioloop.agent.notifications import (
    InboxChanged,
    MessageClaimed,
    MessageDiscarded,
    MessageInserted,
    Notification,
    Settled,
)
from trioloop.agent.resources import Surroundings
from trioloop.agent.watching import Notifications
from trioloop.events import Event, InboxSpliced, PendingMessage
from trioloop.session import Session


class Announcer:
    """Tells listeners, watchers and askers of one agent what its log says of messages."""

    __slots__ = ("_askers", "_notifications", "_seen", "_session", "_surroundings")

    def __init__(self, session: Session, surroundings: Surroundings) -> None:
        self._session = session
        self._surroundings = surroundings
        self._seen = session.state.inbox  # as of the last event that was told of
        self._askers: Askers | None = None
        self._notifications: Notifications | None = None
        session.observe(self._observe)

    @property
    def askers(self) -> Askers:
        """Who waits for the outcome of a message."""
        if self._askers is None:
            self._askers = Askers()
        return self._askers

    @property
    def notifications(self) -> Notifications:
        """Where live facts about the agent are told; made when first wanted."""
        if self._notifications is None:
            self._notifications = Notifications(
                self._surroundings.limits.watch_notifications_max, self._surroundings.notifications
            )
        return self._notifications

    @property
    def heard(self) -> bool:
        """Whether anybody would notice a notification."""
        if self._notifications is not None:
            return self._notifications.heard
        return self._surroundings.notifications.heard

    def tell(self, notification: Notification) -> None:
        """Tell of something, if anybody listens."""
        if self.heard:
            self.notifications.send(notification)

    def settled(self, settled: Settled, fault: Exception | None) -> None:
        """A chain of turns is over, perhaps by a fault of our own."""
        if self._askers is not None:
            self._askers.settle(settled, fault)
        self.tell(settled)

    def driver_stopped(self, fault: Exception | None) -> None:
        """The driver has ended: whoever still waits for it learns why nothing will come."""
        if self._askers is not None:
            self._askers.driver_stopped(self._session.state.inbox, fault)

    def close(self) -> None:
        """Nothing more will happen: watchers end."""
        if self._notifications is not None:
            self._notifications.close()

    def _observe(self, event: Event) -> None:
        if not isinstance(event.data, InboxSpliced):
            return
        splice, before = event.data, self._seen
        self._seen = before.spliced(splice)
        for pending in before.of(splice.list)[splice.start : splice.start + splice.removed]:
            self._removed(pending, splice)
        if self.heard:
            name = self._session.name
            for pending in splice.inserted:
                self.notifications.send(MessageInserted(pending.message, splice.list, agent=name))
            self.notifications.send(InboxChanged(splice, agent=name))

    def _removed(self, pending: PendingMessage, splice: InboxSpliced) -> None:
        id = pending.message.id
        if splice.outcome is None:
            turn = self._session.state.turns
            self.tell(MessageClaimed(id, turn, agent=self._session.name))
            if self._askers is not None:
                self._askers.claimed(id, turn)
        else:
            self.tell(MessageDiscarded(id, splice.outcome, agent=self._session.name))
            if self._askers is not None:
                self._askers.discarded(id, splice.outcome)
