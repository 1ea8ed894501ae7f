"""One HTTP exchange with a model's server: the only room that knows the HTTP client.

What is promised: a bounded number of connections, with a queue of our own in front of the client's
pool, which leaks the places of queued requests that are cancelled; a deadline on every wait, named
when it fires; no more bytes than allowed; leaving an exchange closes it at once. No error holds a
header or a key, and the client's own errors, which hold the request, are not chained.
"""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import cache
from types import TracebackType
from typing import TypeAlias, TypeVar
from urllib.parse import urlsplit

import httpx  # noqa: ASYNC127 - `import httpx2 as httpx` would do as well
import trio

from trioloop.errors import ModelFailure
from trioloop.models.address import checked_headers, checked_host
from trioloop.models.deadlines import ConnectionLimits, Deadlines
from trioloop.models.request_body import RequestBody

T = TypeVar("T")
HttpTransport: TypeAlias = httpx.AsyncBaseTransport

_DRAIN_S = 0.1  # how long the end of a body is waited for, so that its connection can be used again
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_KEEP_ALIVE_S = 60  # a tool may take its time between two requests
_CLOSE_S = 1  # how long a retired pool may take to close
_LEFTOVER_READS_MAX = 100  # more than one network read can leave in the client's buffers


class Transport:
    """The way to one server. Connections are opened when they are needed, and kept.

    Args:
        base_url: where the API's paths begin.
        headers: sent with each request.
        deadlines: how long the server may take.
        limits: what its connections may use.
        http: an HTTP transport to use instead of the network, for tests.

    Raises:
        InvalidInputError: the address or a header can't be used.
    """

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str],
        deadlines: Deadlines,
        limits: ConnectionLimits,
        http: HttpTransport | None = None,
    ) -> None:
        self.host = checked_host(base_url)
        self.deadlines = deadlines
        self.limits = limits
        self._base_url = base_url.rstrip("/")
        self._headers = checked_headers(headers)
        self._http = http
        self._pool: _Pool | None = None

    def post(self, path: str, body: RequestBody) -> "Exchange":
        """Send a JSON body to a path: a context manager over the reply."""
        return Exchange(self, f"{self._base_url}{path}", body)

    async def aclose(self) -> None:
        """Close the connections that are kept; exchanges under way end first. Checkpoint.

        The transport may be used again: it opens new connections then.
        """
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.retire()
        await trio.lowlevel.checkpoint()

    async def borrow(self) -> "_Pool":
        """The connections of this Trio run, to be given back with `release`."""
        token = trio.lowlevel.current_trio_token()
        before, pool = self._pool, self._pool
        if pool is None or pool.token is not token:
            pool = self._pool = _Pool(token, self._client, self.limits.connections_max)
        pool.users += 1
        if before is not None and before is not pool:
            await before.retire()  # its run is over, so its connections are of no use
        return pool

    def _client(self, keep_alive_max: int | None) -> httpx.AsyncClient:
        address = urlsplit(self._base_url)
        return httpx.AsyncClient(
            headers=self._headers,
            verify=_ssl_context(address.scheme),
            timeout=httpx.Timeout(None, connect=self.deadlines.connect_s),
            limits=httpx.Limits(
                max_keepalive_connections=keep_alive_max, keepalive_expiry=_KEEP_ALIVE_S
            ),
            transport=self._http,
            trust_env=address.hostname not in _LOOPBACK,  # which no proxy reaches
        )


@cache
def _ssl_context(scheme: str) -> ssl.SSLContext:
    """One for all connections: reading the trusted certificates takes a tenth of a second."""
    secure = scheme == "https"
    return httpx.create_ssl_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class _Pool:
    """The connections of one Trio run, and the queue in front of them."""

    def __init__(
        self,
        token: trio.lowlevel.TrioToken,
        make_client: Callable[[int | None], httpx.AsyncClient],
        connections_max: int,
    ) -> None:
        self.token = token
        self.places = trio.CapacityLimiter(connections_max)
        self.users = 0
        self.client = make_client(None)
        self._make_client = make_client
        self._fresh: httpx.AsyncClient | None = None
        self._retired = False

    @property
    def fresh(self) -> httpx.AsyncClient:
        """A client that opens a new connection for each request."""
        if self._fresh is None:
            self._fresh = self._make_client(0)
        return self._fresh

    async def release(self) -> None:
        """Give it back; the last one out of a retired pool closes it."""
        self.users -= 1
        if self._retired and not self.users:
            await self._close()

    async def retire(self) -> None:
        """Close it, at once or when nobody uses it any more."""
        self._retired = True
        if not self.users:
            with trio.move_on_after(_CLOSE_S, shield=True):  # so that no socket is left open
                await self._close()

    async def _close(self) -> None:
        for client in (self.client, self._fresh):
            if client is not None:
                await client.aclose()


