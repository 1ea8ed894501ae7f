"""pool-overhead: a batch of no-op calls, through the pool alone and through a whole turn.

A turn is two steps of an agent that has been asked something before: the model asks for the calls,
then says that it is done. `step` has a listener on each hook, a subscriber and a watcher; `bare`
has none of them. Both write and check every event of the log.
"""

from collections.abc import AsyncGenerator, Sequence
from itertools import chain, cycle

import trioloop
from bench.observed import HookSetup, listen, observed_agent
from bench.prepared_model import DONE, PreparedModel, calls_of
from bench.raw_trio import nursery_with_limiter
from bench.report import Figure, compared
from bench.timing import Effort, Spent, alternate, timed
from trioloop.tools.pool import Call, run_calls

NAME = "pool-overhead"
LIMIT = 8
SIZES = (1, 10, 100, 1000)


async def noop(index: int) -> int:
    """Do nothing."""
    return index


async def run(effort: Effort) -> AsyncGenerator[Figure, None]:
    """All cases."""
    sizes = effort.sizes(SIZES)
    for size in sizes:
        yield await alone(effort, size)
    for size in sizes:
        yield await step(effort, size)
    for size in sizes:
        yield await bare(effort, size)


async def alone(effort: Effort, size: int) -> Figure:
    """A batch through the pool."""
    calls = [Call(noop, (index,)) for index in range(size)]
    repeat = max(3, effort.size(2000) // size)
    timings = await alternate(
        timed(lambda: run_calls(calls, limit=LIMIT), repeat, size),
        timed(lambda: nursery_with_limiter(noop, size, LIMIT), repeat, size),
        effort.runs,
    )
    return compared(NAME, f"alone-n{size}", timings, unit="us/call", versus="raw-trio")


async def step(effort: Effort, size: int, also: Sequence[HookSetup] = ()) -> Figure:
    """A batch through an agent with a listener on each hook, a subscriber and a watcher.

    Args:
        effort: how thoroughly.
        size: calls.
        also: registers further listeners.
    """
    return await _turns(effort, f"step-n{size}", size, (listen, *also), observed=True)


async def bare(effort: Effort, size: int) -> Figure:
    """A batch through an agent that nobody listens to or watches."""
    return await _turns(effort, f"bare-n{size}", size, (), observed=False)


async def _turns(
    effort: Effort, case: str, size: int, hooks: Sequence[HookSetup], *, observed: bool
) -> Figure:
    repeat = max(2, effort.size(50) // size)
    calls = calls_of("noop", size)
    tool = trioloop.tool(effects="read-only", description="Does nothing.")(noop)
    events = 0

    async def ours() -> Spent:
        nonlocal events
        answers = chain([DONE], cycle([calls, DONE]))
        async with observed_agent(
            PreparedModel(lambda request: next(answers)),
            [tool],
            hooks=hooks,
            watched=observed,
            subscribed=observed,
            calls_max=LIMIT,
        ) as agent:
            await agent.ask("hello")
            before = agent.session.seq
            spent = await timed(lambda: agent.ask("go"), repeat, size)()
            events = (agent.session.seq - before) // repeat
        return spent

    timings = await alternate(
        ours, timed(lambda: nursery_with_limiter(noop, size, LIMIT), repeat * 10, size), effort.runs
    )
    return compared(NAME, case, timings, unit="us/call", versus="raw-trio", events_per_turn=events)
