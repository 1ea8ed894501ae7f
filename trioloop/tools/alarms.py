"""The times of a batch: deadlines, periods of grace, warnings. One task keeps them all."""

import heapq
import itertools
from collections.abc import Callable

import trio


class Alarms:
    """Calls functions at their times, as long as somebody keeps it. Times are Trio's clock."""

    __slots__ = ("_counter", "_queue", "_scope")

    def __init__(self) -> None:
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._counter = itertools.count()  # equal times ring in the order in which they were set
        self._scope: trio.CancelScope | None = None

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Call `action` some seconds from now. An action that has lost its sense does nothing."""
        at = trio.current_time() + seconds
        heapq.heappush(self._queue, (at, next(self._counter), action))
        if self._scope is not None and at < self._scope.deadline:
            self._scope.deadline = at

    async def keep(self, done: trio.Event) -> None:
        """Ring until `done` is set. A checkpoint; may be called again after it was cancelled."""
        while not done.is_set():
            self._ring()
            with trio.CancelScope(deadline=self._next) as self._scope:
                await done.wait()

    @property
    def _next(self) -> float:
        return self._queue[0][0] if self._queue else float("inf")

    def _ring(self) -> None:
        while self._queue and self._queue[0][0] <= trio.current_time():
            heapq.heappop(self._queue)[2]()
