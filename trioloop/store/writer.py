"""The one task that carries appended events into a store: group commit without a timer.

Sessions append to their `Journal` in memory and never wait. The writer takes whatever gathered
while it committed last, of all sessions, as one transaction. It begins when somebody waits for
durability, or when the oldest event has waited `commit_age_s`. Nobody but those who wait notices
how long a commit takes.

- Who asks for a commit waits a pass of Trio's scheduler; where that brings something new, a few
  passes that bring nothing. So tasks which append in the same moment share a commit.
- The writer shields itself and ends only when it is closed (R9).
- An append is never split over two transactions, and one that failed is repeated as it was, so
  that a store recognises it.
- After a failure nothing is committed until a journal retries (D3); rows stay in memory.
- A refused append concerns its own journal only (P20).
"""

import math
from collections.abc import Callable
from typing import TypeAlias

import trio

from trioloop.errors import StoreError, StoreFailedError
from trioloop.limits import Limits
from trioloop.ports import Append, CommitAnswer, Lease, Refused, SessionStore
from trioloop.store.journal import Journal

__all__ = ["Journal", "StoreWriter"]


_QUIET_PASSES = 3  # of Trio's scheduler: more than lie between the starts of two calls
_PASSES_MAX = 64  # a bound for who appends in each of them
_Batch: TypeAlias = list[tuple[Journal, Append]]


