"""Keeps the encoded bytes of messages, so that a request's body is copied, not encoded again.

A history only grows, or is replaced by another; what is kept goes when its history does. The bytes
of all messages lie behind one another: to gather thousands of pieces anew for each request would
cost more than the rest of a step.
"""

from collections.abc import Callable
from typing import TypeAlias
from weakref import WeakKeyDictionary

import attrs

from trioloop.log.history import History, Source
from trioloop.messages import Message

Encode: TypeAlias = Callable[[Message], bytes]


@attrs.define(eq=False)
class _Known:
    """What is encoded of one history: the bytes, and where each message's end."""

    encode: Encode
    joined: bytearray = attrs.field(factory=bytearray)
    ends: list[int] = attrs.field(factory=list)

    def add(self, message: Message, separator: bytes) -> None:
        piece = self.encode(message)
        self.joined += piece if self.joined else piece.removeprefix(separator)
        self.ends.append(len(self.joined))


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

    def joined(self, history: History) -> bytes | bytearray:
        """The bytes of a history's messages, not to be changed; new messages are encoded now."""
        known = self._known.get(history.source)
        if known is None:
            known = self._known[history.source] = _Known(self._begin())
        for message in history[len(known.ends) :]:
            known.add(message, self._separator)
        if len(history) == len(known.ends):
            return known.joined
        return known.joined[: known.ends[len(history) - 1]] if len(history) else b""
