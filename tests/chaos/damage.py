"""Files that changed behind a store's back: a bit flipped, a page zeroed, an end cut off.

Reading may then find less, and says so, but never anything that wasn't written. What SQLite's
write-ahead log has lost is only missed where a later commit stands in the main file: a log that
was cut short looks like one whose last commit never happened.
"""

import os
import tempfile
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path

import attrs

from tests.chaos.running import SESSION, Place, run
from trioloop import Event
from trioloop.errors import DamagedSessionError, StoreUnreadableError, UnknownSessionError
from trioloop.ports import StoredRow
from trioloop.store import import_session, read_rows, read_session
from trioloop.store.lines import lines_of

PAGE = 4096
TAIL = 2 * PAGE
_MEMORY = "/dev/shm"  # these files are written a hundred thousand times, and no power is lost here
_kept = tempfile.TemporaryDirectory(
    prefix="chaos-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None
)


@attrs.frozen(slots=False)  # for the cached property
class Recorded:
    """A store as a real run left it: closed, or killed with its last commits in the log beside it.

    Attributes:
        place: its files.
        rows: what was written.
        events: the same, decoded.
        content: the bytes of each file, by the end of its name.
    """

    place: Place
    rows: tuple[StoredRow, ...]
    events: tuple[Event, ...]
    content: dict[str, bytes]

    def read_with(self, side: str, content: bytes) -> str | None:
        """What is wrong with what is read once a file holds something else; None: nothing."""
        for each, kept in self.content.items():
            with open(self.store + each, "r+b") as file:
                file.write(content if each == side else kept)
                file.truncate()
        if os.path.exists(self.store + "-shm"):
            os.unlink(self.store + "-shm")
        return self._read()

    @cached_property
    def store(self) -> str:
        """The path of the store's file."""
        return str(self.place.store)

    def _read(self) -> str | None:
        expected = self.rows
        try:
            found = read_rows(self.store, SESSION)
            expected = expected[: len(found)] if "-wal" in self.content else expected
        except DamagedSessionError as error:
            found = read_rows(self.store, SESSION, before=error.seq)
            expected = expected[: error.seq]
        except (StoreUnreadableError, UnknownSessionError):
            return None
        return None if found == expected else f"{len(found)} events are read, and not as written"


@cache
def recorded(at: str = "") -> Recorded:
    """The store of a run that ended well, or was killed at a fact."""
    folder = Path(_kept.name) / (at.replace(" ", "-").replace("/", "-") or "whole")
    folder.mkdir()
    place = Place(folder)
    run(place, at=at)
    sides = [side for side in ("", "-wal") if Path(f"{place.store}{side}").exists()]
    content = {side: Path(f"{place.store}{side}").read_bytes() for side in sides}
    rows, events = read_rows(place.store, SESSION), read_session(place.store, SESSION)
    return Recorded(place, rows, events, content)


def in_the_log() -> Recorded:
    """A store whose last commits are in its write-ahead log."""
    return recorded("durable 15")


def flipped(content: bytes, bit: int) -> bytes:
    """Some bytes with one bit changed, counted from their end."""
    changed = bytearray(content)
    changed[-1 - bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def zeroed(content: bytes, page: int) -> bytes:
    """Some bytes with one page of zeros."""
    return content[: page * PAGE] + bytes(PAGE) + content[(page + 1) * PAGE :]


def cut(content: bytes, length: int) -> bytes:
    """The beginning of some bytes."""
    return content[:length]


@attrs.frozen
class Damage:
    """One kind of damage to one file of a recorded store.

    Attributes:
        store: gives the store.
        side: the end of the file's name.
        change: the bytes that it holds then.
        places: how many places there are to change, given its bytes.
    """

    store: Callable[[], Recorded]
    side: str
    change: Callable[[bytes, int], bytes]
    places: Callable[[bytes], int]

    def everywhere(self) -> range:
        """All places."""
        return range(self.places(self.store().content[self.side]))

    def strike(self, place: int) -> str | None:
        """Damage one place: what is wrong with what is read then; None: nothing."""
        store = self.store()
        return store.read_with(self.side, self.change(store.content[self.side], place))


DAMAGES = {
    "flip": Damage(recorded, "", flipped, lambda content: 8 * TAIL),
    "flip-log": Damage(in_the_log, "-wal", flipped, lambda content: 8 * TAIL),
    "zero": Damage(recorded, "", zeroed, lambda content: len(content) // PAGE),
    "zero-log": Damage(in_the_log, "-wal", zeroed, lambda content: len(content) // PAGE),
    "cut": Damage(recorded, "", cut, len),
    "cut-log": Damage(in_the_log, "-wal", cut, len),
}
"""Each kind by its name; bits are those of the last two pages."""


def cut_session(place: Place, length: int) -> None:
    """Make a store that holds the first events of a recorded session."""
    import_session(place.store, lines_of(recorded().rows[:length]))
