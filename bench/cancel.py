"""cancel: from the cancel to `turn/end` in the log: in a tool, in ten tools, in a stream.

The baseline is Trio's own cancel of as many sleeping tasks, and the join. Nothing waits between a
cancel and the end, so CPU time is the whole of it, without what other processes took meanwhile.
`bare` cases have no listeners, subscriber or watcher.
"""

import gc
from collections.abc import AsyncGenerator

import attrs
import trio
from trio.testing import wait_all_tasks_blocked

import trioloop
from bench.observed import listen, observed_agent
from bench.prepared_model import PreparedModel, Reads, calls_of
from bench.report import Figure, compared
from bench.timing import Effort, Spent, Stopwatch, Timings, median_of
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
    one, ten = calls_of("sleeping", 1), calls_of("sleeping", 10)
    for observed in (True, False):
        about = "" if observed else "bare-"
        yield await _case(effort, f"{about}tool", one, 1, observed=observed)
        yield await _case(effort, f"{about}ten-tools", ten, 10, observed=observed)
        yield await _case(effort, f"{about}stream", SILENCE, 1, observed=observed)


async def _case(effort: Effort, case: str, reads: Reads, tasks: int, *, observed: bool) -> Figure:
    """Cancel turns and tasks in turn, one by one: both find the caches as the other left them."""
    model = PreparedModel(lambda request: reads, stalls=reads is SILENCE)
    tool = trioloop.tool(effects="read-only")(sleeping)
    ours, baseline = [], []
    async with observed_agent(
        model, [tool], hooks=(listen,) if observed else (), watched=observed, subscribed=observed
    ) as agent:
        ends = _Ends()
        with agent.session.observe(ends):
            for run in range(effort.runs + 1):
                gc.collect()
                both = [
                    (await ends.of_turn(agent), await _of_tasks(tasks))
                    for _ in range(effort.size(CANCELS))
                ]
                if run:
                    ours.append(median_of([mine for mine, _ in both]))
                    baseline.append(median_of([theirs for _, theirs in both]))
    return compared(
        NAME,
        case,
        Timings(tuple(ours), tuple(baseline)),
        unit="us",
        versus=f"cancel and join of {tasks} {'task' if tasks == 1 else 'tasks'}",
    )


@attrs.define(eq=False)
class _Ends:
    """Stops the watch when a turn ends."""

    watch: Stopwatch = attrs.field(factory=lambda: Stopwatch(collects=False))

    def __call__(self, event: trioloop.Event) -> None:
        if isinstance(event.data, TurnEnded):
            self.watch.stop()

    async def of_turn(self, agent: trioloop.Agent) -> Spent:
        """Open a turn, cancel it when everything sleeps, and tell how long its end took."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.ask, "go")
            await wait_all_tasks_blocked()
            self.watch.start()
            agent.cancel()
        return self.watch.spent


async def _of_tasks(tasks: int) -> Spent:
    watch = Stopwatch(collects=False)
    async with trio.open_nursery() as nursery:
        for index in range(tasks):
            nursery.start_soon(sleeping, index)
        await wait_all_tasks_blocked()
        watch.start()
        nursery.cancel_scope.cancel()
    watch.stop()
    return watch.spent
