"""Keeps the encoded bytes of each message, so that a request's body is joined, not encoded again.

A history only grows, or is replaced by another; what is kept goes when its history does.
"""

from collections.abc import Callable
from typing import TypeAlias
from weakref import WeakKeyDictionary

from trioloop.log.surface import History, Source
from trioloop.messages import Message

Encode: TypeAlias = Callable[[Message], bytes]


class EncodedHistory:
    """The encoded messages of the histories that one adapter is shown.

    Args:
        begin: makes what encodes one history, message by message and in order; it may remember
            what came before.
    """

    def __init__(self, begin: Callable[[], Encode]) -> None:
        self._begin = begin
        self._known: WeakKeyDictionary[Source, tuple[Encode, list[bytes]]] = WeakKeyDictionary()

    def pieces(self, history: History) -> list[bytes]:
        """What each message of a history was encoded to; new ones are encoded now."""
        found = self._known.get(history.source)
        if found is None:
            found = self._known[history.source] = (self._begin(), [])
        encode, known = found
        if len(known) < len(history):
            known.extend(map(encode, history[len(known) :]))
        return known[: len(history)]


def without_first(separator: bytes, pieces: list[bytes]) -> None:
    """Take a separator off the first of some pieces that each begin with one, or are empty."""
    for place, piece in enumerate(pieces):
        if piece:
            pieces[place] = piece.removeprefix(separator)
            return
