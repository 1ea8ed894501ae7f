"""What one would write by hand on Trio: the baselines of the pool."""

from collections.abc import Awaitable, Callable, Sequence

import trio

Body = Callable[[int], Awaitable[object]]


async def nursery_with_limiter(body: Body, count: int, limit: int) -> list[object]:
    """A task for each call, and a CapacityLimiter."""
    limiter = trio.CapacityLimiter(limit)
    results: list[object] = [None] * count

    async def one(index: int) -> None:
        async with limiter:
            results[index] = await body(index)

    async with trio.open_nursery() as nursery:
        for index in range(count):
            nursery.start_soon(one, index)
    return results


async def workers(body: Body, indexes: Sequence[int], limit: int) -> list[object]:
    """`limit` workers, each of which takes the next index."""
    results: list[object] = []
    following = iter(indexes)

    async def work() -> None:
        for index in following:
            results.append(await body(index))  # noqa: PERF401

    async with trio.open_nursery() as nursery:
        for _ in range(limit):
            nursery.start_soon(work)
    return results
