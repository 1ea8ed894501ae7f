"""Looks at the heads of incoming WebSocket frames as their bytes pass. Pure.

The WebSocket library collects a message before anybody sees it, counts characters and not bytes,
and answers each ping. What a peer may send is therefore decided here, from frame heads alone,
before the library has the bytes. What a frame means is the library's business, and so is everything
that is wrong with it.

    head (2 bytes) -> length (0, 2 or 8 more) -> mask (0 or 4 more) -> payload -> head
"""

from collections.abc import Callable

import attrs

from trioloop.control.budget import Budget

_CONTINUATION, _CONTROL = 0x0, 0x8
_LENGTH_BYTES = {126: 2, 127: 8}


@attrs.frozen
class Refusal:
    """Why a peer is cut off: a WebSocket close code and a reason."""

    code: int
    reason: str


@attrs.define
class FrameMeter:
    """Counts what one peer sends.

    Args:
        message_bytes_max: of one message, over all its frames.
        fragments_max: frames of one message.
        pings: how many control frames may come.
        clock: seconds.
    """

    message_bytes_max: int
    fragments_max: int
    pings: Budget
    clock: Callable[[], float]
    _head: bytearray = attrs.field(factory=bytearray, init=False)
    _payload: int = attrs.field(default=0, init=False)  # bytes of it that are still to pass
    _message_bytes: int = attrs.field(default=0, init=False)
    _fragments: int = attrs.field(default=0, init=False)

    def see(self, data: bytes | bytearray) -> Refusal | None:
        """Look at bytes that came; the answer is why they must not be passed on, if so."""
        place = 0
        while place < len(data):
            if self._payload:
                passed = min(self._payload, len(data) - place)
                self._payload -= passed
                place += passed
                continue
            missing = self._missing()
            self._head += data[place : place + missing]
            place += missing
            if self._missing() == 0:
                refusal = self._judge()
                if refusal is not None:
                    return refusal
        return None

    def _missing(self) -> int:
        """How many bytes the head still needs, as far as is known; 0: it is whole."""
        head = self._head
        if len(head) < 2:
            return 2 - len(head)
        length = _LENGTH_BYTES.get(head[1] & 0x7F, 0)
        mask = 4 if head[1] & 0x80 else 0
        return 2 + length + mask - len(head)

    def _judge(self) -> Refusal | None:
        head, self._head = self._head, bytearray()
        opcode, short = head[0] & 0x0F, head[1] & 0x7F
        extended = head[2 : 2 + _LENGTH_BYTES.get(short, 0)]
        self._payload = int.from_bytes(extended, "big") if extended else short
        if opcode & _CONTROL:
            if not self.pings.take(self.clock()):
                return Refusal(1008, "too many pings")
            return None
        return self._count(opcode)

    def _count(self, opcode: int) -> Refusal | None:
        if opcode != _CONTINUATION:
            self._message_bytes = self._fragments = 0
        self._message_bytes += self._payload
        self._fragments += 1
        if self._message_bytes > self.message_bytes_max:
            return Refusal(1009, f"a message has at most {self.message_bytes_max} bytes")
        if self._fragments > self.fragments_max:
            return Refusal(1009, f"a message has at most {self.fragments_max} frames")
        return None
