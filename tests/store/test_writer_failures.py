"""What the writer does when its store fails, fences a session, or is left in the middle."""

import logging

import pytest
import trio
import trio.testing

from tests.store.writing import OWNER, put, writing
from trioloop.errors import FencedError, StoreFailedError
from trioloop.ids import SessionId
from trioloop.limits import Limits


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


async def test_a_release_gives_the_lease_back_though_the_store_fails(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with writing() as world:
        paris = await world.journal("paris")
        world.store.error = StoreFailedError("no space")
        put(paris, 0)
        await paris.release()
        await world.store.open(SessionId("paris"), OWNER, create=False)


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


async def test_what_is_appended_while_a_store_recovers_is_committed_unasked(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with writing(Limits(commit_age_s=3)) as world:
        paris = await world.journal("paris")
        world.store.error = OSError("broken")
        put(paris, 0)
        with pytest.raises(StoreFailedError):
            await paris.checkpoint()
        world.store.error, world.store.delay_s = None, 5
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.writer.retry)
            await trio.sleep(1)
            put(paris, 1)
        assert paris.durable_seq == 0
        await trio.sleep(60)
        assert paris.durable_seq == 1
