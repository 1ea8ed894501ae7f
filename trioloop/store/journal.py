"""One session's way into a store: rows are handed over here, and their durability awaited.

Appending is synchronous. When and with whom rows are committed is the writer's business.
"""

import logging
import math
from collections.abc import Callable, Sequence
from typing import Protocol

import trio

from trioloop.codec import chain_crc
from trioloop.errors import StoreError, StoreFailedError
from trioloop.ports import Append, Lease, StoredRow

_GIVE_BACK_S = 1.0

_log = logging.getLogger("trioloop.store")


class Committer(Protocol):
    """What a journal asks of the writer that it belongs to."""

    def note(self, journal: "Journal") -> None:
        """A journal has something new."""

    async def batch_end(self, journal: "Journal", target: int) -> None:
        """Wait for the end of the batch that takes a journal's row, and ask for it if need be."""

    async def retry(self) -> None:
        """Commit what all journals kept, whatever has failed, and wait for the end of it."""

    async def give_back(self, journal: "Journal") -> None:
        """Forget a journal and give its lease back."""


class Journal:
    """One session's way into the store; `StoreWriter.journal` makes it.

    Attributes:
        lease: the right to write that it uses.
        durable_seq: the last durable seq.
        failure: why nothing more is written: `StoreFailedError` (until a `retry` succeeds) or, for
            good, `FencedError`. Rows stay in memory.
    """

    __slots__ = (
        "_appends",
        "_crc",
        "_flight",
        "_groups",
        "_on_durable",
        "_on_failure",
        "_seq",
        "_taken",
        "_writer",
        "durable_seq",
        "failure",
        "lease",
    )

    def __init__(
        self,
        writer: Committer,
        lease: Lease,
        crc: int,
        on_durable: Callable[[int], None],
        on_failure: Callable[[StoreError], None],
    ) -> None:
        self.lease = lease
        self.durable_seq = lease.next_seq - 1
        self.failure: StoreError | None = None
        self._writer = writer
        self._seq = self.durable_seq
        self._crc = crc
        self._on_durable = on_durable
        self._on_failure = on_failure
        self._taken = self.durable_seq  # the last that a commit has taken, whose chain is `_crc`
        self._groups: list[Sequence[bytes]] = []  # one for each append
        self._flight: Append | None = None  # in a commit, or left over from a failed one
        self._appends = 0

    def append(self, payloads: Sequence[bytes]) -> None:
        """Hand over events, to be committed in one transaction. Never waits, never fails.

        Args:
            payloads: the canonical bytes of each event, going on where the last append ended.
        """
        if not payloads:
            return
        self._seq += len(payloads)
        self._groups.append(payloads)
        if self.failure is None:
            self._writer.note(self)

    async def checkpoint(self) -> None:
        """Wait until all appended so far is durable (D2). A checkpoint.

        Cancelling it only ends the wait: the events become durable anyway.

        Raises:
            StoreFailedError: the store failed, or the writer has ended.
            FencedError: another owner has the session.
        """
        target = self._seq
        if self.durable_seq >= target:
            await trio.lowlevel.checkpoint()
        self._raise_failure()
        while self.durable_seq < target:
            await self._writer.batch_end(self, target)
            self._raise_failure()

    async def retry(self) -> None:
        """Try again to commit what is kept since the store failed (D3). A checkpoint.

        Success is every journal's: all that failed with the store go on.

        Raises:
            StoreFailedError: the store still fails, or the writer has ended.
            FencedError: another owner has the session.
        """
        if isinstance(self.failure, StoreFailedError):
            await self._writer.retry()
        await self.checkpoint()

    async def release(self, *, by: float = math.inf) -> None:
        """Make everything durable, then give the lease back. A checkpoint.

        The lease is given back even where the store fails or this is cancelled; `logging` then
        tells what isn't durable.

        Args:
            by: on Trio's clock, when giving back ends at the latest, whether it is through or not.
        """
        why = "it was released before its last commit"
        try:
            await self.checkpoint()
        except StoreError as error:
            why = str(error)
        finally:
            self.warn(why)
            # Nobody else would give the lease back, and it takes no longer than this.
            with trio.move_on_at(min(by, trio.current_time() + _GIVE_BACK_S), shield=True):
                await self._writer.give_back(self)

    def _raise_failure(self) -> None:
        if isinstance(self.failure, StoreFailedError):
            raise StoreFailedError(str(self.failure)) from self.failure
        if self.failure is not None:
            raise self.failure.with_traceback(None)

    # For the writer

    @property
    def has_rows(self) -> bool:
        """Whether anything isn't durable yet."""
        return self._flight is not None or bool(self._groups)

    @property
    def has_more(self) -> bool:
        """Whether anything waits for a later batch than the one under way."""
        return bool(self._groups)

    def is_under_way(self, seq: int) -> bool:
        """Whether a row that isn't durable yet is in the batch under way."""
        return self._flight is not None and self._flight.rows[-1].seq >= seq

    def take(self, room: int) -> Append | None:
        """Whole appends of at most `room` events, or the one that is to be repeated."""
        if self._flight is None and self._groups:
            count = _groups_within(self._groups, room)
            payloads = [payload for group in self._groups[:count] for payload in group]
            del self._groups[:count]
            rows = self._rows(payloads)
            self._appends += 1
            append_id = f"{self.lease.epoch}.{self._appends}"
            self._flight = Append(self.lease, rows[0].seq, append_id, rows)
        return self._flight

    def _rows(self, payloads: Sequence[bytes]) -> tuple[StoredRow, ...]:
        """The next payloads with their places, chained to those before."""
        rows: list[StoredRow] = []
        crc, seq = self._crc, self._taken
        for payload in payloads:
            crc = chain_crc(crc, payload)
            seq += 1
            rows.append(StoredRow(seq, payload, crc))
        self._crc, self._taken = crc, seq
        return tuple(rows)

    def landed(self, append: Append) -> None:
        """What was taken is durable."""
        self._flight = None
        self.failure = None
        self.durable_seq = append.rows[-1].seq
        self._on_durable(self.durable_seq)

    def failed(self, error: StoreError) -> None:
        """The store failed, or fenced the session; told on once."""
        if self.failure is None:
            self.failure = error
            self._on_failure(error)

    def warn(self, why: str) -> None:
        """Tell in `logging` what isn't durable, if anything."""
        if self.durable_seq < self._seq:
            first, last, name = self.durable_seq + 1, self._seq, self.lease.session
            _log.warning("session %r: events %d to %d aren't durable: %s", name, first, last, why)


def _groups_within(groups: Sequence[Sequence[bytes]], room: int) -> int:
    """How many of the groups fit, at least one."""
    for count, size in enumerate(map(len, groups)):
        room -= size
        if room < 0 and count > 0:
            return count
    return len(groups)
