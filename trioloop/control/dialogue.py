"""One client's dialogue: what comes in, what goes out, and how it ends.

    reader ──> waiting requests ──> answers ──┐
                 subscriptions to logs ───────┼──> voice (no queue) ──> writer ──> connection
                 live notifications ──────────┘

The reader only hands over. A ping asks whether the client is there. Whatever ends the dialogue is
said in one close code.
"""

from collections.abc import Awaitable, Callable

import trio

from trioloop.control.budget import Budget
from trioloop.control.connection import Connection, ConnectionEndedError
from trioloop.control.frames import Refusal
from trioloop.control.requests import Requests, internal
from trioloop.control.service import Service
from trioloop.control.tokens import Grant
from trioloop.control.voice import TooSlowError, Voice


class Dialogue:
    """A dialogue with one client.

    Args:
        service: what is served.
        check: what a token that is shown allows.
        grant: what the handshake's token allows; None: the first message shows one.
    """

    def __init__(
        self, service: Service, check: Callable[[bytes], Grant | None], grant: Grant | None
    ) -> None:
        limits = service.limits
        self._limits = limits
        self._voice = Voice()
        self._requests = Requests(service, self._voice, self._start, check, grant)
        self._in, self._out = trio.open_memory_channel[tuple[str, bool]](limits.messages_burst_max)
        self._budget = Budget(
            limits.messages_burst_max, limits.messages_per_s_max, trio.current_time()
        )
        self._warned = False
        self._ending: Refusal | None = None
        self._ended = trio.Event()
        self._silent = trio.Event()  # the writer has stopped
        self._nursery: trio.Nursery | None = None

    @property
    def grant(self) -> Grant | None:
        """What its token allows."""
        return self._requests.grant

    @property
    def proven(self) -> trio.Event:
        """Set once a token was shown."""
        return self._requests.proven

    def end(self, code: int, reason: str = "") -> None:
        """End it; the first reason stands. Synchronous."""
        if self._ending is None:
            self._ending = Refusal(code, reason)
            self._ended.set()
            self._voice.hush()

    async def hold(self, connection: Connection) -> None:
        """Hold it until one side ends it, then close the connection. A checkpoint."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            self._start(lambda: self._read(connection))
            self._start(self._answer)
            self._start(lambda: self._write(connection))
            self._start(lambda: self._ask_for_life(connection))
            self._start(self._expect_token)
            await self._ended.wait()
            with trio.move_on_after(self._limits.close_s):  # for the frame that is under way
                await self._silent.wait()
            self._voice.cut()
            nursery.cancel_scope.cancel()
        ending = self._ending or Refusal(1011, "")
        await connection.close(ending.code, ending.reason)

    def _start(self, job: Callable[[], Awaitable[None]]) -> None:
        assert self._nursery is not None  # opened before anything is heard
        self._nursery.start_soon(self._guarded, job)

    async def _guarded(self, job: Callable[[], Awaitable[None]]) -> None:
        """A fault in one part ends this dialogue and nothing else."""
        try:
            await job()
        except ConnectionEndedError:
            self.end(1000)
        except TooSlowError as slow:
            self.end(4008, str(slow.cursor or ""))
        except Exception as fault:
            self.end(1011, f"reference {internal(fault).reference}")

    async def _read(self, connection: Connection) -> None:
        while self._ending is None:
            text = await connection.receive()
            now = trio.current_time()
            if not isinstance(text, str):
                self.end(1003, "text only")
                return
            self._warned = self._warned and not self._budget.is_full(now)
            limited = not self._budget.take(now)
            if limited and self._warned:
                self.end(1008, "too many messages")
                return
            self._warned = self._warned or limited
            try:
                self._in.send_nowait((text, limited))
            except trio.WouldBlock:
                self.end(1008, "too many requests wait for their answer")

    async def _answer(self) -> None:
        async for text, limited in self._out:
            await self._requests.answer(text, limited=limited)
            if self._requests.refused:
                self.end(4001, "no valid token")

    async def _write(self, connection: Connection) -> None:
        limits = self._limits
        try:
            await self._voice.write(connection.send, send_s=limits.send_s, close_s=limits.close_s)
        finally:
            self._silent.set()

    async def _ask_for_life(self, connection: Connection) -> None:
        while True:
            await trio.sleep(self._limits.ping_s)
            with trio.move_on_after(self._limits.ping_s) as patience:
                await connection.ping()
            if patience.cancelled_caught:
                self.end(4009, "no answer to a ping")

    async def _expect_token(self) -> None:
        with trio.move_on_after(self._limits.token_s) as patience:
            await self.proven.wait()
        if patience.cancelled_caught:
            self.end(4001, "no token in time")
