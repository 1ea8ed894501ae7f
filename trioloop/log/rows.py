"""The events of a live log: those it was loaded with stay rows until somebody asks for them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import cast, overload

from trioloop.codec import decode_event
from trioloop.events import Event


class Events(Sequence[Event]):
    """Events in order, each in memory as it is or as its row.

    A row that can't be read is found when it is asked for: then, and only then, reading raises
    `UnsupportedSessionError`.

    Args:
        entries: events, or the canonical bytes of rows.
    """

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[Event | bytes] = ()) -> None:
        self._entries: list[Event | bytes] = list(entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Event]:
        return (self._at(place) for place in range(len(self._entries)))

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> list[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | list[Event]:
        if not isinstance(index, slice):
            return self._at(range(len(self._entries))[index])
        entries = self._entries[index]
        if bytes in set(map(type, entries)):
            return [self._at(place) for place in range(len(self._entries))[index]]
        return cast("list[Event]", entries)

    def _at(self, place: int) -> Event:
        entry = self._entries[place]
        if isinstance(entry, bytes):
            entry = self._entries[place] = decode_event(entry)
        return entry

    def rows(self) -> Iterator[Event | bytes]:
        """The entries as they are in memory."""
        return iter(self._entries)

    def peek(self, place: int) -> Event:
        """An event, without keeping it: its row stays a row."""
        entry = self._entries[place]
        return decode_event(entry) if isinstance(entry, bytes) else entry

    def extend(self, events: Iterable[Event]) -> None:
        """Add events at the end."""
        self._entries.extend(events)
