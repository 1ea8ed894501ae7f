"""Names what blocks Trio's thread: a body, a listener or an adapter that sleeps or computes there.

While it does, nothing else in the program goes on, deadlines and cancels included, so only another
thread can tell. That thread calls on Trio's now and then, and waits for an answer before it calls
again. An instrument could count the loop's rounds instead, but each of them would be dearer for it:
a stream of small reads by a third.
"""

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import trio

from trioloop.hooks.dispatch import listener_in
from trioloop.limits import Limits
from trioloop.tools.body import body_in

_log = logging.getLogger("trioloop.runtime")


@contextmanager
def watching(limits: Limits) -> Iterator[None]:
    """Watch this thread while the block is open; several blocks in one Trio run share a watchdog.

    Args:
        limits: `block_warning_s` tells after how long a block is named in `logging`, and
            `stuck_warning_s` how often from then on.
    """
    if limits.block_warning_s is None:
        yield
        return
    watchdog = _current.get(None)
    if watchdog is None:
        watchdog = _Watchdog(limits.block_warning_s, limits.stuck_warning_s)
        watchdog.start()
        _current.set(watchdog)
    watchdog.users += 1
    try:
        yield
    finally:
        watchdog.users -= 1
        if not watchdog.users:
            _current.set(None)
            watchdog.stop()


class _Watchdog:
    """A thread that watches the one that it was made in."""

    def __init__(self, first_s: float, again_s: float) -> None:
        self.users = 0
        self._first_s = first_s
        self._again_s = again_s
        self._answered = True
        self._token = trio.lowlevel.current_trio_token()
        self._watched = threading.get_ident()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="trioloop watchdog", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread. It does nothing but wait for this, so joining it is a moment."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        called = due = 0.0
        while not self._over.wait(self._first_s / 4):
            now = time.monotonic()
            if self._answered:
                called, due = now, now + self._first_s
                self._call()
            elif now >= due:
                due = now + self._again_s
                self._name(now - called)

    def _call(self) -> None:
        self._answered = False
        try:
            self._token.run_sync_soon(self._answer)
        except trio.RunFinishedError:  # it crashed, and nothing is left to be watched
            self._over.set()

    def _answer(self) -> None:
        self._answered = True

    def _name(self, seconds: float) -> None:
        frame = sys._current_frames().get(self._watched)
        if frame is not None:
            _log.warning(
                "Trio's thread has been blocked for %.1f s: nothing else goes on. %s", seconds,
                _described(frame),
            )  # fmt: skip


_current = trio.lowlevel.RunVar[_Watchdog | None]("trioloop.runtime.watchdog")


def _described(frame: FrameType) -> str:
    """Who it is that blocks, as far as we called it, and where in the code it is."""
    code = frame.f_code
    where = f"{code.co_filename}:{frame.f_lineno}, in {code.co_qualname}"
    outer: FrameType | None = frame
    while outer is not None:
        who = body_in(outer) or listener_in(outer)
        if who is not None:
            return f"It is {who}, at {where}"
        outer = outer.f_back
    return f"It is at {where}"
