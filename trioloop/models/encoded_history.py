"""Keeps the encoded bytes of messages, so that a request's body isn't encoded again.

A history only grows, or is replaced by another; what is kept goes when its history does. The bytes
lie in blocks that are never touched again once they are full: a request takes them as they are, and
copies the last, unfinished one alone, so that it costs the same in a long history.
"""

from collections.abc import Callable
from typing import TypeAlias
from weakref import WeakKeyDictionary

import attrs

from trioloop.log.history import History, Source
from trioloop.messages import Message

_BLOCK_BYTES = 65_536  # about what a connection sends at once

Encode: TypeAlias = Callable[[Message], bytes]


@attrs.frozen
class EncodedMessages:
    """The bytes of some messages.

    Attributes:
        blocks: the long ones, in order.
        tail: those behind them.
    """

    blocks: tuple[bytes, ...] = ()
    tail: bytes = b""

    def __bool__(self) -> bool:
        return bool(self.blocks or self.tail)


@attrs.define(eq=False)
class _Known:
    """What is encoded of one history: full blocks, the bytes behind, and where messages end."""

    encode: Encode
    blocks: list[bytes] = attrs.field(factory=list)
    tail: bytearray = attrs.field(factory=bytearray)
    ends: list[int] = attrs.field(factory=list)

    def add(self, message: Message, separator: bytes) -> None:
        piece = self.encode(message)
        before = self.ends[-1] if self.ends else 0
        own = piece if before else piece.removeprefix(separator)
        self.tail += own
        self.ends.append(before + len(own))
        if len(self.tail) >= _BLOCK_BYTES:
            self.blocks.append(bytes(self.tail))
            self.tail = bytearray()

    def first(self, messages: int) -> EncodedMessages:
        """The bytes of the first messages, at least one."""
        if messages == len(self.ends):
            return EncodedMessages(tuple(self.blocks), bytes(self.tail))
        whole = b"".join((*self.blocks, self.tail))
        return EncodedMessages(tail=whole[: self.ends[messages - 1]])


class EncodedHistory:
    """The encoded messages of the histories that one adapter is shown.

    Args:
        begin: makes what encodes one history, message by message and in order; it may remember
            what came before. A message's bytes begin with the separator, or are empty.
        separator: what the first bytes of a history are without.
    """

    def __init__(self, begin: Callable[[], Encode], separator: bytes = b",") -> None:
        self._begin = begin
        self._separator = separator
        self._known: WeakKeyDictionary[Source, _Known] = WeakKeyDictionary()

    def of(self, history: History) -> EncodedMessages:
        """The bytes of a history's messages; new messages are encoded now."""
        known = self._known.get(history.source)
        if known is None:
            known = self._known[history.source] = _Known(self._begin())
        for message in history[len(known.ends) :]:
            known.add(message, self._separator)
        return known.first(len(history)) if len(history) else EncodedMessages()
