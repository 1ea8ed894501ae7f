"""What idle agents are compared with: tasks that wait in a nursery of their own."""

import gc
import tracemalloc
from collections.abc import Awaitable, Callable

import trio
from trio.testing import wait_all_tasks_blocked


async def parked_tasks(nursery: trio.Nursery, count: int) -> None:
    """Start tasks with a nursery each, and wait until all of them wait."""
    for _ in range(count):
        nursery.start_soon(_park)
    await wait_all_tasks_blocked()


async def _park() -> None:
    async with trio.open_nursery():
        await trio.sleep_forever()


async def bytes_allocated(make: Callable[[], Awaitable[object]]) -> int:
    """Bytes that Python allocated and still holds when something is made, as tracemalloc counts."""
    gc.collect()
    tracemalloc.start()
    try:
        await make()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
