"""How live facts reach synchronous listeners and watchers (H5).

A watcher is a cursor into a ring of the last notifications; chunks are read from the attempt's own
frames, so that a slow watcher gets more at once.
"""

import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from itertools import chain
from typing import Any, TypeAlias

import attrs
import trio

from trioloop.agent.notifications import (
    Lagged,
    Notification,
    StreamChunks,
    StreamEnded,
    StreamStarted,
)
from trioloop.chunks import Frame
from trioloop.errors import InvalidInputError
from trioloop.hooks.dispatch import Registration
from trioloop.ids import SessionId

_log = logging.getLogger("trioloop.agent")

_KINDS = frozenset(cls.kind for cls in Notification.__subclasses__())

Listener: TypeAlias = Callable[[Any], object]  # each kind's listener takes its own class


@attrs.define(eq=False)
class _Stretch:
    """A place in the ring that stands for frames of an attempt, and grows as they come."""

    agent: SessionId
    frames: list[Frame]
    start: int
    end: int

    def chunks(self, start: int) -> StreamChunks:
        """What came from a frame on."""
        if start == self.end - 1:
            return StreamChunks(self.frames[start].chunks, agent=self.agent)
        frames = self.frames[start : self.end]
        chunks = chain.from_iterable([frame.chunks for frame in frames])
        return StreamChunks(tuple(chunks), agent=self.agent)


class Notifications:
    """The synchronous listeners of one agent, or runtime, and the ring that watchers read.

    Args:
        kept: notifications that the ring holds.
        wider: whose listeners hear everything, too: the runtime's.
    """

    __slots__ = (
        "_attempt",
        "_closed",
        "_first",
        "_kept",
        "_listeners",
        "_ring",
        "_waiting",
        "_watchers",
        "_wider",
    )

    def __init__(self, kept: int, wider: "Notifications | None" = None) -> None:
        self._kept = kept
        self._wider = wider
        self._listeners: tuple[tuple[str, Listener], ...] = ()
        self._watchers = 0
        self._ring: deque[Notification | _Stretch] | None = None  # kept only while somebody watches
        self._first = 0  # the place of the ring's first item since watching began
        self._waiting: trio.Event | None = None
        self._closed = False
        self._attempt: tuple[StreamStarted, list[Frame]] | None = None  # the one that runs

    @property
    def heard(self) -> bool:
        """Whether anybody would notice a notification."""
        return bool(
            self._watchers or self._listeners or (self._wider is not None and self._wider.heard)
        )

    def on(self, kind: str, listener: Listener) -> Registration:
        """Call `listener(notification)` for each notification of a kind; `*` is every kind.

        A listener is synchronous; one that raises is logged and breaks nothing.

        Raises:
            InvalidInputError: there is no such kind.
        """
        if kind != "*" and kind not in _KINDS:
            raise InvalidInputError(f"no notification is called {kind!r}: {sorted(_KINDS)}")
        entry = (kind, listener)
        self._listeners = (*self._listeners, entry)

        def remove() -> None:
            self._listeners = tuple(kept for kept in self._listeners if kept is not entry)

        return Registration(remove)

    def send(self, notification: Notification) -> None:
        """Tell listeners and watchers."""
        if self._wider is not None:
            self._wider.send(notification)
        if self._listeners:
            self._tell(notification)
        if self._ring is not None:
            self._keep(self._ring, notification)

    def begin_attempt(self, started: StreamStarted, frames: list[Frame]) -> None:
        """Tell that an attempt begins; its frames will be in a list that grows."""
        self._attempt = (started, frames)
        self.send(started)

    def end_attempt(self, ended: StreamEnded) -> None:
        """Tell that the attempt is in the log."""
        self._attempt = None
        self.send(ended)

    def send_frames(self, agent: SessionId, frames: list[Frame], start: int) -> None:
        """Tell of an attempt's frames from `start` on; the list goes on growing."""
        if self._wider is not None:
            self._wider.send_frames(agent, frames, start)
        if self._listeners:
            self._tell(_Stretch(agent, frames, start, len(frames)).chunks(start))
        if self._ring is None:
            return
        last = self._ring[-1] if self._ring else None
        if isinstance(last, _Stretch) and last.frames is frames:
            last.end = len(frames)
            self._wake()
        else:
            self._keep(self._ring, _Stretch(agent, frames, start, len(frames)))

    def close(self) -> None:
        """Nothing more will be told: watchers end once they have read what is kept."""
        self._closed = True
        self._wake()

    def _tell(self, notification: Notification) -> None:
        for kind, listener in self._listeners:
            if kind in (notification.kind, "*"):
                try:
                    listener(notification)
                except (Exception, trio.Cancelled):  # noqa: ASYNC103 - it awaits nothing
                    _log.exception("a listener of %r raised", notification.kind)

    def _keep(self, ring: deque[Notification | _Stretch], item: Notification | _Stretch) -> None:
        if len(ring) == self._kept:
            ring.popleft()
            self._first += 1
        ring.append(item)
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.set()

    def _growth(self) -> trio.Event:
        """What is set when more has been told, or nothing more will be."""
        if self._waiting is None:
            self._waiting = trio.Event()
        return self._waiting

    def watch(self, *, whole_attempt: bool = False) -> "Watch":
        """A context manager that gives an iterator over the notifications from now on.

        Args:
            whole_attempt: begin with what the running attempt, if any, has streamed so far.
        """
        return Watch(self, whole_attempt=whole_attempt)


