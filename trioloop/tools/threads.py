"""Threads for synchronous bodies, which can't be cancelled, only abandoned (T13)."""

import functools
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import attrs
import trio

from trioloop.limits import Limits

ResultT = TypeVar("ResultT")

_log = logging.getLogger("trioloop.tools")


@attrs.define(eq=False)
class _Thread:
    """One thread at work, which borrows a token of the limiter."""

    name: str
    abandoned_at: float = 0.0
    ended: bool = False
    replaced: bool = False


class ToolThreads:
    """The threads of a runtime's synchronous tools, with a limiter of their own kind.

    They never compete with the threads that write logs. The token of an abandoned thread is
    replaced, up to `strays_max`, so that one that hangs doesn't keep others from running.
    """

    __slots__ = ("_limiter", "_limits", "_strayed", "_strays")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._limiter = trio.CapacityLimiter(limits.tool_threads_max)
        self._strays: list[_Thread] = []
        self._strayed = trio.Event()

    @property
    def strays(self) -> tuple[str, ...]:
        """The names of abandoned threads that still run."""
        return tuple(thread.name for thread in self._strays)

    async def run(
        self, name: str, work: Callable[[], ResultT], begin: Callable[[], None]
    ) -> ResultT:
        """Run `work` in a thread, once there is a token for it.

        A checkpoint. Cancelled while it waits for the token, nothing has run; later, the thread is
        abandoned.

        Args:
            name: for people who wonder what a thread does.
            work: what runs there.
            begin: called just before; what it shields isn't cancelled.

        Raises:
            Exception: what `work` raised.
        """
        thread = _Thread(name)
        await self._limiter.acquire_on_behalf_of(thread)
        try:
            begin()
            return await trio.to_thread.run_sync(
                functools.partial(self._inside, thread, work, trio.lowlevel.current_trio_token()),
                thread_name=f"tool {name}",
                abandon_on_cancel=True,
                limiter=trio.CapacityLimiter(1),  # the token is ours already
            )
        finally:
            if thread.ended:
                self._limiter.release_on_behalf_of(thread)
            else:
                self._abandon(thread)

    def _inside(
        self, thread: _Thread, work: Callable[[], ResultT], token: trio.lowlevel.TrioToken
    ) -> ResultT:
        """The thread's own function."""
        try:
            return work()
        finally:
            thread.ended = True
            with suppress(trio.RunFinishedError):  # left behind by a whole program: nobody counts
                token.run_sync_soon(self._see_end, thread)

    def _abandon(self, thread: _Thread) -> None:
        thread.abandoned_at = trio.current_time()
        thread.replaced = len(self._strays) < self._limits.strays_max
        if thread.replaced:
            self._limiter.total_tokens += 1
        self._strays.append(thread)
        self._strayed.set()
        _log.warning("the thread of %s was abandoned and may still run", thread.name)

    def _see_end(self, thread: _Thread) -> None:
        if thread not in self._strays:
            return
        self._strays.remove(thread)
        self._limiter.release_on_behalf_of(thread)
        if thread.replaced:
            self._limiter.total_tokens -= 1
        _log.warning("the abandoned thread of %s has ended", thread.name)

    async def name_strays(self) -> None:
        """Name abandoned threads in `logging`, every `stuck_warning_s` until they end.

        A service task: it runs until it is cancelled, and sleeps while there are none.
        """
        while True:
            await self._strayed.wait()
            await trio.sleep(self._limits.stuck_warning_s)
            for thread in self._strays:
                age = trio.current_time() - thread.abandoned_at
                _log.warning("the thread of %s runs on, abandoned %.0f s ago", thread.name, age)
            if not self._strays:
                self._strayed = trio.Event()
