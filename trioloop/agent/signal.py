"""The turn signal: the cancel scope of a turn, and the cause recorded when it was first cancelled.

Whoever cancels records a cause here; who notices is the business of the scope and of the running
calls. Which of several reasons ends a turn is decided in `turn`.
"""

from collections.abc import Mapping
from contextvars import ContextVar

import trio

from trioloop.errors import StoreError
from trioloop.ids import CallId
from trioloop.tools.batch import Stoppable

HOST_CANCELLED = "host-cancelled"
ASKER_CANCELLED = "asker-cancelled"


class TurnSignal:
    """The signal of one open turn.

    Args:
        turn: its number.
        opened: the seq at which it opens.
        running_calls: the calls that run and have no result yet, as they come and go (T12).
        host_cause: its cause where whatever surrounds it is cancelled.

    Attributes:
        turn: as given.
        opened: as given.
        scope: everything that the turn awaits is inside it.
        cause: why it was cancelled; the first cause stands (I3).
        keeps_inbox: no cancel asked to drop what is pending.
        store_error: the store failed while the turn was open (P19, P20).
        place: where the driver is, for people who wonder why it hangs (H6).
        open: the turn hasn't closed yet.
    """

    __slots__ = (
        "_host_cause",
        "_limit_cause",
        "_running_calls",
        "cause",
        "keeps_inbox",
        "open",
        "opened",
        "place",
        "scope",
        "store_error",
        "turn",
    )

    def __init__(
        self,
        turn: int,
        opened: int,
        running_calls: Mapping[CallId, Stoppable],
        host_cause: str = HOST_CANCELLED,
    ) -> None:
        self._running_calls = running_calls
        self.turn = turn
        self.opened = opened
        self.scope = trio.CancelScope()
        self.cause: str | None = None
        self.keeps_inbox = True
        self.store_error: StoreError | None = None
        self.place = "its beginning"
        self.open = True
        self._host_cause = host_cause
        self._limit_cause = ""

    def close(self) -> None:
        """The turn is about to close, and nothing can cancel it any more."""
        self.open = False

    def cancel(self, cause: str) -> None:
        """Cancel the turn; the first cause stands."""
        if self.cause is None:
            self.cause = self._limit_cause if self._is_over_time else cause
        self._end()

    def cancel_at(self, deadline: float, cause: str) -> None:
        """Cancel the turn at a time on Trio's clock; the earliest such time stands.

        Args:
            deadline: when; a time that is over cancels it now.
            cause: why, in a word; it becomes the turn's cause if none came before.
        """
        if deadline < self.scope.deadline:
            self._limit_cause = cause
            self.scope.deadline = deadline

    @property
    def cause_of_end(self) -> str:
        """Who or what cancelled the turn, once it is.

        Where the host did, an asker of its may have seen it first.
        """
        if self.cause in (None, ASKER_CANCELLED) and host_cancelled():
            return self._host_cause
        if self.cause is not None:
            return self.cause
        return self._limit_cause if self._is_over_time else self._host_cause

    @property
    def _is_over_time(self) -> bool:
        return self.scope.deadline <= trio.current_time()

    def fail_store(self, error: StoreError) -> None:
        """Cancel the turn because its log can't become durable."""
        self.store_error = self.store_error or error
        self._end()

    def _end(self) -> None:
        """Cancel the scope, and tell the calls in the same stretch.

        The cancel reaches a body that may finish only later, when the watch of its batch is woken;
        meanwhile it would go on calling tools (T9).
        """
        self.scope.cancel()
        for call in tuple(self._running_calls.values()):
            call.stop("aborted")

    @property
    def cancelled(self) -> bool:
        """Whether anybody asked for the end of the turn, here or in the host."""
        return self.scope.cancel_called or host_cancelled()


def host_cancelled() -> bool:
    """Whether what surrounds the current task's scopes has been cancelled, or is past its time."""
    return trio.current_effective_deadline() <= trio.current_time()


_turns: ContextVar[tuple[TurnSignal, ...]] = ContextVar("trioloop_turns", default=())


def enter(signal: TurnSignal) -> None:
    """Note that the current task works inside this turn, and whatever it starts, too."""
    _turns.set((*(one for one in _turns.get() if one.open), signal))


def is_inside(signal: TurnSignal | None) -> bool:
    """Whether the current task works inside this turn, so that waiting for it would never end."""
    return signal is not None and signal.open and signal in _turns.get()
