"""cancel: from the cancel to `turn/end` in the log: in a tool, in ten tools, in a stream.

The baseline is Trio's own cancel of as many sleeping tasks, and the join.
"""

from collections.abc import AsyncGenerator

import attrs
import trio
from trio.testing import wait_all_tasks_blocked

import trioloop
from bench.observed import observed_agent
from bench.prepared_model import PreparedModel, Reads, calls_of
from bench.report import Figure, compared
from bench.timing import Effort, Spent, Stopwatch, alternate, median_of
from trioloop.chunks import TextDelta
from trioloop.events import TurnEnded

NAME = "cancel"
CANCELS = 30  # of one timing; their median counts
SILENCE: Reads = ((TextDelta("so far"),),)


async def sleeping(index: int) -> None:
    """Sleep until it is cancelled."""
    await trio.sleep_forever()


async def run(effort: Effort) -> AsyncGenerator[Figure, None]:
    """All cases."""
    yield await _case(effort, "tool", calls_of("sleeping", 1), 1)
    yield await _case(effort, "ten-tools", calls_of("sleeping", 10), 10)
    yield await _case(effort, "stream", SILENCE, 1)


async def _case(effort: Effort, case: str, reads: Reads, tasks: int) -> Figure:
    cancels = effort.size(CANCELS)

    async def ours() -> Spent:
        return await _of_turns(reads, cancels)

    async def baseline() -> Spent:
        return median_of([await _of_tasks(tasks) for _ in range(cancels)])

    timings = await alternate(ours, baseline, effort.runs)
    versus = f"cancel and join of {tasks} {'task' if tasks == 1 else 'tasks'}"
    return compared(NAME, case, timings, unit="us", clock="wall", versus=versus)


async def _of_turns(reads: Reads, cancels: int) -> Spent:
    """Some turns of a new agent, each cancelled when everything sleeps."""
    model = PreparedModel(lambda request: reads, stalls=reads is SILENCE)
    tool = trioloop.tool(effects="read-only")(sleeping)
    async with observed_agent(model, [tool]) as agent:
        ends = _Ends()
        with agent.session.observe(ends):
            return median_of([await ends.of_turn(agent) for _ in range(cancels + 1)][1:])


@attrs.define(eq=False)
class _Ends:
    """Stops the watch when a turn ends."""

    watch: Stopwatch = attrs.field(factory=Stopwatch)

    def __call__(self, event: trioloop.Event) -> None:
        if isinstance(event.data, TurnEnded):
            self.watch.stop()

    async def of_turn(self, agent: trioloop.Agent) -> Spent:
        """Open a turn, cancel it, and tell how long its end took."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.ask, "go")
            await wait_all_tasks_blocked()
            self.watch.start()
            agent.cancel()
        return self.watch.spent


async def _of_tasks(tasks: int) -> Spent:
    watch = Stopwatch()
    async with trio.open_nursery() as nursery:
        for index in range(tasks):
            nursery.start_soon(sleeping, index)
        await wait_all_tasks_blocked()
        watch.start()
        nursery.cancel_scope.cancel()
    watch.stop()
    return watch.spent
