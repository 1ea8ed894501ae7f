"""How long leaving may still take once work has ended: one `close_s` for all of it (P18, R9).

Flushing sessions, the store's writer, unlocking the store and closing the models' connections share
that time, so that a store which hangs holds nobody up more than once.
"""

import trio

from trioloop.limits import Limits

_FLUSHING = 0.9  # the rest of close_s is kept for unlocking the store and closing connections


class Closing:
    """The time that is left behind the last work of an agent, or of all agents of a runtime.

    Args:
        limits: `close_s` is used.
        wider: the runtime's, which begins anew whenever an agent's does.
    """

    __slots__ = ("_began", "_close_s", "_wider")

    def __init__(self, limits: Limits, wider: "Closing | None" = None) -> None:
        self._close_s = limits.close_s
        self._wider = wider
        self._began: float | None = None

    def begin(self) -> None:
        """Work has ended just now; ended again later, the time begins anew."""
        self._began = trio.current_time()
        if self._wider is not None:
            self._wider.begin()

    @property
    def flushed_by(self) -> float:
        """When what was appended must be durable, or is given up."""
        return self._start + _FLUSHING * self._close_s

    @property
    def closed_by(self) -> float:
        """When the store must be unlocked and connections closed."""
        return self._start + self._close_s

    @property
    def _start(self) -> float:
        return trio.current_time() if self._began is None else self._began