class Exchange:
    """A request and its reply, as an async context manager; made by `Transport.post`.

    Entering sends the request, and once more on a fresh connection where the server had closed a
    kept one before a byte of the answer came. Both are checkpoints.

    Raises:
        ModelFailure: TIMEOUT or TRANSPORT.
    """

    def __init__(self, transport: Transport, url: str, body: RequestBody) -> None:
        self._transport = transport
        self._url = url
        self._body = body
        self._pool: _Pool | None = None
        self._reply: Reply | None = None

    async def __aenter__(self) -> "Reply":
        clock = _Clock(self._transport)
        self._pool = await self._transport.borrow()
        try:
            place = self._pool.places.acquire_on_behalf_of(self)
            await clock.before({"total_s": clock.total_at}, place)
            try:
                response = await self._send(self._pool, clock)
            except BaseException:  # cancelled or failed: the place is free again either way
                self._pool.places.release_on_behalf_of(self)
                raise
        except BaseException:
            with trio.move_on_after(_CLOSE_S, shield=True):  # so that no socket is left open
                await self._pool.release()
            raise
        self._reply = Reply(response, clock, self._transport.limits)
        return self._reply

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._reply is not None
        assert self._pool is not None
        try:
            if kind is None:
                await self._reply.drain()  # noqa: ASYNC102 - bounded, and may be cancelled
        finally:
            with trio.move_on_after(_CLOSE_S, shield=True):  # so that no socket is left open
                await self._reply.aclose()
            self._pool.places.release_on_behalf_of(self)
            with trio.move_on_after(_CLOSE_S, shield=True):
                await self._pool.release()

    async def _send(self, pool: _Pool, clock: "_Clock") -> httpx.Response:
        trace = _Trace()
        try:
            return await self._send_with(pool.client, clock, trace)
        except httpx.HTTPError as error:
            closed = isinstance(error, httpx.RemoteProtocolError | httpx.NetworkError)
            if not (closed and trace.reused):
                raise clock.failure(error) from None
        try:
            return await self._send_with(pool.fresh, clock, trace)
        except httpx.HTTPError as error:
            raise clock.failure(error) from None

    async def _send_with(
        self, client: httpx.AsyncClient, clock: "_Clock", trace: "_Trace"
    ) -> httpx.Response:
        stream = _Body(self._body)
        length = {"Content-Length": str(len(self._body))}
        request = client.build_request(
            "POST", self._url, headers=length, content=stream, extensions={"trace": trace}
        )
        request.stream = stream
        ends = {
            "first_byte_s": trio.current_time() + clock.deadlines.first_byte_s,
            "total_s": clock.total_at,
        }
        return await clock.before(ends, client.send(request, stream=True))


class _Body(httpx.AsyncByteStream):
    """A request's body. The client's own is a generator, which a cancel would leave half-read."""

    def __init__(self, body: RequestBody) -> None:
        self._left = list(reversed(body.pieces))

    def __aiter__(self) -> "_Body":
        return self

    async def __anext__(self) -> bytes:
        if not self._left:
            raise StopAsyncIteration
        return self._left.pop()


class _Trace:
    """Tells whether a request went out on a connection that an earlier one had opened."""

    def __init__(self) -> None:
        self._connected = False
        self._sent = False

    async def __call__(self, event: str, info: object) -> None:
        self._connected = self._connected or event.startswith("connection.connect_")
        self._sent = self._sent or event.endswith(".send_request_headers.started")

    @property
    def reused(self) -> bool:
        return self._sent and not self._connected


