"""turn-growth: what a turn costs after 1000 turns on one session, to what the first ones cost."""

from collections.abc import AsyncGenerator

import trioloop
from bench.observed import observed_agent
from bench.prepared_model import DONE, PreparedModel
from bench.report import Figure, compared
from bench.timing import Effort, Spent, Stopwatch, Timings

NAME = "turn-growth"
TURNS = 1000
COUNTED = 100


async def run(effort: Effort) -> AsyncGenerator[Figure, None]:
    """The one case."""
    turns, counted = max(3, effort.size(TURNS)), effort.size(COUNTED)
    first: list[Spent] = []
    last: list[Spent] = []
    events = 0
    for run in range(effort.runs + 1):
        async with observed_agent(PreparedModel(lambda request: DONE, encodes=True)) as agent:
            await agent.ask("hello")
            of_first = await _spent_by(agent, counted)
            for _ in range(turns - 2 * counted):
                await agent.ask("go")
            of_last = await _spent_by(agent, counted)
            events = agent.session.seq + 1
        if run:  # the first session only warms up
            first.append(of_first)
            last.append(of_last)
    yield compared(
        NAME,
        f"last-{counted}-of-{turns}",
        Timings(tuple(last), tuple(first)),
        unit="us/turn",
        versus=f"the first {counted}",
        events=events,
    )


async def _spent_by(agent: trioloop.Agent, turns: int) -> Spent:
    with Stopwatch() as watch:
        for _ in range(turns):
            await agent.ask("go")
    return watch.spent / turns
