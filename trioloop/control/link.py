"""A client's line to an endpoint: requests out, answers in, again and again until one comes.

Requests carry ids that the endpoint remembers, so one that was lost with its connection is simply
sent again.
"""

import random
import secrets
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import attrs
import msgspec
import trio
from msgspec import Raw, Struct

from trioloop.control.address import Address
from trioloop.control.connection import (
    Connection,
    ConnectionEndedError,
    EndpointRefusedError,
    opened,
)
from trioloop.control.faults import CODES, WireError
from trioloop.control.layers import own_layers_off
from trioloop.control.parameters import Parameters
from trioloop.control.protocol import METHODS
from trioloop.control.results import Result

_FIRST_PAUSE_S, _PAUSE_MAX_S = 0.05, 2.0
_REVOKED, _FAULT = 4001, 1011
_RETRIED_STATUSES = frozenset((0, 408, 503))

Use = Callable[[Connection], Awaitable[None]]
ResultT = TypeVar("ResultT", bound=Result)


class Fault(Struct, frozen=True):
    """The `error` of an answer."""

    code: int
    message: str = ""
    data: dict[str, object] = {}

    def as_error(self) -> WireError:
        """The same as an exception; a code that isn't known here is `internal`."""
        code = str(self.data.get("code", ""))
        rest = {name: value for name, value in self.data.items() if isinstance(value, int | str)}
        field, reference = rest.pop("field", None), rest.pop("reference", None)
        rest.pop("code", None)
        return WireError(
            code if code in CODES else "internal",
            field=None if field is None else str(field),
            facts=rest,
            reference=None if reference is None else str(reference),
        )


class Incoming(Struct, frozen=True):
    """Any frame that an endpoint sends."""

    id: str | int | None = None
    method: str = ""
    params: Raw = Raw(b"{}")
    result: Raw = Raw(b"{}")
    error: Fault | None = None


_decode = msgspec.json.Decoder(Incoming).decode
_encode = msgspec.json.Encoder().encode


async def incoming(connection: Connection) -> Incoming:
    """The next frame. A checkpoint.

    Raises:
        ConnectionEndedError: there is none.
        EndpointRefusedError: what came is no frame of an endpoint's.
    """
    text = await connection.receive()
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeError):
        raise EndpointRefusedError(0) from None


def request(id: str | int, method: str, parameters: Parameters) -> str:
    """A request as a frame."""
    body = {"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}
    return _encode(body).decode()


@attrs.frozen(kw_only=True)
class Line:
    """How to reach an endpoint.

    Attributes:
        nursery: where connections are read, until they are closed.
        address: where it is.
        token: what it asks for.
        patience_s: how long an endpoint that can't be reached is tried.
        open_s: how long one try may take.
        close_s: how long closing may take.
        message_bytes_max: of one message that comes.
    """

    nursery: trio.Nursery
    address: Address
    token: str = attrs.field(repr=False)
    patience_s: float
    open_s: float = 10
    close_s: float = 2
    message_bytes_max: int = 16 * 1024 * 1024

    async def keep(self, use: Use) -> None:
        """Use a connection, and another one whenever it ends, until `use` returns. A checkpoint.

        Raises:
            EndpointRefusedError: the endpoint doesn't let us in, or ended our token.
            ssl.SSLError: it speaks no TLS, or shows a certificate that isn't trusted.
            OSError: it couldn't be reached for `patience_s`.
            trio.TooSlowError: it didn't answer for as long.
            ConnectionEndedError: a fault of its own ended every connection for as long.
        """
        tried_since = trio.current_time()
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                async with opened(
                    self.address,
                    self.token,
                    self.nursery,
                    message_bytes_max=self.message_bytes_max,
                    close_s=self.close_s,
                    open_s=self.open_s,
                ) as connection:
                    await use(connection)
                    return
            except ConnectionEndedError as ended:
                if ended.close_code == _REVOKED:
                    raise EndpointRefusedError(401) from None
                if ended.close_code == _FAULT and self._is_over(tried_since):
                    raise
                if ended.close_code != _FAULT:
                    tried_since, pause_s = trio.current_time(), _FIRST_PAUSE_S
            except EndpointRefusedError as refused:
                if refused.status not in _RETRIED_STATUSES or self._is_over(tried_since):
                    raise
            except ssl.SSLError:
                raise  # trying again makes no certificate a better one
            except (OSError, trio.TooSlowError):
                if self._is_over(tried_since):
                    raise
            await trio.sleep(pause_s * random.uniform(0.5, 1))
            pause_s = min(pause_s * 2, _PAUSE_MAX_S)

    def _is_over(self, tried_since: float) -> bool:
        return trio.current_time() - tried_since > self.patience_s


@attrs.define(eq=False)
class _Call:
    """A request that waits for its answer."""

    text: str
    answer: Incoming | Exception | None = None
    came: trio.Event = attrs.field(factory=trio.Event)

    def give(self, answer: Incoming | Exception) -> None:
        self.answer = answer
        self.came.set()


class Link:
    """Requests over one line, with a connection while there is something to ask.

    Args:
        line: how to reach the endpoint.
    """

    def __init__(self, line: Line) -> None:
        self._line = line
        self._calls: dict[str, _Call] = {}
        self._connection: Connection | None = None
        self._sending = trio.Lock()
        self._wanted = trio.Event()

    async def run(self) -> None:
        """Keep the line up until cancelled, when somebody asks."""
        while True:
            await self._wanted.wait()
            try:
                await self._line.keep(self._use)
            except (
                EndpointRefusedError,
                ConnectionEndedError,
                OSError,
                trio.TooSlowError,
            ) as error:
                self._wanted = trio.Event()
                calls, self._calls = self._calls, {}
                for call in calls.values():
                    call.give(error)

    async def _use(self, connection: Connection) -> None:
        self._connection = connection
        try:
            with own_layers_off():
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._repeat, connection, tuple(self._calls.values()))
                    while True:
                        frame = await incoming(connection)
                        call = self._calls.pop(str(frame.id), None)
                        if call is not None:
                            call.give(frame)
        finally:
            self._connection = None

    async def _repeat(self, connection: Connection, calls: tuple[_Call, ...]) -> None:
        for call in calls:
            await self._send(connection, call)

    async def _send(self, connection: Connection, call: _Call) -> None:
        async with self._sending:
            if not call.came.is_set():
                await connection.send(call.text)

    async def call(self, method: str, parameters: Parameters, gives: type[ResultT]) -> ResultT:
        """Ask, and wait for the answer; asked again after a lost connection. A checkpoint.

        Raises:
            WireError: the endpoint's answer is an error.
            EndpointRefusedError: it doesn't let us in.
            OSError: it can't be reached.
        """
        assert METHODS[method].gives is gives
        id = secrets.token_hex(16)
        call = self._calls[id] = _Call(request(id, method, parameters))
        self._wanted.set()
        try:
            if self._connection is not None:
                with suppress(ConnectionEndedError):  # it is sent again over the next one
                    await self._send(self._connection, call)
            await call.came.wait()
        finally:
            self._calls.pop(id, None)
        if isinstance(call.answer, Exception):
            raise call.answer
        assert call.answer is not None  # given together with the event
        if call.answer.error is not None:
            raise call.answer.error.as_error()
        return msgspec.json.decode(call.answer.result, type=gives)
