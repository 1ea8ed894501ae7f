"""What the pool drives: anything that has these methods is a call to it."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

import trio

from trioloop.machine.plan import Mode
from trioloop.tools.places import Place

Watch: TypeAlias = Callable[[trio.Event], Awaitable[None]]


class CallScope:
    """Cancels one call alone.

    Attributes:
        cancelled: whether it has.
    """

    __slots__ = ("_scope", "cancelled")

    def __init__(self, scope: trio.CancelScope) -> None:
        self._scope = scope
        self.cancelled = False

    def cancel(self) -> None:
        """Cancel the call. Doing it again does nothing."""
        self.cancelled = True
        self._scope.cancel()


class Job(Protocol):
    """One call, as the pool drives it. Methods without `async` are one synchronous stretch.

    An exception out of `admit` or `run` is the call's; one out of any other method is a fault that
    stops the pool.
    """

    def mode(self) -> Mode | None:
        """Its mode, read when it is about to start (T1). None: it needs no body and no place."""
        ...

    def start(self, scope: CallScope | None) -> bool:
        """It starts. `scope` cancels it alone; there is one where the pool has a `watch`.

        Returns:
            Whether `admit` has to be awaited first.
        """
        ...

    async def admit(self) -> bool:
        """Ask whether it may run. Without a place, one call at a time, in order."""
        ...

    async def run(self, fence: trio.CancelScope, place: Place | None) -> None:
        """Run its body, in a place and inside its fence."""
        ...

    def end(self, error: BaseException | None) -> BaseException | None:
        """It has ended, by what its coroutine raised, if anything. Outside its fence.

        Returns:
            What has to stop the pool and go up; None: go on.
        """
        ...

    def skip(self) -> None:
        """It never started, and won't."""
        ...

    @property
    def waits_for_policy(self) -> bool:
        """Whether `post` has to be awaited before `record`."""
        ...

    async def post(self) -> BaseException | None:
        """Ask what becomes of its result. Ends in bounded time even when cancelled.

        Returns:
            What has to stop the pool and go up; None: go on.
        """
        ...

    def record(self) -> None:
        """Record its result."""
        ...
