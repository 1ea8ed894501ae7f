"""pool-makespan: how long 64 calls of different lengths take together."""

import heapq
from collections.abc import AsyncIterator

import trio

from bench.raw_trio import workers
from bench.report import Figure, alternate, wall_time
from trioloop.tools.pool import Call, run_calls

NAME = "pool-makespan"
LIMIT = 8
DURATIONS_MS = tuple(index * 37 % 50 + 5 for index in range(64))
RUNS = 7


async def body(index: int) -> None:
    """Take as long as that call takes."""
    await trio.sleep(DURATIONS_MS[index] / 1e3)


async def run() -> AsyncIterator[Figure]:
    """The one case."""
    calls = [Call(body, (index,)) for index in range(len(DURATIONS_MS))]
    ours, baseline = await alternate(
        wall_time(lambda: run_calls(calls, limit=LIMIT)),
        wall_time(lambda: workers(body, range(len(calls)), LIMIT)),
        RUNS,
    )
    facts: dict[str, float | int | str] = {"list_scheduling_ms": list_scheduling()}
    yield Figure(NAME, "calls-64", "ms", tuple(ours), "raw-trio", tuple(baseline), facts)


def list_scheduling() -> float:
    """The makespan of the calls on a machine without any overhead, in milliseconds."""
    free = [0.0] * LIMIT
    for duration in DURATIONS_MS:
        heapq.heapreplace(free, free[0] + duration)
    return max(free)
