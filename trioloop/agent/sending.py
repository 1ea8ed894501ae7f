"""Sending: the part of an agent that takes messages (I1 to I5)."""

import trio

from trioloop.agent.composing import composed
from trioloop.agent.outside import FromThread
from trioloop.agent.resources import Surroundings
from trioloop.agent.supervisor import Supervisor
from trioloop.errors import AgentDisposedError
from trioloop.events import PendingMessage
from trioloop.ids import MessageId
from trioloop.machine.inbox import insert
from trioloop.messages import Content, MessageList, UserMessage
from trioloop.session import Session


class Addressee:
    """Whoever messages are sent to.

    Attributes:
        session: its log.
    """

    __slots__ = ("_disposal", "_supervisor", "_surroundings", "session")

    session: Session
    _disposal: trio.Event | None  # made when disposal begins, set when it is over
    _supervisor: Supervisor
    _surroundings: Surroundings

    def followup(self, content: Content | UserMessage) -> MessageId:
        """Send a message that opens a turn of its own; as `send` to next-turn."""
        return self.send(content, target="next-turn")

    def steer(self, content: Content | UserMessage) -> MessageId:
        """Send a message that joins at the next step boundary; as `send` to next-step."""
        return self.send(content, target="next-step")

    def inject(self, content: Content | UserMessage) -> MessageId:
        """Send a message that joins at the next step boundary and wakes nobody."""
        return self.send(content, target="next-step", wakeup=False)

    @trio.lowlevel.enable_ki_protection
    def send(
        self,
        message: Content | UserMessage,
        *,
        target: MessageList = "next-turn",
        wakeup: bool = True,
    ) -> MessageId:
        """Send a message: one event in the log, or an error and no change (I1).

        Plain and synchronous, on the Trio thread; from elsewhere use `from_thread` or `send_soon`.

        Args:
            message: text, blocks, or a `UserMessage` with an id or a source of its own.
            target: the list that it joins. A waking message sent after the open turn was cancelled
                goes to next-turn and opens a turn when that one has closed (I4).
            wakeup: whether it wakes an idle agent.

        Returns:
            The message's id.

        Raises:
            AgentDisposedError: the agent's registration has ended.
            DuplicateMessageError: the id is known already; so a send may be repeated safely.
            InvalidInputError: the message is empty or too large.
            QueueFullError: the inbox is full.
        """
        self._check_open()
        whole = self._composed(message)
        self._deliver(whole, target, wakeup=wakeup)
        return whole.id

    @trio.lowlevel.enable_ki_protection
    def _deliver(self, message: UserMessage, target: MessageList, *, wakeup: bool) -> None:
        """Put a composed message into the inbox, and wake who sleeps."""
        turn = self._supervisor.turn
        late = wakeup and turn is not None and turn.scope.cancel_called
        pending = PendingMessage(message, wakeup=wakeup, after_cancel=late)
        inbox = self.session.state.inbox
        self.session.append(insert(inbox, "next-turn" if late else target, pending))
        if wakeup:
            self._supervisor.wake(self._surroundings.nursery, explicit=False)

    @property
    def from_thread(self) -> FromThread:
        """The same sends for threads that Trio started: they block for the answer."""
        return FromThread(self, self._surroundings.token)

    def send_soon(
        self,
        message: Content | UserMessage,
        *,
        target: MessageList = "next-turn",
        wakeup: bool = True,
    ) -> None:
        """Send from any thread, a signal handler or a guest-mode host; never blocks.

        What `send` would raise is logged.
        """
        self.from_thread.send_soon(message, target=target, wakeup=wakeup)

    def _composed(self, message: Content | UserMessage) -> UserMessage:
        around = self._surroundings
        return composed(message, self.session.state, around.limits, around.ids)

    def _check_open(self) -> None:
        if self._disposal is not None:
            raise AgentDisposedError(
                f"{self.session.name!r} was disposed of: "
                f"resume_agent({self.session.name!r}) makes a new handle"
            )
