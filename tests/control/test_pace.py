"""Turns for live frames: in order, so many in a beat, and fewer where the thread is busy."""

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trioloop.control.pace import Pace


async def taken(pace: Pace, count: int, seconds: float) -> list[int]:
    """Who of so many got turns in that time, each taking one after the other."""
    order = list[int]()

    async def take(number: int) -> None:
        while True:
            await pace.turn()
            order.append(number)
            await trio.sleep(0.001)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(pace.beat)
        for number in range(count):
            nursery.start_soon(take, number)
            await wait_all_tasks_blocked()
        await trio.sleep(seconds)
        nursery.cancel_scope.cancel()
    return order


async def test_a_few_who_read_wait_for_nothing(autojump_clock: MockClock) -> None:
    pace = Pace(2_000)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pace.beat)
        for _ in range(100):
            await pace.turn()
            await trio.sleep(0.001)
        assert round(trio.current_time(), 3) == 0.1
        nursery.cancel_scope.cancel()


async def test_many_share_what_there_is_evenly(autojump_clock: MockClock) -> None:
    order = await taken(Pace(1_000), 100, seconds=2)
    shares = [order.count(number) for number in range(100)]
    assert 1_900 <= len(order) <= 2_100
    assert max(shares) - min(shares) <= 2


async def test_a_busy_thread_has_fewer_turns_and_all_of_them_again_later(
    mock_clock: MockClock,
) -> None:
    pace, turns = Pace(1_000), list[None]()

    async def take() -> None:
        while True:
            await pace.turn()
            turns.append(None)

    async def in_beats(count: int, length_s: float) -> int:
        """How many turns there were in so many beats of that length."""
        before = len(turns)
        for _ in range(count):
            mock_clock.jump(length_s)
            await wait_all_tasks_blocked()
        return len(turns) - before

    async with trio.open_nursery() as nursery:
        nursery.start_soon(pace.beat)
        nursery.start_soon(take)
        await wait_all_tasks_blocked()
        assert await in_beats(10, 0.02) == 200
        await in_beats(10, 0.1)
        assert await in_beats(10, 0.1) == 10, "each beat was late"
        await in_beats(60, 0.02)
        assert await in_beats(10, 0.02) == 200
        nursery.cancel_scope.cancel()


async def test_nothing_goes_on_while_nobody_asks(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Pace(1_000).beat)
        await wait_all_tasks_blocked()
        assert trio.lowlevel.current_statistics().seconds_to_next_deadline == float("inf")
        nursery.cancel_scope.cancel()
