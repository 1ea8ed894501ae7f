"""step-growth: what a step costs in turns of 50, 200, 800 and 2000 steps.

Each step is one no-op call, and its request's body is built, as an adapter does. The baseline is
turns of 50 steps, as many steps in all. The last 50 steps of a turn are told, too (`last_us`): if
each step cost more than the one before it, they would show it twice as clearly as the average.
"""

import statistics
import time
from collections.abc import AsyncGenerator
from itertools import count

import attrs

import trioloop
from bench.observed import observed_agent
from bench.prepared_model import DONE, PreparedModel, Reads, calls_of
from bench.report import Figure, compared
from bench.timing import Effort, Spent, Stopwatch, alternate, sum_of

NAME = "step-growth"
SHORT = 50
SIZES = (50, 200, 800, 2000)


@attrs.define
class _LongTurn:
    """A turn of some steps, each of which has one call."""

    steps: int
    numbers: "count[int]" = attrs.field(factory=count)
    ended: list[float] = attrs.field(factory=list)  # CPU time at each call

    def answer(self, request: trioloop.Request) -> Reads:
        number = next(self.numbers)
        return calls_of("noop", 1, number) if number < self.steps - 1 else DONE

    async def noop(self, index: int) -> int:
        """Do nothing."""
        self.ended.append(time.process_time())
        return index

    def cost_of_last(self, steps: int) -> float:
        """Microseconds of CPU for each of the last steps but one, which has the answer."""
        ended = self.ended[-steps:]
        return (ended[-1] - ended[0]) / (len(ended) - 1) * 1e6

    async def run(self) -> tuple[Spent, int]:
        """Run it on a new agent; what it took, and how many events it wrote."""
        tool = trioloop.tool(effects="read-only")(self.noop)
        async with observed_agent(PreparedModel(self.answer, encodes=True), [tool]) as agent:
            before = agent.session.seq
            with Stopwatch() as watch:
                await agent.ask("go")
            return watch.spent, agent.session.seq - before


async def run(effort: Effort) -> AsyncGenerator[Figure, None]:
    """All cases."""
    for size in effort.sizes(SIZES, at_least=3):
        yield await _at(effort, size)


async def _at(effort: Effort, size: int) -> Figure:
    short = min(size, SHORT)
    events = [0]
    last: list[float] = []

    async def long() -> Spent:
        turn = _LongTurn(size)
        spent, events[0] = await turn.run()
        last.append(turn.cost_of_last(short))
        return spent / size

    async def shorter() -> Spent:
        turns = [await _LongTurn(short).run() for _ in range(max(1, size // short))]
        return sum_of([spent for spent, _ in turns]) / (len(turns) * short)

    timings = await alternate(long, shorter, effort.runs)
    return compared(
        NAME,
        f"at-{size}",
        timings,
        unit="us/step",
        versus=f"turns of {short} steps",
        last_us=round(statistics.median(last), 1),
        events=events[0],
    )
