"""The endpoint: accepts connections, and outlives every fault of theirs.

One guarded nursery for each connection, so that one peer's fault ends that connection alone. Agents
never wait for the endpoint and go on without it.
"""

import errno
import logging
import os
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress

import trio

from trioloop.control.address import Listen, read_listen
from trioloop.control.bodies import Bodies
from trioloop.control.door import House
from trioloop.control.entrance import Entrance
from trioloop.control.layers import own_layers_off
from trioloop.control.limits import ControlLimits
from trioloop.control.listening import listeners
from trioloop.control.pages import pages
from trioloop.control.remembered import Remembered
from trioloop.control.service import Service
from trioloop.control.subscriptions import Audience
from trioloop.control.tokens import Tokens
from trioloop.errors import InvalidInputError
from trioloop.plugins.approval import Approvals
from trioloop.runtime.runtime import Runtime

_log = logging.getLogger("trioloop.control")

_NO_ROOM = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS))
_PAUSE_S = 0.1  # until a descriptor may be free again


class Endpoint:
    """A control endpoint that is being served; made by `serve`.

    Attributes:
        url: where it is, without a token.
        tokens: who may do what.
    """

    def __init__(self, url: str, tokens: Tokens, entrance: Entrance) -> None:
        self.url = url
        self.tokens = tokens
        self._entrance = entrance

    @property
    def connections(self) -> int:
        """How many connections there are."""
        return self._entrance.connections

    def address(self, token: str) -> str:
        """The address with a token, as a browser and `trioloop attach` take it."""
        return f"{self.url}#{token}"


@asynccontextmanager
async def serve(
    runtime: Runtime,
    *,
    listen: str = "127.0.0.1:0",
    tokens: Tokens | None = None,
    tls: ssl.SSLContext | None = None,
    origins: Iterable[str] = (),
    hosts: Iterable[str] = (),
    insecure: bool = False,
    limits: ControlLimits | None = None,
) -> AsyncIterator[Endpoint]:
    """Serve a runtime's agents, and the console, for as long as the block is open.

    Leaving it closes every connection with 1001, within `shutdown_s`; agents go on. Exceptions of
    the block come out as they went in. Questions of pre-policies are answered through it where the
    runtime was opened with `approver=Approvals()`.

    Args:
        runtime: whose agents.
        listen: `HOST:PORT`, port 0 for any that is free, or `unix:PATH`.
        tokens: who may do what; left out, nobody may do anything until `endpoint.tokens.issue`.
        tls: the certificate to speak TLS with.
        origins: pages beside the console that may connect, such as `https://example.org`.
        hosts: names, with their port, that lead here beside the address itself.
        insecure: listen beyond this machine without TLS.
        limits: the limits that differ from the defaults.

    Raises:
        InvalidInputError: the address can't be served, or is reachable from elsewhere without TLS.
        OSError: the address can't be had.
    """
    limits = limits or ControlLimits()
    where = read_listen(listen)
    if not where.is_local and tls is None and not insecure:
        raise InvalidInputError(
            f"{listen!r} can be reached from elsewhere: give a certificate with tls=, or say "
            "insecure=True"
        )
    approver = runtime.approver
    service = Service(
        runtime=runtime,
        limits=limits,
        approvals=approver if isinstance(approver, Approvals) else None,
        bodies=Bodies(runtime),
        remembered=Remembered(limits.commands_remembered_max),
        audience=Audience(limits),
    )
    sockets = await listeners(where)
    try:
        known = tokens or Tokens()
        url, names = _names(where, sockets, secure=tls is not None)
        house = House(
            hosts=None if where.path is not None else frozenset(_bytes([*names, *hosts])),
            origins=frozenset(_bytes([*_origins(names, secure=tls is not None), *origins])),
            pages=frozenset(pages()),
            check=known.check,
        )
        entrance = Entrance(service, house, tls)
        with own_layers_off(), service.watching(), known.observe(entrance.revoked):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(service.audience.pace.beat)
                for socket in sockets:
                    nursery.start_soon(_accept, socket, entrance, nursery)
                try:
                    yield Endpoint(url, known, entrance)
                finally:
                    # Clients are told, host cancel or not; bounded by shutdown_s.
                    with trio.move_on_after(limits.shutdown_s, shield=True):
                        await entrance.leave()
                    nursery.cancel_scope.cancel()
    finally:
        for socket in sockets:
            socket.socket.close()
        if where.path is not None:
            with suppress(FileNotFoundError):  # somebody has tidied up already
                os.unlink(where.path)


async def _accept(listener: trio.SocketListener, entrance: Entrance, nursery: trio.Nursery) -> None:
    """Accept connections until cancelled. An endpoint that can't any more says so and stays."""
    while True:
        try:
            stream = await listener.accept()
        except OSError as error:
            if error.errno not in _NO_ROOM:
                _log.exception("the control endpoint accepts no connections any more")
                return
            _log.warning("no connection can be accepted for now: %s", error.strerror)
            await trio.sleep(_PAUSE_S)
        else:
            nursery.start_soon(entrance.receive, stream)


def _names(
    where: Listen, sockets: list[trio.SocketListener], *, secure: bool
) -> tuple[str, list[str]]:
    """The endpoint's address, and the values of Host that mean it."""
    if where.path is not None:
        return f"unix:{where.path}", []
    host, port = sockets[0].socket.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    names = [f"{shown}:{port}"]
    if where.is_local:
        names += [f"{name}:{port}" for name in ("localhost", "127.0.0.1", "[::1]")]
    else:
        names.append(f"{where.host}:{port}")
    usual = 443 if secure else 80
    names += [name.removesuffix(f":{port}") for name in names if port == usual]
    return f"{'https' if secure else 'http'}://{shown}:{port}/", names


def _origins(names: Iterable[str], *, secure: bool) -> list[str]:
    return [f"{'https' if secure else 'http'}://{name}" for name in names]


def _bytes(texts: Iterable[str]) -> list[bytes]:
    return [text.lower().encode() for text in texts]
