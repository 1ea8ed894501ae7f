"""Places that tool bodies stand in while they run, shared fairly between pools (T3, T14).

A pool limits its own calls by itself. What reaches further (one limit over all agents of a
runtime, or over the calls of an agent and the nested calls of its programs) is an object with
places that several pools take from.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

import trio

from trioloop.errors import InvalidInputError


class Capacity(Protocol):
    """Places that pools share. Each pool waits for at most one at a time."""

    def take_nowait(self) -> bool:
        """Take a place if one is free and nobody waits for it."""
        ...

    async def take(self) -> None:
        """Wait for a place, behind those who wait already; cancelled, none is taken."""
        ...

    def give(self) -> None:
        """Give a place back; the one who has waited longest gets it."""
        ...


class Places:
    """A number of places, first come, first served.

    As a pool waits for one place at a time, waiting pools are served in turn.

    Args:
        count: how many there are.
        wider: places that each place here needs one of as well.

    Raises:
        InvalidInputError: the count isn't a whole number from 1 on.
    """

    __slots__ = ("_free", "_waiting", "_wider")

    def __init__(self, count: int, *, wider: Capacity | None = None) -> None:
        self._free = whole_number("count", count)
        self._waiting = trio.lowlevel.ParkingLot()
        self._wider = wider

    @property
    def free(self) -> int:
        """How many places nobody holds."""
        return self._free

    def take_nowait(self) -> bool:
        """Take a place if one is free and nobody waits for it."""
        if not self._free:
            return False
        if self._wider is not None and not self._wider.take_nowait():
            return False
        self._free -= 1
        return True

    async def take(self) -> None:
        """Wait for a place. A checkpoint only where it waits; cancelled, none is taken."""
        if self._free:
            self._free -= 1
        else:
            await self._waiting.park()  # whoever gives a place back hands it over here
        if self._wider is not None and not self._wider.take_nowait():
            await self._take_wider(self._wider)

    async def _take_wider(self, wider: Capacity) -> None:
        try:
            await wider.take()
        except BaseException:  # whatever stopped the wait, the place here goes back
            self._hand_on()
            raise

    def give(self) -> None:
        """Give a place back; the one who has waited longest gets it."""
        if self._wider is not None:
            self._wider.give()
        self._hand_on()

    def _hand_on(self) -> None:
        if self._waiting:
            self._waiting.unpark()
        else:
            self._free += 1


class Place:
    """A place that one call holds, or lends to the calls that it makes itself (T14)."""

    __slots__ = ("_capacity", "_held", "_lendings", "_taking")

    def __init__(self, capacity: Capacity) -> None:
        self._capacity = capacity
        self._held = False
        self._lendings = 0
        self._taking = False

    async def take(self) -> None:
        """Wait for the place. A checkpoint only where it waits."""
        if not self._capacity.take_nowait():
            await self._capacity.take()
        self._held = True

    def give_back(self) -> None:
        """Give the place back, unless it isn't held."""
        if self._held:
            self._held = False
            self._capacity.give()

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[None]:
        """Lend the place to the calls made inside the block, and wait for one again behind it.

        A body that runs other calls does no work of its own meanwhile; did it keep its place, a
        limit of 1 would never let them run. A block that is left by an exception takes none again:
        what unwinds needs no place, and shouldn't wait for others' bodies. Blocks may overlap.
        """
        self._lendings += 1
        self.give_back()
        try:
            yield
        finally:
            self._lendings -= 1
        if not (self._held or self._lendings or self._taking):
            await self._take_again()

    async def _take_again(self) -> None:
        self._taking = True
        try:
            await self.take()
        finally:
            self._taking = False
        if self._lendings:  # a block was opened meanwhile
            self.give_back()


def whole_number(name: str, value: int) -> int:
    """A number of calls or places, from 1 on.

    Raises:
        InvalidInputError: it is anything else.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidInputError(f"{name} must be a whole number from 1 on, not {value!r}")
    return value