class _Clock:
    """The deadlines of one exchange, and its failures."""

    def __init__(self, transport: Transport) -> None:
        self.deadlines = transport.deadlines
        self.total_at = trio.current_time() + self.deadlines.total_s
        self._host = transport.host

    async def before(self, ends: Mapping[str, float], waiting: Awaitable[T]) -> T:
        """Wait, at most until the first of these deadlines."""
        first = min(ends, key=lambda name: ends[name])
        with trio.CancelScope(deadline=ends[first]):
            return await waiting
        raise self.late(first)

    def late(self, name: str) -> ModelFailure:
        """The failure of a deadline that fired."""
        seconds = getattr(self.deadlines, name)
        return ModelFailure(
            "TIMEOUT", f"{self._host} {_LATE[name]} within {seconds:g} s (deadline {name})"
        )

    def failure(self, error: httpx.HTTPError) -> ModelFailure:
        """What an error of the client means, without the request that it holds."""
        if isinstance(error, httpx.ConnectTimeout):
            return self.late("connect_s")
        if isinstance(error, httpx.LocalProtocolError):
            return ModelFailure("INVALID_REQUEST", "the request is no valid HTTP")
        if isinstance(error, httpx.DecodingError):
            return ModelFailure("MALFORMED_RESPONSE", f"{self._host}: {error}")
        what = "can't be reached" if isinstance(error, httpx.ConnectError) else "broke off"
        return ModelFailure("TRANSPORT", f"{self._host} {what}: {str(error) or type(error)!r}")


_LATE = {
    "connect_s": "didn't accept a connection",
    "first_byte_s": "didn't begin its answer",
    "idle_bytes_s": "sent nothing",
    "idle_progress_s": "sent no part of the answer",
    "total_s": "didn't finish",
}


class Reply:
    """The reply of an exchange.

    Attributes:
        status: the HTTP status.
        headers: its headers; names in any case.
    """

    def __init__(self, response: httpx.Response, clock: _Clock, limits: ConnectionLimits) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._response = response
        self._parts: AsyncIterator[bytes] = response.aiter_bytes()
        self._clock = clock
        self._limits = limits
        self._bytes = 0
        self._progress_at = trio.current_time()
        self._is_whole = False

    def progressed(self) -> None:
        """What was read last held a part of the answer."""
        self._progress_at = trio.current_time()

    def mark_whole(self) -> None:
        """What was read holds the whole answer: nothing but the end of the body may follow."""
        self._is_whole = True

    async def read(self, *, idle_s: float | None = None) -> bytes | None:
        """The bytes of one network read; None at the end.

        Args:
            idle_s: how long to wait at most, where that is less than the deadlines say.

        Raises:
            ModelFailure: TIMEOUT, TRANSPORT, or MALFORMED_RESPONSE: there are too many bytes.
        """
        now, deadlines = trio.current_time(), self._clock.deadlines
        ends = {
            "idle_bytes_s": now + min(deadlines.idle_bytes_s, idle_s or deadlines.idle_bytes_s),
            "idle_progress_s": self._progress_at + deadlines.idle_progress_s,
            "total_s": self._clock.total_at,
        }
        try:
            data = await self._clock.before(ends, anext(self._parts, None))
        except httpx.HTTPError as error:
            raise self._clock.failure(error) from None
        self._bytes += len(data or b"")
        if self._bytes > self._limits.response_bytes_max:
            raise ModelFailure(
                "MALFORMED_RESPONSE",
                f"the response is larger than {self._limits.response_bytes_max} bytes",
            )
        return data

    async def rest(self, bytes_max: int | None = None) -> bytes:
        """What is left of the body, or its first `bytes_max` bytes. Raises as `read` does."""
        body = bytearray()
        while bytes_max is None or len(body) < bytes_max:
            data = await self.read()
            if data is None:
                break
            body += data
        return bytes(body[:bytes_max])

    async def drain(self) -> None:
        """Wait a moment for the end behind a whole answer, so that the connection can be kept."""
        if self._is_whole:
            with trio.move_on_after(_DRAIN_S):
                await self._leave()

    async def aclose(self) -> None:
        """Close the connection, unless the reply was read to its end.

        The client reads through nested generators, and one that is left in the middle would wait
        for the garbage collector. Cancelled in its next read, it cleans up from the inside out.
        """
        with trio.CancelScope() as scope:
            scope.cancel()
            await self._leave()
        await self._response.aclose()

    async def _leave(self) -> None:
        try:
            for _ in range(_LEFTOVER_READS_MAX):
                if await anext(self._parts, None) is None:
                    return
        except httpx.HTTPError:
            pass  # nobody waits for what it breaks off
