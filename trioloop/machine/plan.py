"""Which call of a batch may start, and which result may be recorded (T2 to T4).

Pure bookkeeping: it never waits and knows neither Trio nor tools. Calls are known by their index
in model order. Each goes, at its own pace, through

    waiting -> starting -> running -> ended -> recorded

and two ordered lanes cut across: calls leave `waiting` in order, one at a time is `starting`, and
they become `recorded` in order. What lies between the lanes overlaps, at most `limit` at once.
"""

from typing import Literal, TypeAlias

Mode: TypeAlias = Literal["concurrent", "barrier"]


class Plan:
    """The state of one batch of calls. Every operation costs O(1).

    Args:
        calls: how many there are.
        limit: how many may run at once.

    Attributes:
        calls: how many there are.
        head: the index of the next call to start; `calls` when none is left.
        recorded: how many results are recorded, which is the index of the next one to record.
    """

    __slots__ = ("_barrier", "_ended", "_held", "_limit", "_starting", "calls", "head", "recorded")

    def __init__(self, calls: int, limit: int) -> None:
        self.calls = calls
        self.head = 0
        self.recorded = 0
        self._limit = limit
        self._held = 0
        self._starting = -1
        self._barrier = False
        self._ended = bytearray(calls)

    @property
    def running(self) -> int:
        """How many calls hold a place."""
        return self._held

    @property
    def may_start(self) -> bool:
        """Whether the head may start as far as the others go; its mode decides the rest."""
        return (
            self._starting < 0
            and self._held < self._limit
            and not self._barrier
            and self.head < self.calls
        )

    @property
    def room(self) -> int:
        """How many calls might start now, one after the other, were they all concurrent."""
        return min(self._limit - self._held, self.calls - self.head) if self.may_start else 0

    def fits(self, mode: Mode | None) -> bool:
        """Whether a call of this mode, with everything before it, may go on now (T2).

        A barrier waits for the record of all earlier calls. None is the mode of a call without a
        body: it needs no place and holds nobody up.
        """
        if mode != "barrier":
            return True
        first = self.head if self._starting < 0 else self._starting
        return self.recorded == first

    def start(self, mode: Mode | None) -> int:
        """Let the head start: it may, and its mode fits. The next waits until it runs or has ended.

        Returns:
            Its index.
        """
        index = self.head
        self.head = index + 1
        self._starting = index
        self._barrier = mode == "barrier"
        return index

    def run(self, mode: Mode | None) -> None:
        """Give the starting call its place; the next one may start beside it, unless it's alone.

        Args:
            mode: its mode as it is now: what let it start may have changed its arguments.
        """
        self._starting = -1
        self._held += 1
        self._barrier = mode == "barrier"

    def end(self, index: int) -> None:
        """A call has come to its end, with or without having run."""
        assert not self._ended[index], "a call ended twice"
        self._ended[index] = 1
        if index == self._starting:
            self._starting = -1
        else:
            self._held -= 1

    @property
    def may_record(self) -> bool:
        """Whether the next result in order is there to be recorded."""
        return self.recorded < self.head and self._ended[self.recorded] == 1

    def record(self) -> int:
        """Count the next result in order, which may be recorded, as recorded.

        Returns:
            The index of its call.
        """
        index = self.recorded
        self.recorded = index + 1
        if self.recorded == self.head:
            self._barrier = False
        return index

    def skip(self) -> int:
        """Let the head end without a start: after a cancel nothing starts any more (T9).

        Returns:
            Its index.
        """
        index = self.head
        self.head = index + 1
        self._ended[index] = 1
        return index
