"""The one way out of a dialogue: a channel without a buffer, and one writer behind it.

Whoever has something to say waits until the writer takes it. So a slow reader makes cursors stand
still, lets live chunks gather in their own attempt, and queues nothing (G11).
"""

from collections.abc import Awaitable, Callable

import attrs
import trio

from trioloop.ids import SessionId

Send = Callable[[str], Awaitable[None]]


@attrs.frozen
class Cursor:
    """The last event of a session that a client was sent."""

    agent: SessionId
    seq: int

    def __str__(self) -> str:
        return f"resume {self.agent} after {self.seq}"


class TooSlowError(Exception):
    """The reader took too long for one frame. `cursor` is where to resume; None: anywhere."""

    def __init__(self, cursor: Cursor | None) -> None:
        super().__init__(cursor)
        self.cursor = cursor


class Voice:
    """What is said in one dialogue, one frame after the other."""

    def __init__(self) -> None:
        self._in, self._out = trio.open_memory_channel[tuple[str, Cursor | None]](0)
        self._sent: Cursor | None = None
        self._listening = trio.CancelScope()
        self._sending: trio.CancelScope | None = None

    async def say(self, text: str, cursor: Cursor | None = None) -> None:
        """Hand a frame to the writer, when it has time. A checkpoint.

        Args:
            text: the frame.
            cursor: where the client may resume once it has it.
        """
        await self._in.send((text, cursor))

    async def write(self, send: Send, *, send_s: float, close_s: float) -> None:
        """Send what is said, until `hush`.

        A frame that is under way is made whole, for half a frame would spoil the words that end a
        dialogue; only `cut`, or time, stops it.

        Args:
            send: sends one frame.
            send_s: how long a frame may take.
            close_s: how much longer one that is late may take to be whole.

        Raises:
            TooSlowError: a frame took longer.
        """
        with self._listening:
            async for text, cursor in self._out:
                began = trio.current_time()
                # Bounded by send_s and close_s; whoever ends a dialogue may cut it sooner.
                with trio.move_on_after(send_s + close_s, shield=True) as self._sending:
                    await send(text)
                    self._sent = cursor or self._sent
                if trio.current_time() - began > send_s:
                    raise TooSlowError(self._sent)

    def hush(self) -> None:
        """Nothing more is said after the frame that is under way. Synchronous."""
        self._listening.cancel()

    def cut(self) -> None:
        """Not even that frame is finished. Synchronous."""
        self.hush()
        if self._sending is not None:
            self._sending.cancel()
