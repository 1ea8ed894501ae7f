"""agents: what many agents of one runtime cost: idle ones, one busy beside them, all busy."""

import gc
from collections.abc import AsyncGenerator

import trio

import trioloop
from bench.observed import observed_runtime, subscribe
from bench.parked import bytes_allocated, parked_tasks
from bench.prepared_model import DONE, PreparedModel, Reads, calls_of
from bench.report import Figure, compared
from bench.timing import Effort, Spent, Stopwatch, alternate, median_of, timed

NAME = "agents"
IDLE = (1000, 10_000)
TURNS = 40  # of the busy one beside idle ones
BUSY = 1000
STEPS = 5
MODEL_S = 0.050
PARKED = "parked task with a nursery"


async def run(effort: Effort) -> AsyncGenerator[Figure, None]:
    """All cases."""
    for idle in effort.sizes(IDLE):
        yield await _made(effort, idle)
        yield await _kept(idle)
    yield await _beside(effort, effort.size(max(IDLE)))
    for figure in await _busy(effort, effort.size(BUSY)):
        yield figure


# Idle


async def _made(effort: Effort, count: int) -> Figure:
    tasks = [0]

    async def ours() -> Spent:
        async with observed_runtime(PreparedModel(lambda request: DONE)) as runtime:
            before = trio.lowlevel.current_statistics().tasks_living
            with Stopwatch() as watch:
                for _ in range(count):
                    await runtime.create_agent()
            tasks[0] = trio.lowlevel.current_statistics().tasks_living - before
        return watch.spent / count

    async def baseline() -> Spent:
        async with trio.open_nursery() as nursery:
            with Stopwatch() as watch:
                await parked_tasks(nursery, count)
            nursery.cancel_scope.cancel()
        return watch.spent / count

    timings = await alternate(ours, baseline, effort.runs)
    return compared(
        NAME, f"made-{count}", timings, unit="us/agent", versus=PARKED, tasks_more=tasks[0]
    )


async def _kept(count: int) -> Figure:
    """Bytes that Python allocated and holds, as tracemalloc counts them: the same in each run."""
    async with observed_runtime(PreparedModel(lambda request: DONE)) as runtime:

        async def make() -> None:
            for _ in range(count):
                await runtime.create_agent()
            for agent in runtime.agents.values():  # what waits for a commit is no idle agent's
                await agent.session.checkpoint()

        ours = await bytes_allocated(make)
    async with trio.open_nursery() as nursery:
        baseline = await bytes_allocated(lambda: parked_tasks(nursery, count))
        nursery.cancel_scope.cancel()
    return Figure(NAME, f"kept-{count}", "bytes", (ours / count,), PARKED, (baseline / count,))


# One busy beside idle ones


async def _beside(effort: Effort, idle: int) -> Figure:
    turns = effort.size(TURNS)
    timings = await alternate(
        lambda: _turn_beside(idle, turns), lambda: _turn_beside(0, turns), effort.runs
    )
    return compared(NAME, f"beside-{idle}", timings, unit="us/turn", versus="it alone")


async def _turn_beside(idle: int, turns: int) -> Spent:
    """The median of some turns of a new agent beside idle ones."""
    async with observed_runtime(PreparedModel(lambda request: DONE)) as runtime:
        for _ in range(idle):
            await runtime.create_agent()
        for agent in runtime.agents.values():
            await agent.session.checkpoint()
        busy = await runtime.create_agent()
        await busy.ask("hello")
        gc.collect()
        spent = []
        for _ in range(turns):
            with Stopwatch(collects=False) as watch:
                await busy.ask("go")
            spent.append(watch.spent)
    return median_of(spent)


# All busy


async def noop(index: int) -> int:
    """Do nothing."""
    return index


async def _busy(effort: Effort, count: int) -> list[Figure]:
    """Many agents at once, each of which takes some steps of a model that takes its time."""
    together = await alternate(lambda: _spent_by(count), timed(lambda: _sleeps(count)), effort.runs)
    alone = await alternate(
        lambda: _per_step(count), lambda: _per_step(1, turns=effort.size(4)), effort.runs
    )
    case = f"busy-{count}x{STEPS}"
    return [
        compared(NAME, case, together, unit="ms", clock="wall", versus="bare sleeps"),
        compared(NAME, f"{case}-cpu", alone, unit="us/step", versus="a lone agent"),
    ]


async def _per_step(count: int, turns: int = 1) -> Spent:
    return await _spent_by(count, turns) / (count * turns * STEPS)


async def _spent_by(count: int, turns: int = 1) -> Spent:
    model = PreparedModel(_next_answer, delay_s=MODEL_S)
    tool = trioloop.tool(effects="read-only")(noop)
    async with observed_runtime(model, [tool]) as runtime, trio.open_nursery() as nursery:
        agents = [await runtime.create_agent() for _ in range(count)]
        await nursery.start(subscribe, agents[0])
        with Stopwatch() as watch:
            async with trio.open_nursery() as asking:
                for agent in agents:
                    asking.start_soon(_ask_again, agent, turns)
        nursery.cancel_scope.cancel()
    return watch.spent


async def _ask_again(agent: trioloop.Agent, turns: int) -> None:
    for _ in range(turns):
        await agent.ask("go")


def _next_answer(request: trioloop.Request) -> Reads:
    """Calls until the turn has had all its steps but one: a message of ours and two of each."""
    place = (len(request.history) - 1) % (2 * STEPS)
    return DONE if place == 2 * (STEPS - 1) else calls_of("noop", 1, len(request.history))


async def _sleeps(count: int) -> None:
    async def one() -> None:
        for _ in range(STEPS):
            await trio.sleep(MODEL_S)

    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(one)
