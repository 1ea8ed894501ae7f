"""Naming what keeps cancelled turns from closing (H6)."""

import logging
from collections import deque

import attrs
import trio

from trioloop.agent.signal import TurnSignal
from trioloop.ids import SessionId
from trioloop.limits import Limits

_log = logging.getLogger("trioloop.agent")


@attrs.frozen(eq=False)
class _Cancelled:
    """A turn that was cancelled, and when it is named if it hasn't closed by then."""

    agent: SessionId
    signal: TurnSignal
    began: float
    due: float


class StuckTurns:
    """The cancelled turns of a runtime's agents, each named again and again until it has closed.

    Args:
        limits: `stuck_warning_s` is used.
    """

    def __init__(self, limits: Limits) -> None:
        self._every_s = limits.stuck_warning_s
        self._turns: deque[_Cancelled] = deque()  # who is due first stands first
        self._came: trio.Event | None = None  # made while there are none
        # It goes on while a cancelled host waits for its agents; `close` ends it.
        self._scope = trio.CancelScope(shield=True)

    def watch(self, agent: SessionId, signal: TurnSignal) -> None:
        """A turn was cancelled just now."""
        now = trio.current_time()
        self._turns.append(_Cancelled(agent, signal, now, now + self._every_s))
        came, self._came = self._came, None
        if came is not None:
            came.set()

    async def name_them(self) -> None:
        """Log where each of them still is, every `stuck_warning_s`. A service; ends when closed."""
        with self._scope:
            while True:
                while not self._turns:
                    self._came = trio.Event()
                    await self._came.wait()
                await trio.sleep_until(self._turns[0].due)
                self._name(self._turns.popleft())

    def _name(self, turn: _Cancelled) -> None:
        if not turn.signal.open:
            return
        _log.warning(
            "turn %d of %r was cancelled %.0f s ago and is still in %s",
            turn.signal.turn,
            turn.agent,
            turn.due - turn.began,
            turn.signal.place,
        )
        self._turns.append(attrs.evolve(turn, due=turn.due + self._every_s))

    def close(self) -> None:
        """No agent works any more."""
        self._scope.cancel()