class StoreWriter:
    """Commits for all sessions of a runtime. `run` is its task, `journal` its way in.

    Args:
        store: where to.
        limits: `commit_age_s`, `commit_events_max` and `close_s` are used.
    """

    def __init__(self, store: SessionStore, limits: Limits) -> None:
        self._store = store
        self._limits = limits
        self._journals: dict[Journal, None] = {}
        self._dirty: dict[Journal, None] = {}  # with rows to commit, in order of their first
        self._dirty_since = math.inf
        self._stirred = False  # something new has come, or will from whom the last commit woke
        self._demanded = False
        self._closing = False
        self._ended = False
        self._failure: StoreFailedError | None = None
        self._scope = trio.CancelScope(shield=True)  # ends when closed, by close_s at the latest
        self._wake = trio.Event()  # somebody asks for a commit
        self._clean: trio.Event | None = None  # ends when there is something to commit again
        self._gathering: trio.Event | None = None  # the end of the next batch
        self._committing: trio.Event | None = None  # the end of the batch in its commit

    def journal(
        self,
        lease: Lease,
        *,
        crc: int,
        on_durable: Callable[[int], None],
        on_failure: Callable[[StoreError], None],
    ) -> Journal:
        """A new way in for one session.

        Args:
            lease: the right to write it.
            crc: the chained CRC-32 of its last durable row; 0 for a new session.
            on_durable: called in the Trio thread with the last durable seq after each commit.
            on_failure: called there once when the store fails or fences the session, and once
                more for each failure after a retry that succeeded.
        """
        journal = Journal(self, lease, crc, on_durable, on_failure)
        journal.failure = self._failure
        self._journals[journal] = None
        return journal

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Commit until closed, whatever is cancelled around it (R9).

        After `close` it has a bounded time for what is left; a commit that hangs longer is
        abandoned, and `logging` tells what isn't durable.
        """
        try:
            with self._scope:
                task_status.started()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._watch_age)
                    while self._dirty or self._demanded or not self._closing:
                        await self._until_asked()
                        await self._until_quiet()
                        await self._commit()
                    nursery.cancel_scope.cancel()
        finally:
            self._end()

    def close(self, *, by: float | None = None) -> None:
        """Commit what is appended, then end. Synchronous; closing again does nothing.

        Args:
            by: on Trio's clock, when it ends at the latest; None: `close_s` from now.
        """
        if not self._closing:
            self._closing = True
            self._scope.deadline = trio.current_time() + self._limits.close_s if by is None else by
            self._collect_kept()
            self._wake.set()

    # What journals ask

    def note(self, journal: Journal) -> None:
        """A journal has something new."""
        if not self._dirty:
            self._dirty_since = trio.current_time()
            clean, self._clean = self._clean, None
            if clean is not None:
                clean.set()
        self._dirty[journal] = None
        self._stirred = True

    async def batch_end(self, journal: Journal, target: int) -> None:
        """Wait for the end of the batch that takes a journal's row, and ask for it if need be."""
        if journal.is_under_way(target):
            if self._committing is None:
                self._committing = trio.Event()
            await self._committing.wait()
        else:
            await self._next_batch().wait()

    async def retry(self) -> None:
        """Commit what all journals kept, whatever has failed, and wait for the end of it."""
        self._collect_kept()
        await self._next_batch().wait()

    async def give_back(self, journal: Journal) -> None:
        """Forget a journal and give its lease back."""
        self._journals.pop(journal, None)
        self._dirty.pop(journal, None)
        await self._store.release(journal.lease)

    def _collect_kept(self) -> None:
        for journal in self._journals:
            if isinstance(journal.failure, StoreFailedError) and journal.has_rows:
                self.note(journal)

    def _next_batch(self) -> trio.Event:
        """The end of the next batch, which is now due; at once where there won't be one."""
        if self._gathering is None:
            self._gathering = trio.Event()
        done = self._gathering
        if self._ended:
            done.set()
        if not self._demanded:
            self._demanded = True
            self._stirred = False
            self._wake.set()
        return done

    # The task

    async def _until_asked(self) -> None:
        if not (self._demanded or self._closing):
            self._wake = trio.Event()
            await self._wake.wait()

    async def _until_quiet(self) -> None:
        """Let those who are about to append do so: the calls of a batch start one by one (T6)."""
        quiet, enough = 0, 1
        for _ in range(_PASSES_MAX):
            await trio.lowlevel.checkpoint()
            quiet += 1
            if self._stirred:
                self._stirred = False
                quiet, enough = 0, _QUIET_PASSES
            if quiet == enough:
                return

    async def _watch_age(self) -> None:
        """See to it that no event waits longer than `commit_age_s` for a commit to be asked for."""
        while True:
            while not self._dirty:
                self._clean = trio.Event()
                await self._clean.wait()
            await trio.sleep_until(self._due)
            if self._dirty and self._due <= trio.current_time():  # others may have asked meanwhile
                await self._next_batch().wait()

    @property
    def _due(self) -> float:
        """When the oldest event has waited long enough."""
        return self._dirty_since + self._limits.commit_age_s

    def _gather(self) -> _Batch:
        """What goes into the next transaction; the rest stays for the one after it."""
        room = self._limits.commit_events_max
        batch: _Batch = []
        for journal in tuple(self._dirty):
            append = journal.take(room)
            if append is not None:
                batch.append((journal, append))
                room -= len(append.rows)
            if not journal.has_more:
                del self._dirty[journal]
            if room <= 0:
                break
        if not self._dirty:
            self._dirty_since = math.inf
        return batch

    async def _commit(self) -> None:
        batch = self._gather()
        if batch or self._demanded:
            self._demanded = False
            self._committing, self._gathering = self._gathering, None
            await self._commit_batch(batch)
            done, self._committing = self._committing, None
            if done is not None:
                done.set()
                self._stirred = True

    async def _commit_batch(self, batch: _Batch) -> None:
        try:
            answers = await self._store.commit([append for _, append in batch])
            settled = list(zip(batch, answers, strict=True))
        except Exception as error:  # whatever a store raises, it has failed
            self._fail(error)
            return
        self._recover()
        for (journal, append), answer in settled:
            self._settle(journal, append, answer)

    def _fail(self, error: Exception) -> None:
        failure = error if isinstance(error, StoreFailedError) else _failure_of(error)
        self._failure = failure
        self._dirty.clear()
        self._dirty_since = math.inf
        for journal in tuple(self._journals):
            journal.failed(failure)

    def _recover(self) -> None:
        """The store works: all that failed with it go on."""
        if self._failure is None:
            return
        self._failure = None
        for journal in self._journals:
            if isinstance(journal.failure, StoreFailedError):
                journal.failure = None
                if journal.has_rows:
                    self.note(journal)

    def _settle(self, journal: Journal, append: Append, answer: CommitAnswer) -> None:
        if not isinstance(answer, Refused):
            journal.landed(append)
            return
        self._dirty.pop(journal, None)
        error = answer.error
        journal.failed(error if isinstance(error, StoreError) else _failure_of(error))

    def _end(self) -> None:
        """Leave nobody waiting, and tell what isn't durable."""
        self._ended = True
        why = self._failure or StoreFailedError("the store's writer has ended")
        self._failure = why
        for journal in self._journals:
            journal.warn(_end_reason(journal, self._scope.cancelled_caught, self._limits.close_s))
            journal.failure = journal.failure or why
        for event in (self._committing, self._gathering):
            if event is not None:
                event.set()


def _failure_of(error: Exception) -> StoreFailedError:
    failure = StoreFailedError(f"the store failed: {error!r}")
    failure.__cause__ = error
    return failure


def _end_reason(journal: Journal, hung: bool, close_s: float) -> str:
    if journal.failure is None and hung:
        return f"the store took longer than {close_s:g} s"
    return str(journal.failure or "the store's writer has ended")
