"""The messages behind the system prompt: a list that grows, and frozen views of it.

What a log was loaded with stays in its rows until somebody looks at it: the list has `Unread` in
the places of such messages, and reads them when it is asked for them.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias, cast, overload

from msgspec import Struct

from trioloop.messages import Message, SystemMessage, ToolResultMessage


class Unread(Struct, frozen=True, gc=False):
    """A message that is still in its row; with what the row of a result doesn't tell of it."""

    wire_id: str = ""


ReadMessage: TypeAlias = Callable[[int, Unread], Message]  # given the seq of the event

_UNREAD = Unread()


class Source:
    """The growing list behind some views: an identity to keep what was encoded of it under.

    Args:
        messages: in order; some may be unread.
        seqs: of the events that wrote them.
        read: reads those that are unread; None: none is.
    """

    __slots__ = ("__weakref__", "messages", "read", "seqs")

    def __init__(
        self,
        messages: list[Message | Unread],
        seqs: list[int],
        read: ReadMessage | None = None,
    ) -> None:
        self.messages = messages
        self.seqs = seqs
        self.read = read

    def whole(self) -> list[Message]:
        """The list, all of it read."""
        if self.read is not None:
            for place in range(len(self.messages)):
                self.at(place)
            self.read = None
        return cast("list[Message]", self.messages)

    def at(self, place: int) -> Message:
        """The message in one place."""
        message = self.messages[place]
        if isinstance(message, Unread):
            assert self.read is not None  # else there were none
            message = self.messages[place] = self.read(self.seqs[place], message)
        return message

    def leave_unread(self, read: ReadMessage) -> None:
        """Let go of the messages that were added last: whoever asks for them has them read again.

        Goes back to the last that is unread already. What the system prompt says is kept.
        """
        self.read = read
        messages = self.messages
        first = len(messages)
        while first and type(messages[first - 1]) is not Unread:
            first -= 1
        for place in range(first, len(messages)):
            message = messages[place]
            if isinstance(message, ToolResultMessage):
                messages[place] = Unread(message.wire_id)
            elif not isinstance(message, SystemMessage):
                messages[place] = _UNREAD


class History(Sequence[Message]):
    """A frozen view of the messages behind the system prompt; taking one costs O(1).

    Attributes:
        source: the list that it views. Two views of one source are prefixes of each other, so an
            adapter may keep encoded messages by source (it can be hashed and weakly referenced).
    """

    __slots__ = ("_length", "source")

    def __init__(self, source: Source, length: int) -> None:
        self.source = source
        self._length = length

    @classmethod
    def of(cls, messages: Sequence[Message]) -> "History":
        """A view of messages that no log holds, as tests of adapters need."""
        return cls(Source(list(messages), []), len(messages))

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Message]:
        return islice(self.source.whole(), self._length)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._length)
            messages = self.source.whole()
            if step > 0:
                return messages[start:stop:step]
            return [messages[place] for place in range(start, stop, step)]
        return self.source.at(range(self._length)[index])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, History):
            return NotImplemented
        if self.source is other.source:
            return self._length == other._length
        return self[:] == other[:]

    __hash__ = None  # type: ignore[assignment]  # compared by value, and the values may be large

    def __repr__(self) -> str:
        return f"<History of {self._length} messages>"
