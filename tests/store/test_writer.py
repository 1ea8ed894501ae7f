"""How appended events become durable: group commit, on demand or by age, and closing."""

import pytest
import trio
import trio.testing

from tests.store.writing import SlowStore, Writing, put, writing
from trioloop.errors import StoreFailedError
from trioloop.ids import SessionId
from trioloop.limits import Limits
from trioloop.store.writer import StoreWriter


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


async def test_a_transaction_that_is_exactly_full_takes_nobody_else_s(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with writing(Limits(commit_events_max=2)) as world:
        paris, rome = await world.journal("paris"), await world.journal("rome")
        put(paris, 0, 1)
        put(rome, 0)
        await rome.checkpoint()
        assert [[len(append.rows) for append in batch] for batch in world.store.transactions] == [
            [2],
            [1],
        ]


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
            async with trio.open_nursery() as nursery:  # noqa: ASYNC112 - a task of its own
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
