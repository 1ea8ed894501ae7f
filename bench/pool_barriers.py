"""pool-barriers: 56 concurrent calls with 8 barriers between them."""

from collections.abc import AsyncIterator

import trio

from bench.raw_trio import workers
from bench.report import Figure, alternate, wall_time
from trioloop.tools.pool import Call, run_calls

NAME = "pool-barriers"
LIMIT = 8
GROUPS = 8
GROUP_SIZE = 7
SECONDS = 0.010
RUNS = 7


async def body(index: int) -> None:
    """Take 10 ms."""
    await trio.sleep(SECONDS)


async def run() -> AsyncIterator[Figure]:
    """The one case."""
    group = [*[Call(body, (0,))] * GROUP_SIZE, Call(body, (0,), "barrier")]
    calls = group * GROUPS
    ours, baseline = await alternate(
        wall_time(lambda: run_calls(calls, limit=LIMIT)), wall_time(_by_hand), RUNS
    )
    # A group overlaps whole, as it is smaller than the limit; its barrier runs behind it.
    facts: dict[str, float | int | str] = {"ideal_ms": GROUPS * 2 * SECONDS * 1e3}
    yield Figure(NAME, "groups-8", "ms", tuple(ours), "raw-trio", tuple(baseline), facts)


async def _by_hand() -> None:
    for _ in range(GROUPS):
        await workers(body, range(GROUP_SIZE), LIMIT)
        await body(0)
