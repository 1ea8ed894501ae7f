"""Lets one connection in: its request is read and judged, and then it talks, or is turned away."""

import logging
import ssl

import trio

from trioloop.control.connection import ConnectionEndedError, accepted
from trioloop.control.dialogue import Dialogue
from trioloop.control.door import House, Page, Refused, Upgrade, answer, judge
from trioloop.control.frames import Refusal
from trioloop.control.listening import peer_of
from trioloop.control.pages import pages
from trioloop.control.peers import Peers, Visit
from trioloop.control.reception import UnreadableHead, receive_head
from trioloop.control.requests import internal
from trioloop.control.service import Service
from trioloop.control.tokens import Grant

_log = logging.getLogger("trioloop.control")

_TURNED_AWAY_MAX = 64  # who are told at once that there is no room; beyond it they are just cut
_HEARD_BYTES = 65_536


class Entrance:
    """The way in of an endpoint.

    Args:
        service: what is served.
        house: what its door judges by.
        tls: the certificate to speak TLS with; None: plain.
    """

    def __init__(self, service: Service, house: House, tls: ssl.SSLContext | None) -> None:
        self._service = service
        self._house = house
        self._tls = tls
        self._limits = service.limits
        self._peers = Peers(service.limits)
        self._dialogues: set[Dialogue] = set()
        self._turned_away = 0
        self._left: trio.Event | None = None  # set when the last dialogue is over, once leaving

    @property
    def connections(self) -> int:
        """How many connections there are."""
        return len(self._peers)

    def revoked(self, grant: Grant) -> None:
        """A token has ended, and so do its connections."""
        for dialogue in self._dialogues:
            if dialogue.grant is grant:
                dialogue.end(4001, "the token was revoked")

    async def leave(self) -> None:
        """End every dialogue, and wait for them. A checkpoint."""
        self._left = trio.Event()
        for dialogue in self._dialogues:
            dialogue.end(1001, "the endpoint is left")
        if self._dialogues:
            await self._left.wait()

    async def receive(self, socket: trio.SocketStream) -> None:
        """Receive one connection, from its first byte to its end; never raises for its faults."""
        peer = peer_of(socket)
        visit = None if peer is None or self._left is not None else self._peers.enter(peer)
        try:
            if visit is not None:
                await self._let_in(socket, visit)
            elif peer is not None:
                await self._turn_away(socket)
        except (trio.BrokenResourceError, trio.ClosedResourceError, ConnectionEndedError):
            pass  # the peer is gone
        except Exception as fault:
            internal(fault)
        finally:
            if visit is not None:
                self._peers.leave(visit)
            await trio.aclose_forcefully(socket)

    async def _turn_away(self, socket: trio.SocketStream) -> None:
        if self._turned_away >= _TURNED_AWAY_MAX or self._tls is not None:
            return
        self._turned_away += 1
        try:
            with trio.move_on_after(self._limits.close_s):
                await socket.send_all(answer(503))
                await _hear_out(socket)
        finally:
            self._turned_away -= 1

    async def _let_in(self, socket: trio.SocketStream, visit: Visit) -> None:
        stream: trio.abc.Stream = socket
        if self._tls is not None:
            stream = trio.SSLStream(socket, self._tls, server_side=True, https_compatible=True)
        verdict: Page | Upgrade | Refused = Refused(408)
        behind = b""
        try:
            with trio.move_on_after(self._limits.head_s):
                head, behind = await receive_head(stream, self._limits.head_bytes_max)
                verdict = judge(head, self._house)
        except UnreadableHead as unreadable:
            if unreadable.status is None:
                return
            verdict = Refused(unreadable.status)
        if isinstance(verdict, Upgrade):
            await self._talk(stream, verdict, behind, visit)
        else:
            await self._reply(stream, verdict, visit)

    async def _reply(self, stream: trio.abc.Stream, verdict: Page | Refused, visit: Visit) -> None:
        if isinstance(verdict, Page):
            page = pages()[verdict.path]
            words = answer(200, page.body, page.headers)
        else:
            status = 429 if verdict.guess and not self._may_guess(visit.peer) else verdict.status
            _log.info("a request was refused with %d", status)
            words = answer(status, headers=verdict.headers)
        with trio.move_on_after(self._limits.close_s):
            await stream.send_all(words)
            await _hear_out(stream)

    def _may_guess(self, peer: str) -> bool:
        return self._peers.may_fail(peer, trio.current_time())

    async def _talk(
        self, stream: trio.abc.Stream, upgrade: Upgrade, behind: bytes, visit: Visit
    ) -> None:
        dialogue = Dialogue(self._service, lambda shown: self._shown(shown, visit), upgrade.grant)
        visit.proven = upgrade.grant is not None
        self._dialogues.add(dialogue)

        def refuse(refusal: Refusal) -> None:
            dialogue.end(refusal.code, refusal.reason)

        try:
            async with accepted(
                stream, key=upgrade.key, behind=behind, limits=self._limits, on_refusal=refuse
            ) as connection:
                await dialogue.hold(connection)
        finally:
            self._dialogues.discard(dialogue)
            if self._left is not None and not self._dialogues:
                self._left.set()

    def _shown(self, token: bytes, visit: Visit) -> Grant | None:
        grant = self._house.check(token)
        if grant is not None:
            visit.proven = True
        else:
            self._may_guess(visit.peer)
        return grant


async def _hear_out(stream: trio.abc.Stream) -> None:
    """Say that nothing follows, and take what the peer still sends, so that our words arrive."""
    if isinstance(stream, trio.abc.HalfCloseableStream):
        await stream.send_eof()
        while await stream.receive_some(_HEARD_BYTES):
            pass
    else:
        await stream.aclose()
