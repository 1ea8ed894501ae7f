"""How appended events become durable: group commit, failure and retry, fencing, closing."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import attrs
import pytest
import trio
import trio.testing

from trioloop.errors import FencedError, StoreError, StoreFailedError
from trioloop.ids import SessionId
from trioloop.limits import Limits
from trioloop.ports import Append, CommitAnswer, Owner
from trioloop.store import MemoryStore
from trioloop.store.writer import Journal, StoreWriter

OWNER = Owner(1, "here")


class SlowStore(MemoryStore):
    """Commits take `delay_s`; with `error` set they raise it, before or after writing."""

    def __init__(self) -> None:
        super().__init__()
        self.delay_s: float = 0
        self.error: Exception | None = None
        self.fails_after_writing = False
        self.transactions: list[list[Append]] = []

    async def commit(self, appends: Sequence[Append]) -> list[CommitAnswer]:
        self.transactions.append(list(appends))
        await trio.sleep(self.delay_s)
        if self.error is not None and not self.fails_after_writing:
            raise self.error
        answers = await super().commit(appends)
        if self.error is not None:
            raise self.error
        return answers


@attrs.define
class Writing:
    """A store with a running writer, and what its journals were told."""

    store: SlowStore
    writer: StoreWriter
    durable: list[tuple[str, int]] = attrs.field(factory=list)
    failures: list[tuple[str, StoreError]] = attrs.field(factory=list)

    async def journal(self, session: str) -> Journal:
        lease = await self.store.open(SessionId(session), OWNER, create=True)
        return self.writer.journal(
            lease,
            crc=0,
            on_durable=lambda seq: self.durable.append((session, seq)),
            on_failure=lambda error: self.failures.append((session, error)),
        )


@asynccontextmanager
async def writing(limits: Limits | None = None) -> AsyncIterator[Writing]:
    store = SlowStore()
    world = Writing(store, StoreWriter(store, limits or Limits()))
    async with trio.open_nursery() as nursery:
        await nursery.start(world.writer.run)
        try:
            yield world
        finally:
            world.writer.close()


def put(journal: Journal, *seqs: int) -> None:
    journal.append([(seq, b"event %d" % seq) for seq in seqs])


async def test_a_checkpoint_makes_all_appended_durable(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with writing() as world:
        paris = await world.journal("paris")
        assert paris.durable_seq == -1
        put(paris, 0, 1)
        put(paris, 2)
        assert paris.durable_seq == -1
        await paris.checkpoint()
        assert paris.durable_seq == 2
        assert world.durable == [("paris", 2)]
        assert [row.seq for row in await world.store.read(SessionId("paris"))] == [0, 1, 2]
        with trio.testing.assert_checkpoints():
            await paris.checkpoint()
        assert len(world.store.transactions) == 1


async def test_nothing_is_committed_before_somebody_waits_or_the_age_is_reached(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with writing(Limits(commit_age_s=3)) as world:
        paris = await world.journal("paris")
        put(paris, 0)
        await trio.sleep(2)
        put(paris, 1)
        await trio.sleep(0.9)
        assert world.store.transactions == []
        await trio.sleep(0.2)
        assert paris.durable_seq == 1
        await trio.sleep(100)
        assert len(world.store.transactions) == 1


async def test_what_gathers_during_a_commit_shares_the_next_transaction(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with writing() as world:
        journals = [await world.journal(f"s{number}") for number in range(20)]
        world.store.delay_s = 5
        async with trio.open_nursery() as nursery:
            for journal in journals:
                put(journal, 0)
                nursery.start_soon(journal.checkpoint)
            await trio.sleep(1)
            for journal in journals:
                put(journal, 1)
                put(journal, 2)
                nursery.start_soon(journal.checkpoint)
        assert trio.current_time() == 10
        assert [len(batch) for batch in world.store.transactions] == [20, 20]
        assert all(journal.durable_seq == 2 for journal in journals)


async def test_a_waiter_for_rows_under_way_asks_for_no_further_commit(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with writing(Limits(commit_age_s=1_000)) as world:
        paris = await world.journal("paris")
        world.store.delay_s = 5
        async with trio.open_nursery() as nursery:
            put(paris, 0)
            nursery.start_soon(paris.checkpoint)
            await trio.sleep(1)
            nursery.start_soon(paris.checkpoint)
        assert trio.current_time() == 5
        assert len(world.store.transactions) == 1


async def test_appending_never_waits_for_a_slow_commit(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with writing() as world:
        paris, rome = await world.journal("paris"), await world.journal("rome")
        world.store.delay_s = 5
        async with trio.open_nursery() as nursery:
            put(paris, 0)
            nursery.start_soon(paris.checkpoint)
            await trio.sleep(1)
            put(rome, 0)
            put(paris, 1)
            assert trio.current_time() == 1
            await trio.sleep(1)
            assert paris.durable_seq == -1


async def test_a_full_transaction_leaves_the_rest_for_the_next_and_splits_no_append(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with writing(Limits(commit_events_max=4)) as world:
        paris, rome = await world.journal("paris"), await world.journal("rome")
        put(paris, 0, 1, 2)
        put(paris, 3, 4)
        put(rome, *range(9))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(paris.checkpoint)
            nursery.start_soon(rome.checkpoint)
        sizes = [
            {append.lease.session: len(append.rows) for append in batch}
            for batch in world.store.transactions
        ]
        assert sizes == [{"paris": 3, "rome": 9}, {"paris": 2}]


async def test_a_cancelled_checkpoint_leaves_its_events_on_their_way(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with writing() as world:
        paris = await world.journal("paris")
        world.store.delay_s = 5
        put(paris, 0)
        with trio.move_on_after(1):
            await paris.checkpoint()
        assert paris.durable_seq == -1
        await trio.sleep(5)
        assert paris.durable_seq == 0


async def test_a_host_cancel_stops_the_writer_only_once_it_is_closed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    store = SlowStore()
    world = Writing(store, StoreWriter(store, Limits()))
    paris = await world.journal("paris")
    store.delay_s = 2
    with trio.CancelScope() as host:
        async with trio.open_nursery() as nursery:
            await nursery.start(world.writer.run)
            put(paris, 0)
            host.cancel()
            with trio.CancelScope(shield=True):
                await trio.sleep(1)
                put(paris, 1)
                await paris.checkpoint()
            world.writer.close()
    assert paris.durable_seq == 1


async def test_closing_commits_what_is_appended(autojump_clock: trio.testing.MockClock) -> None:
    async with writing(Limits(commit_age_s=1_000)) as world:
        paris = await world.journal("paris")
        put(paris, 0)
        world.writer.close()
        world.writer.close()
    assert paris.durable_seq == 0
    assert trio.current_time() == 0


async def test_a_commit_that_hangs_at_the_end_is_left_after_close_s_and_named(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with writing(Limits(close_s=7)) as world, trio.open_nursery() as nursery:
        paris, rome = await world.journal("paris"), await world.journal("rome")
        put(rome, 0)
        await rome.checkpoint()
        world.store.delay_s = 1_000_000
        put(paris, 0, 1, 2)
        errors: list[StoreFailedError] = []

        async def wait() -> None:
            try:
                await paris.checkpoint()
            except StoreFailedError as error:
                errors.append(error)

        nursery.start_soon(wait)
        await trio.sleep(1)
        world.writer.close()
    assert trio.current_time() == 8
    assert len(errors) == 1
    assert [record.getMessage() for record in caplog.records] == [
        "session 'paris': events 0 to 2 aren't durable: the store took longer than 7 s"
    ]


async def test_a_writer_that_ended_leaves_nobody_waiting(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with writing() as world:
        paris = await world.journal("paris")
    put(paris, 0)
    for wait in (paris.checkpoint, paris.retry):
        with pytest.raises(StoreFailedError, match="has ended"):
            await wait()
    late = await world.journal("rome")
    with pytest.raises(StoreFailedError, match="has ended"):
        await late.checkpoint()


# Failure


@pytest.mark.parametrize("fails_after_writing", [False, True])
@pytest.mark.parametrize("error", [StoreFailedError("no space"), OSError("no space")])
async def test_a_failed_store_tells_each_journal_once_and_loses_nothing(
    autojump_clock: trio.testing.MockClock, error: Exception, fails_after_writing: bool
) -> None:
    async with writing() as world:
        paris, rome = await world.journal("paris"), await world.journal("rome")
        put(paris, 0)
        await paris.checkpoint()
        world.store.error, world.store.fails_after_writing = error, fails_after_writing
        put(paris, 1, 2)
        with pytest.raises(StoreFailedError, match="no space"):
            await paris.checkpoint()
        assert [session for session, _ in world.failures] == ["paris", "rome"]
        put(paris, 3)
        put(rome, 0)
        for journal in (paris, rome):
            assert isinstance(journal.failure, StoreFailedError)
            with pytest.raises(StoreFailedError, match="no space"):
                await journal.checkpoint()
        attempts = len(world.store.transactions)
        await trio.sleep(1_000)
        assert len(world.store.transactions) == attempts
        with pytest.raises(StoreFailedError, match="no space"):
            await paris.retry()
        assert len(world.failures) == 2

        world.store.error = None
        await paris.retry()
        assert paris.durable_seq == 3
        assert paris.failure is None
        assert rome.failure is None
        await rome.checkpoint()
        assert [row.seq for row in await world.store.read(SessionId("paris"))] == [0, 1, 2, 3]
        world.store.error = error
        put(rome, 1)
        with pytest.raises(StoreFailedError):
            await rome.checkpoint()
        assert len(world.failures) == 4
        world.store.error = None
    assert rome.durable_seq == 1


async def test_a_retry_with_nothing_kept_still_asks_the_store(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with writing() as world:
        paris, rome = await world.journal("paris"), await world.journal("rome")
        world.store.error = OSError("broken")
        put(paris, 0)
        with pytest.raises(StoreFailedError):
            await paris.checkpoint()
        await paris.release()
        with pytest.raises(StoreFailedError):
            await rome.retry()
        world.store.error = None
        await rome.retry()
        assert rome.failure is None


async def test_what_a_failed_store_kept_is_tried_once_more_at_the_end(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with writing() as world:
        paris = await world.journal("paris")
        world.store.error = OSError("broken")
        put(paris, 0)
        with pytest.raises(StoreFailedError):
            await paris.checkpoint()
    assert len(world.store.transactions) == 2
    assert "events 0 to 0 aren't durable: the store failed" in caplog.text


async def test_a_fenced_session_concerns_nobody_else(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with writing() as world:
        paris, rome = await world.journal("paris"), await world.journal("rome")
        await world.store.release(paris.lease)
        await world.store.open(SessionId("paris"), OWNER, create=False)
        put(paris, 0)
        put(rome, 0)
        with pytest.raises(FencedError):
            await paris.checkpoint()
        await rome.checkpoint()
        assert [session for session, _ in world.failures] == ["paris"]
        put(paris, 1)
        for wait in (paris.checkpoint, paris.retry):
            with pytest.raises(FencedError):
                await wait()
        assert len(world.store.transactions) == 1
        assert await world.store.read(SessionId("paris")) == []


async def test_release_commits_first_and_gives_the_lease_back(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with writing() as world:
        paris = await world.journal("paris")
        put(paris, 0)
        await paris.release()
        assert caplog.records == []
        lease = await world.store.open(SessionId("paris"), OWNER, create=False)
        assert lease.next_seq == 1


async def test_a_release_that_is_cancelled_still_gives_the_lease_back_and_warns(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with writing() as world:
        paris = await world.journal("paris")
        world.store.delay_s = 100
        put(paris, 0)
        with trio.move_on_after(1):
            await paris.release()
        await world.store.open(SessionId("paris"), OWNER, create=False)
        world.store.delay_s = 0
    record = caplog.records[0]
    assert record.levelno == logging.WARNING
    assert "session 'paris': events 0 to 0" in record.getMessage()


# Every schedule


class CancelBefore(trio.abc.Instrument):
    """Cancels a scope before the step `number` of the tasks with a given name."""

    def __init__(self, number: int, task_name: str, scope: trio.CancelScope) -> None:
        self.left = number
        self.task_name = task_name
        self.scope = scope

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if self.task_name in task.name:
            self.left -= 1
            if self.left == 0:
                self.scope.cancel()


async def survives_cancel_at(step: int) -> bool:
    """Cancel a task that appends and waits before its step; whether it got that far."""
    async with writing() as world:
        paris = await world.journal("paris")
        world.store.delay_s = 1
        scope = trio.CancelScope()

        async def acting() -> None:
            with scope:
                put(paris, 0, 1)
                await paris.checkpoint()
                put(paris, 2)
                await paris.checkpoint()

        instrument = CancelBefore(step, "acting", scope)
        trio.lowlevel.add_instrument(instrument)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(acting)
        finally:
            trio.lowlevel.remove_instrument(instrument)
        appended = paris._seq
    assert paris.durable_seq == appended
    assert len(await world.store.read(SessionId("paris"))) == appended + 1
    return instrument.left <= 0


def test_a_checkpoint_cancelled_at_any_step_loses_nothing() -> None:
    step = 1
    while trio.run(survives_cancel_at, step, clock=trio.testing.MockClock(autojump_threshold=0)):
        step += 1
    assert step > 3
