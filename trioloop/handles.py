"""An agent as the floors below it see it: what hook listeners, tools and policies are given.

Only protocols; what keeps them is in `agent/` and `session`.
"""

from typing import Literal, Protocol, TypeVar

from trioloop.events import Event, EventData
from trioloop.ids import MessageId, SessionId
from trioloop.log.fold import LogState
from trioloop.log.folding import Fold
from trioloop.messages import Content, UserMessage
from trioloop.stream.assemble import Assembled

StateT = TypeVar("StateT")


class SessionHandle(Protocol):
    """The log of an agent."""

    @property
    def name(self) -> SessionId:
        """The session's name."""
        ...

    @property
    def state(self) -> LogState:
        """What its events add up to; only reading is allowed."""
        ...

    @property
    def seq(self) -> int:
        """The seq of the last appended event."""
        ...

    def events(self, after: int = -1) -> tuple[Event, ...]:
        """The events appended so far with a seq greater than `after`."""
        ...

    def folded(self, fold: Fold[StateT]) -> StateT:
        """The state that its events add up to by a fold."""
        ...

    def append(self, *facts: EventData) -> tuple[Event, ...]:
        """Append facts as one block: all of them, or none."""
        ...


class TurnHandle(Protocol):
    """The open turn of an agent."""

    @property
    def turn(self) -> int:
        """Its number in the session."""
        ...

    @property
    def cause(self) -> str | None:
        """Why it was cancelled, if it was."""
        ...

    def cancel_at(self, deadline: float, cause: str) -> None:
        """Cancel it at a time on Trio's clock; the earliest such time stands."""
        ...


class AgentHandle(Protocol):
    """What a hook listener, a tool or a policy may do with the agent that it works for."""

    @property
    def name(self) -> SessionId:
        """The name of its session."""
        ...

    @property
    def session(self) -> SessionHandle:
        """Its log."""
        ...

    @property
    def status(self) -> Literal["idle", "running"]:
        """Whether it works (S2)."""
        ...

    @property
    def turn(self) -> TurnHandle | None:
        """The open turn; None: no turn is open."""
        ...

    def followup(self, content: Content | UserMessage) -> MessageId:
        """Send a message that opens a turn of its own."""
        ...

    def steer(self, content: Content | UserMessage) -> MessageId:
        """Send a message that joins at the next step boundary and wakes an idle agent."""
        ...

    def inject(self, content: Content | UserMessage) -> MessageId:
        """Send a message that joins at the next step boundary and wakes nobody."""
        ...

    def cancel(self, cause: str = "user", *, discard_inbox: bool = False) -> None:
        """Cancel the open turn."""
        ...

    async def aside(
        self,
        question: Content | UserMessage,
        *,
        history: tuple[int, int] | None = None,
        tools: bool = False,
    ) -> Assembled:
        """Ask its model something beside the conversation."""
        ...
