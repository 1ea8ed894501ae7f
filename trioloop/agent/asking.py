"""Who waits for the outcome of a message, and how they learn it (I6)."""

import attrs
import trio

from trioloop.agent.notifications import Settled
from trioloop.errors import AgentFailedError, DiscardedError, ParkedError, TrioloopError
from trioloop.events import SpliceOutcome
from trioloop.ids import MessageId
from trioloop.log.inbox import Inbox


@attrs.define(eq=False)
class Answer:
    """The outcome that one asker waits for.

    Attributes:
        turn: the turn that claimed the message; None: none has.
    """

    turn: int | None = None
    _came: trio.Event = attrs.field(factory=trio.Event)
    _outcome: Settled | TrioloopError | None = None

    @property
    def claimed(self) -> bool:
        """Whether a turn has taken the message and isn't settled yet."""
        return self.turn is not None and self._outcome is None

    @property
    def open(self) -> bool:
        """Whether the outcome is still to come."""
        return self._outcome is None

    def give(self, outcome: Settled | TrioloopError) -> None:
        """Tell the asker; the first outcome stands."""
        if self._outcome is None:
            self._outcome = outcome
            self._came.set()

    async def wait(self) -> Settled:
        """Wait for the outcome. A checkpoint.

        Raises:
            TrioloopError: the message wasn't taken, or its agent failed.
        """
        await self._came.wait()
        assert self._outcome is not None  # given together with the event
        if isinstance(self._outcome, Settled):
            return self._outcome
        raise self._outcome


class Askers:
    """The askers of one agent, by message."""

    __slots__ = ("_answers",)

    def __init__(self) -> None:
        self._answers: dict[MessageId, Answer] = {}

    def expect(self, id: MessageId) -> Answer:
        """The outcome to come of a message that is about to be sent."""
        answer = self._answers[id] = Answer()
        return answer

    def forget(self, id: MessageId) -> None:
        """Nobody waits for the outcome of a message any more."""
        del self._answers[id]

    def claimed(self, id: MessageId, turn: int) -> None:
        """A turn took a message."""
        if id in self._answers:
            self._answers[id].turn = turn

    def discarded(self, id: MessageId, outcome: SpliceOutcome) -> None:
        """A message was dropped before a turn took it."""
        if id in self._answers:
            self._answers[id].give(DiscardedError(id, outcome))

    def settle(self, settled: Settled, fault: Exception | None) -> None:
        """A chain of turns is over: whoever's message it claimed has the outcome (R10)."""
        for answer in self._answers.values():
            if answer.turn in settled.turns:
                answer.give(settled if fault is None else _failed(fault))

    def driver_stopped(self, inbox: Inbox, fault: Exception | None) -> None:
        """The driver has ended: whoever still waits learns why it won't come."""
        for id, answer in self._answers.items():
            if fault is not None:
                answer.give(_failed(fault))
            elif answer.open and inbox.find(id) is not None:
                answer.give(
                    ParkedError(
                        f"the message {id!r} is still pending, but the agent has stopped: "
                        "wake() or the next waking message goes on with it"
                    )
                )


def _failed(fault: Exception) -> AgentFailedError:
    return AgentFailedError(f"the agent's driver failed: {fault!r}")
