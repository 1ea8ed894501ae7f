"""One WebSocket connection, at either end. The only place that knows the WebSocket library.

The library's traps are dealt with here and in `passage`: it answers no ping and sees no close while
a message waits to be fetched, so whoever receives only hands over; a send that is cancelled leaves
half a frame on the wire, so such a connection is never used again; its close may wait for ever, so
closing is bounded.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio
from trio_websocket import (
    ConnectionClosed,
    ConnectionRejected,
    WebSocketConnection,
    wrap_client_stream,
    wrap_server_stream,
)
from wsproto.connection import ConnectionState
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from trioloop.control.address import Address
from trioloop.control.budget import Budget
from trioloop.control.door import upgrade_head
from trioloop.control.frames import FrameMeter, Refusal
from trioloop.control.limits import ControlLimits
from trioloop.control.passage import Passage
from trioloop.control.protocol import PATH
from trioloop.errors import TrioloopError

_RECEIVE_BYTES = 16_384
_REASON_BYTES_MAX = 123
_OPEN = ConnectionState.OPEN


class ConnectionEndedError(TrioloopError):
    """A connection is over. `close_code` is the one it was closed with; 1006: it was cut."""

    code = "CONNECTION_ENDED"

    def __init__(self, close_code: int, reason: str) -> None:
        super().__init__(f"the connection ended with {close_code}: {reason or 'no reason given'}")
        self.close_code = close_code
        self.reason = reason


class EndpointRefusedError(TrioloopError):
    """An endpoint let nobody in. `status` is its HTTP answer; 0: it gave none."""

    code = "ENDPOINT_REFUSED"

    def __init__(self, status: int) -> None:
        told = f"with {status}" if status else "without an answer"
        super().__init__(f"the endpoint refused the connection {told}: see its address and token")
        self.status = status


class Connection:
    """A WebSocket connection: messages in, messages out."""

    def __init__(self, socket: WebSocketConnection, passage: Passage, close_s: float) -> None:
        self._socket = socket
        self._passage = passage
        self._close_s = close_s
        self._torn = False
        self._closing = False
        passage.last_words = self._last_words

    async def send(self, message: str | bytes) -> None:
        """Send a message, text or binary. A checkpoint.

        Cancelled, the connection can't be used any more.

        Raises:
            ConnectionEndedError: it is over.
        """
        try:
            await self._socket.send_message(message)
        except (ConnectionClosed, LocalProtocolError):
            self._torn = True
            raise self._ended() from None
        except BaseException:  # whatever stopped it, half a frame may be on the wire
            self._torn = True
            await trio.aclose_forcefully(self._passage)
            raise

    async def receive(self) -> str | bytes:
        """The next message. A checkpoint.

        Raises:
            ConnectionEndedError: it is over.
        """
        try:
            return await self._socket.get_message()
        except ConnectionClosed:
            raise self._ended() from None

    async def ping(self) -> None:
        """Ask whether the peer is there, and wait for its answer. A checkpoint.

        Raises:
            ConnectionEndedError: it is over.
        """
        try:
            await self._socket.ping()
        except (ConnectionClosed, LocalProtocolError):
            raise self._ended() from None

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close in bounded time: with a handshake where that can be had. A checkpoint.

        Where half a frame is on the wire, or the peer doesn't answer, it is cut.
        """
        self._closing = True
        told = reason.encode()[:_REASON_BYTES_MAX].decode("utf-8", "ignore")
        try:
            if not self._torn:
                with trio.move_on_after(self._close_s) as patience:
                    self._passage.on_over = patience.cancel
                    if not self._passage.over:
                        await self._socket.aclose(code, told)
        except LocalProtocolError:
            pass  # the library was about to close it itself
        finally:
            await trio.aclose_forcefully(self._passage)

    def _last_words(self) -> bytes:
        """The close frame that the library leaves out where it cuts off a peer for bad framing."""
        closed = self._socket.closed
        # The library has no other way to tell whether the frame went out.
        if closed is None or self._closing or self._socket._wsproto.state is not _OPEN:
            return b""
        return b"\x88\x02" + int(closed.code).to_bytes(2, "big")

    def _ended(self) -> ConnectionEndedError:
        closed = self._socket.closed
        if closed is None:
            return ConnectionEndedError(1006, "")
        return ConnectionEndedError(int(closed.code), closed.reason or "")


