"""turn-growth: the last 100 of 1000 plain turns on one session, to the first 100 of another.

The two sessions take their turns one after the other, so both meet the same machine.
"""

import gc
from collections.abc import AsyncGenerator

import trioloop
from bench.observed import observed_agent
from bench.prepared_model import DONE, PreparedModel
from bench.report import Figure, compared
from bench.timing import Effort, Spent, Stopwatch, Timings, sum_of

NAME = "turn-growth"
TURNS = 1000
COUNTED = 100


async def run(effort: Effort) -> AsyncGenerator[Figure, None]:
    """The one case."""
    turns, counted = max(3, effort.size(TURNS)), effort.size(COUNTED)
    pairs = [await _pair(turns, counted) for _ in range(effort.runs + 1)]
    last, first = zip(*pairs[1:], strict=True)  # the first pair only warms up
    yield compared(
        NAME,
        f"last-{counted}-of-{turns}",
        Timings(last, first),
        unit="us/turn",
        versus=f"the first {counted}",
        sessions=2 * effort.runs,
    )


async def _pair(turns: int, counted: int) -> tuple[Spent, Spent]:
    """What a turn took on an old session and on a new one."""
    model = PreparedModel(lambda request: DONE, encodes=True)
    async with observed_agent(model) as old, observed_agent(model) as new:
        for _ in range(turns - counted):
            await old.ask("go")
        await new.ask("hello")
        gc.collect()
        spent = [(await _turn(old), await _turn(new)) for _ in range(counted)]
    of_old, of_new = zip(*spent, strict=True)
    return sum_of(of_old) / counted, sum_of(of_new) / counted


async def _turn(agent: trioloop.Agent) -> Spent:
    with Stopwatch(collects=False) as watch:
        await agent.ask("go")
    return watch.spent