class Watch(AsyncIterator[Notification]):
    """`async with agent.watch() as feed: async for notification in feed: ...`

    Reading is a checkpoint. A reader that lags gets one `Lagged`, then goes on with what is kept.
    """

    def __init__(self, source: Notifications, *, whole_attempt: bool = False) -> None:
        self._source = source
        self._whole_attempt = whole_attempt
        self._before: list[Notification] = []  # what is told first, the last one first
        self._place = -1
        self._frame = 0

    async def __aenter__(self) -> "Watch":
        source = self._source
        if source._ring is None:
            source._ring = deque()
        source._watchers += 1
        self._place = source._first + len(source._ring)
        if source._ring and isinstance(source._ring[-1], _Stretch):  # it may still grow
            self._place -= 1
            self._frame = source._ring[-1].end
        if self._whole_attempt and source._attempt is not None:
            started, frames = source._attempt
            so_far = _Stretch(started.agent, frames, 0, len(frames))
            self._before = [*([so_far.chunks(0)] if frames else []), started]
        return self

    async def __aexit__(self, *_: object) -> None:
        source = self._source
        source._watchers -= 1
        if source._watchers == 0:
            source._ring = None
            source._first = 0

    async def __anext__(self) -> Notification:
        waited = False
        while (found := self._before.pop() if self._before else self._next()) is None:
            if self._source._closed:
                await trio.lowlevel.checkpoint()
                raise StopAsyncIteration
            await self._source._growth().wait()
            waited = True
        if waited:
            return found
        self._before.append(found)  # so that a cancel loses nothing
        await trio.lowlevel.checkpoint()
        return self._before.pop()

    def _next(self) -> Notification | None:
        ring = self._source._ring
        if ring is None:
            raise InvalidInputError("a watch is read inside its `async with` block")
        while (offset := self._place - self._source._first) < len(ring):
            if offset < 0:
                return self._catch_up()
            item = ring[offset]
            if not isinstance(item, _Stretch):
                self._place += 1
                return item
            start, self._frame = max(self._frame, item.start), item.end
            if start < item.end:
                return item.chunks(start)
            if offset == len(ring) - 1:  # the last stretch may still grow
                return None
            self._place += 1
            self._frame = 0
        return None

    def _catch_up(self) -> Lagged:
        missed = self._source._first - self._place
        self._place = self._source._first
        self._frame = 0
        return Lagged(missed)
