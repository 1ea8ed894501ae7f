"""The stream between a socket and the WebSocket library: what passes is looked at on its way.

The library never knows. It is shown a clean request head first, and none of the bytes that the
meter refuses.
"""

from collections.abc import Callable

import trio

from trioloop.control.frames import FrameMeter, Refusal

_READ_BYTES = 65_536


class Passage(trio.abc.Stream):
    """A stream with bytes of ours in front, and a meter on what comes in.

    Args:
        stream: the socket's, or TLS over it.
        front: shown before anything that is received, not metered.
        behind: what was received already; metered.
        meter: looks at what comes; None: nobody does.
        on_refusal: told once why the peer is cut off. From then on bytes are thrown away.
        linger_s: how long closing waits for the peer, so that our last words arrive.

    Attributes:
        over: nothing more can come.
        on_over: told once when that is so.
        last_words: asked for what is sent before closing.
    """

    def __init__(
        self,
        stream: trio.abc.Stream,
        *,
        front: bytes = b"",
        behind: bytes = b"",
        meter: FrameMeter | None = None,
        on_refusal: Callable[[Refusal], None] = lambda refusal: None,
        linger_s: float = 0,
    ) -> None:
        self.over = False
        self.on_over: Callable[[], None] = lambda: None
        self.last_words: Callable[[], bytes] = bytes
        self._stream = stream
        self._front = front
        self._answered = trio.Event()
        if not front:
            self._answered.set()
        self._behind = behind
        self._meter = meter
        self._on_refusal = on_refusal
        self._linger_s = linger_s
        self._closing = False

    def answered(self) -> None:
        """The library has answered the request in front; what came behind it may pass. Synchronous.

        Before that it would put those bytes away and forget them until more come.
        """
        self._answered.set()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """What came, as far as it may pass. A checkpoint."""
        if self._front:
            front, self._front = self._front, b""
            await trio.lowlevel.checkpoint()
            return front
        await self._answered.wait()
        data, self._behind = self._behind, b""
        data = data or await self._received()
        refusal = self._meter.see(data) if self._meter is not None and data else None
        if refusal is not None:
            self._on_refusal(refusal)
            while data:
                data = await self._received()
        return data

    async def _received(self) -> bytes:
        try:
            data = await self._stream.receive_some(_READ_BYTES)
        except BaseException:  # whatever it is, nothing more comes
            self.end()
            raise
        if not data:
            self.end()
        return bytes(data)

    def end(self) -> None:
        """Nothing more can come. Synchronous."""
        if not self.over:
            self.over = True
            self.on_over()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send. A checkpoint; cancelled, part of it may have been sent.

        Raises:
            trio.ClosedResourceError: it is being closed; our last words are the last.
            trio.BrokenResourceError: the peer is gone.
        """
        if self._closing:
            raise trio.ClosedResourceError
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until sending may go on. A checkpoint."""
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        """Close so that what was sent last arrives, where the peer lets us. A checkpoint.

        A socket that is closed with bytes unread is reset, which takes our last words with it.
        """
        self._closing = True
        try:
            with trio.move_on_after(self._linger_s):
                await self._stream.send_all(self.last_words())
                if isinstance(self._stream, trio.abc.HalfCloseableStream):
                    await self._stream.send_eof()
                while await self._stream.receive_some(_READ_BYTES):
                    pass
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError):
            pass  # the peer is gone, or the library's reader does the same
        finally:
            self.end()
            await trio.aclose_forcefully(self._stream)
