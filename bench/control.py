"""control: what agents pay for being watched: a crowd of clients, some of which never read.

The clients are a process of their own; the figures are the endpoint's CPU time alone.
"""

from collections.abc import AsyncGenerator, Callable, Sequence

import trio

import trioloop
from bench.crowd import crowd
from bench.report import Figure, compared
from bench.timing import Effort, Spent, Stopwatch, Timings, alternate, sum_of
from trioloop.control import ControlLimits, serve
from trioloop.hooks import Hooks, Next, StreamRequest
from trioloop.ports import ChunkStream
from trioloop.testing import ScriptedModel, Text

NAME = "control"
CLIENTS = ((1, 0), (10, 0), (50, 10))
CHUNKS = 200
CROWD, CROWD_STOPPED, CROWD_AGENTS = 1_000, 100, 50
CROWD_CHUNKS, CROWD_TURN_S = 100, 10.0
ROOM = ControlLimits(
    connections_max=5_000,
    peer_connections_max=5_000,
    unproven_connections_max=5_000,
    send_s=3_600,  # who never reads stays
    ping_s=3_600,
)


async def run(effort: Effort) -> AsyncGenerator[Figure, None]:
    """A figure for each number of clients of one agent, and one for a crowd around many agents."""
    for clients, stopped in CLIENTS:
        yield await _one_agent(effort, clients, stopped)
    yield await _many_agents(effort)


def _words(effort: Effort, full: int) -> list[Text]:
    return [Text("word ")] * effort.size(full)


# One agent


async def _one_agent(effort: Effort, all_clients: int, all_stopped: int) -> Figure:
    """A turn as fast as it can be, until all who read have seen its end."""
    clients, stopped = _sizes(effort, all_clients, all_stopped)
    words = _words(effort, CHUNKS)
    async with (
        trioloop.open_runtime(model=ScriptedModel(lambda _: words)) as runtime,
        serve(runtime, limits=ROOM) as endpoint,
    ):
        address = endpoint.address(endpoint.tokens.issue("bench", "admin"))
        watched, alone = await runtime.create_agent("watched"), await runtime.create_agent("alone")
        async with crowd(address, ["watched"], connections=clients, stopped=stopped) as watching:

            async def ours() -> Spent:
                with Stopwatch() as watch:
                    await watched.ask("go")
                    await watching.tells()
                return watch.spent

            async def baseline() -> Spent:
                with Stopwatch() as watch:
                    await alone.ask("go")
                return watch.spent

            timings = await alternate(ours, baseline, effort.runs)
    return compared(
        NAME,
        f"{all_clients}-clients-{all_stopped}-stopped",
        timings,
        unit="ms",
        versus="an agent that nobody watches",
        clients=clients,
        stopped=stopped,
    )


def _sizes(effort: Effort, clients: int, stopped: int) -> tuple[int, int]:
    """So many clients, of which at least one reads."""
    some = effort.size(clients)
    return some, min(effort.size(stopped) if stopped else 0, some - 1)


# Many agents


async def _many_agents(effort: Effort) -> Figure:
    """Turns whose chunks come in a provider's time; what a turn takes more is the crowd's doing."""
    clients, stopped = _sizes(effort, CROWD, CROWD_STOPPED)
    words, turn_s = _words(effort, CROWD_CHUNKS), CROWD_TURN_S * effort.part
    hooks = [paced(turn_s / len(words))]
    async with (
        trioloop.open_runtime(model=ScriptedModel(lambda _: words), hooks=hooks) as runtime,
        serve(runtime, limits=ROOM) as endpoint,
    ):
        names = [f"agent-{number}" for number in range(effort.size(CROWD_AGENTS))]
        agents = [await runtime.create_agent(name) for name in names]
        await _turn_of_each(agents, turn_s)
        runs = max(1, effort.runs // 3)
        alone = [await _turn_of_each(agents, turn_s) for _ in range(runs)]
        address = endpoint.address(endpoint.tokens.issue("bench", "admin"))
        async with crowd(address, names, connections=clients, stopped=stopped) as watching:
            for _ in range(runs + 1):
                await watching.tells()  # of the turns that were
            watched = [await _turn_of_each(agents, turn_s) for _ in range(runs)]
    return compared(
        NAME,
        f"{CROWD_AGENTS}-agents-{CROWD}-clients-{CROWD_STOPPED}-stopped",
        Timings(tuple(watched), tuple(alone)),
        unit="ms",
        clock="wall",
        versus="the same agents, unwatched",
        clients=clients,
        stopped=stopped,
        agents=len(agents),
    )


def paced(chunk_s: float) -> Callable[[Hooks], None]:
    """Chunks come when a provider sends them, however busy the endpoint is.

    Args:
        chunk_s: seconds between them.
    """

    def register(hooks: Hooks) -> None:
        @hooks.stream
        async def pace(asked: StreamRequest, next: Next[ChunkStream]) -> ChunkStream:
            return spread(await next())

    async def spread(stream: ChunkStream) -> ChunkStream:
        began, number = trio.current_time(), 0
        async for chunks in stream:
            yield chunks
            number += 1
            await trio.sleep_until(began + chunk_s * number)

    return register


async def _turn_of_each(agents: Sequence[trioloop.Agent], turn_s: float) -> Spent:
    """A turn of each agent, not in step: what one of them takes, on average."""
    spent = list[Spent]()

    async def ask(number: int) -> None:
        await trio.sleep(turn_s / 2 * number / len(agents))
        with Stopwatch(collects=False) as watch:
            await agents[number].ask("go")
        spent.append(watch.spent)

    async with trio.open_nursery() as nursery:
        for number in range(len(agents)):
            nursery.start_soon(ask, number)
    return sum_of(spent) / len(agents)