@asynccontextmanager
async def accepted(
    stream: trio.abc.Stream,
    *,
    key: bytes,
    behind: bytes,
    limits: ControlLimits,
    on_refusal: Callable[[Refusal], None],
) -> AsyncIterator[Connection]:
    """A connection that a client asked for, for as long as the block is open.

    Args:
        stream: the client's, its request read and judged.
        key: the client's `Sec-WebSocket-Key`.
        behind: bytes that came behind the request.
        limits: what the client may send.
        on_refusal: told why it is cut off where it sends more; the caller then closes.
    """
    now = trio.current_time()
    meter = FrameMeter(
        limits.message_bytes_max,
        limits.fragments_max,
        Budget(limits.messages_burst_max, limits.messages_per_s_max, now),
        trio.current_time,
    )
    passage = Passage(
        stream,
        front=upgrade_head(key),
        behind=behind,
        meter=meter,
        on_refusal=on_refusal,
        linger_s=limits.close_s,
    )
    async with trio.open_nursery() as nursery:
        request = await wrap_server_stream(
            nursery,
            passage,
            message_queue_size=0,
            max_message_size=limits.message_bytes_max,
            receive_buffer_size=_RECEIVE_BYTES,
        )
        socket = await request.accept()
        passage.answered()
        try:
            yield Connection(socket, passage, limits.close_s)
        finally:
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def opened(
    address: Address,
    token: str,
    nursery: trio.Nursery,
    *,
    message_bytes_max: int,
    close_s: float,
    open_s: float,
) -> AsyncIterator[Connection]:
    """A connection to an endpoint, for as long as the block is open.

    Args:
        address: where it is.
        token: shown in the handshake.
        nursery: where the library reads; it should outlive what cancels the block, so that the
            closing handshake can be had.
        message_bytes_max: of one message that comes.
        close_s: how long closing may take.
        open_s: how long opening may take.

    Raises:
        EndpointRefusedError: it let us not in.
        OSError: it can't be reached.
        trio.TooSlowError: it didn't answer.
    """
    with trio.fail_after(open_s):
        passage = Passage(await address.connect())
        try:
            socket = await _handshake(nursery, passage, address, token, message_bytes_max)
        except BaseException:  # whatever it was, nobody else would close it
            await trio.aclose_forcefully(passage)
            raise
    connection = Connection(socket, passage, close_s)
    try:
        yield connection
    finally:
        with trio.CancelScope(shield=True):  # bounded by close_s
            await connection.close()


class _Reader:
    """Where the library starts its reader; what that raises ends nothing but the connection.

    Attributes:
        status: with which the endpoint refused us; 0: it didn't.
    """

    def __init__(self, nursery: trio.Nursery, passage: Passage) -> None:
        self.status = 0
        self._nursery = nursery
        self._passage = passage

    def start_soon(self, read: Callable[[], Awaitable[None]]) -> None:
        """Start it."""
        self._nursery.start_soon(self._read, read)

    async def _read(self, read: Callable[[], Awaitable[None]]) -> None:
        try:
            await read()
        except ConnectionRejected as rejected:
            self.status = rejected.status_code
        except (LocalProtocolError, RemoteProtocolError):
            pass  # the other side is no endpoint
        finally:
            self._passage.end()


async def _handshake(
    nursery: trio.Nursery,
    passage: Passage,
    address: Address,
    token: str,
    message_bytes_max: int,
) -> WebSocketConnection:
    """Shake hands; the library's own waits for ever where the other side goes away meanwhile."""
    reader = _Reader(nursery, passage)
    with trio.CancelScope() as waiting:
        passage.on_over = waiting.cancel
        return await wrap_client_stream(
            reader,  # type: ignore[arg-type] # it only starts a task there
            passage,  # type: ignore[arg-type] # it uses what any stream has
            address.authority,
            PATH,
            extra_headers=[(b"Authorization", b"Bearer " + token.encode())],
            message_queue_size=0,
            max_message_size=message_bytes_max,
            receive_buffer_size=_RECEIVE_BYTES,
        )
    raise EndpointRefusedError(reader.status)
