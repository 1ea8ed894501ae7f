"""Servers for tests of adapters: without a network, and on loopback."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias

import attrs
import httpx  # noqa: ASYNC127 - as in trioloop/models/transport.py
import trio

from trioloop.models.openai_chat import OpenAIChat

Piece: TypeAlias = bytes | float  # bytes of one network read, or seconds to wait
SSE = {"content-type": "text/event-stream"}
ANSWER = (
    b'data: {"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]}\n\n'
    b"data: [DONE]\n\n"
)
HALF = b'data: {"choices": [{"index": 0, "delta": {"content": "par"}}]}\n\n'


class Pieces(httpx.AsyncByteStream):
    """A body that comes piece by piece. `closed`: the client has closed it."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self.closed = False
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            if isinstance(piece, bytes):
                await trio.lowlevel.checkpoint()
                yield piece
            else:
                await trio.sleep(piece)

    async def aclose(self) -> None:
        self.closed = True


@attrs.define
class Mock:
    """A server without a network: answers each request with the next reply, the last one again."""

    replies: list[httpx.Response | Exception | float]
    requests: list[httpx.Request] = attrs.Factory(list)

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        reply = self.replies[min(len(self.requests), len(self.replies)) - 1]
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, httpx.Response):
            return reply
        await trio.sleep(reply)
        return streaming(ANSWER)


def streaming(*pieces: Piece) -> httpx.Response:
    """A good reply that streams."""
    return httpx.Response(200, headers=SSE, stream=Pieces(pieces))


def mocked(
    *replies: httpx.Response | Exception | float, **options: object
) -> tuple[OpenAIChat, Mock]:
    """A model behind a mock, and the mock."""
    mock = Mock(list(replies))
    model = OpenAIChat(
        "m",
        base_url="https://api.test/v1",
        http=httpx.MockTransport(mock),
        **options,  # type: ignore[arg-type]  # whatever a test wants to set
    )
    return model, mock


@attrs.define
class Loopback:
    """A server on loopback. `behave` is run for each connection.

    Attributes:
        port: where it listens.
        base_url: the same, as an adapter is given it.
        connections: how many it has accepted.
        heads: the heads of the requests that it was sent, in lower case.
        requests: their bodies.
        left: a client has left while the server was waiting for that.
    """

    port: int
    base_url: str
    connections: int = 0
    heads: list[bytes] = attrs.Factory(list)
    requests: list[bytes] = attrs.Factory(list)
    left: trio.Event = attrs.Factory(trio.Event)


class Connection:
    """One client's connection, as a `behave` function sees it."""

    def __init__(self, server: Loopback, stream: trio.SocketStream) -> None:
        self.number = server.connections
        self._server = server
        self._stream = stream
        self._buffer = b""

    async def request(self) -> bool:
        """Read a request; False where the client has left instead."""
        while b"\r\n\r\n" not in self._buffer:
            if not await self._more():
                return False
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        lengths = (
            line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
        )
        length = int(next(lengths).partition(b":")[2])
        while len(self._buffer) < length:
            if not await self._more():
                return False
        self._server.heads.append(head.lower())
        self._server.requests.append(self._buffer[:length])
        self._buffer = self._buffer[length:]
        return True

    async def head(self, *, status: bytes = b"200 OK") -> None:
        """Send the head of a reply that streams."""
        await self._stream.send_all(
            b"HTTP/1.1 " + status + b"\r\ncontent-type: text/event-stream\r\n"
            b"transfer-encoding: chunked\r\n\r\n"
        )

    async def part(self, data: bytes) -> None:
        """Send a part of the body."""
        await self._stream.send_all(b"%x\r\n%b\r\n" % (len(data), data))

    async def end(self) -> None:
        """Send the end of the body."""
        await self._stream.send_all(b"0\r\n\r\n")

    async def answer(self) -> None:
        """Send a whole reply."""
        await self.head()
        await self.part(ANSWER)
        await self.end()

    async def until_client_leaves(self) -> None:
        """Wait until the client closes its side."""
        while await self._more():
            pass
        self._server.left.set()

    async def _more(self) -> bool:
        try:
            data = await self._stream.receive_some()
        except trio.BrokenResourceError:
            return False
        self._buffer += data
        return bool(data)


Behaviour: TypeAlias = Callable[[Connection], Awaitable[None]]


@asynccontextmanager
async def loopback(behave: Behaviour, port: int = 0) -> AsyncIterator[Loopback]:
    """A server on loopback; leaving the block ends it and its connections."""

    async def serve(stream: trio.SocketStream) -> None:
        server.connections += 1
        async with stream:
            with suppress(trio.BrokenResourceError):  # the client has left
                await behave(Connection(server, stream))

    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(port, host="127.0.0.1")
        port = listeners[0].socket.getsockname()[1]
        server = Loopback(port, f"http://127.0.0.1:{port}/v1")
        nursery.start_soon(trio.serve_listeners, serve, listeners)  # noqa: ASYNC113
        yield server  # the listeners listen already, so clients may come at once
        nursery.cancel_scope.cancel()
