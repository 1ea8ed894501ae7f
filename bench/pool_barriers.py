"""pool-barriers: 56 concurrent calls with 8 barriers between them."""

from collections.abc import AsyncGenerator

import trio

from bench.raw_trio import workers
from bench.report import Figure, compared
from bench.timing import Effort, alternate, timed
from trioloop.tools.pool import Call, run_calls

NAME = "pool-barriers"
LIMIT = 8
GROUPS = 8
GROUP_SIZE = 7
SECONDS = 0.010


async def body(index: int) -> None:
    """Take 10 ms."""
    await trio.sleep(SECONDS)


async def run(effort: Effort) -> AsyncGenerator[Figure, None]:
    """The one case."""
    groups = effort.size(GROUPS)
    group = [*[Call(body, (0,))] * GROUP_SIZE, Call(body, (0,), "barrier")]
    timings = await alternate(
        timed(lambda: run_calls(group * groups, limit=LIMIT)),
        timed(lambda: _by_hand(groups)),
        effort.runs,
    )
    # A group overlaps whole, as it is smaller than the limit; its barrier runs behind it.
    yield compared(
        NAME,
        f"groups-{groups}",
        timings,
        unit="ms",
        clock="wall",
        versus="raw-trio",
        ideal_ms=groups * 2 * SECONDS * 1e3,
    )


async def _by_hand(groups: int) -> None:
    for _ in range(groups):
        await workers(body, range(GROUP_SIZE), LIMIT)
        await body(0)
