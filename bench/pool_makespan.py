"""pool-makespan: how long 64 calls of different lengths take together."""

import heapq
from collections.abc import AsyncGenerator

import trio

from bench.raw_trio import workers
from bench.report import Figure, compared
from bench.timing import Effort, alternate, timed
from trioloop.tools.pool import Call, run_calls

NAME = "pool-makespan"
LIMIT = 8
DURATIONS_MS = tuple(index * 37 % 50 + 5 for index in range(64))


async def body(index: int) -> None:
    """Take as long as that call takes."""
    await trio.sleep(DURATIONS_MS[index] / 1e3)


async def run(effort: Effort) -> AsyncGenerator[Figure, None]:
    """The one case."""
    count = effort.size(len(DURATIONS_MS))
    calls = [Call(body, (index,)) for index in range(count)]
    timings = await alternate(
        timed(lambda: run_calls(calls, limit=LIMIT)),
        timed(lambda: workers(body, range(count), LIMIT)),
        effort.runs,
    )
    yield compared(
        NAME,
        f"calls-{count}",
        timings,
        unit="ms",
        clock="wall",
        versus="raw-trio",
        list_scheduling_ms=list_scheduling(count),
    )


def list_scheduling(count: int) -> float:
    """The makespan of so many calls on a machine without any overhead, in milliseconds."""
    free = [0.0] * LIMIT
    for duration in DURATIONS_MS[:count]:
        heapq.heapreplace(free, free[0] + duration)
    return max(free)
