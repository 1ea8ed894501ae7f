"""log: durable events, from one session to many; loading 100,000 of them, and the last hundred.

Each session appends one event and waits until it is durable, over and over; the baseline writes and
syncs a file as often with as many bytes, one after the other, so that what is below 1 is what
sessions save by sharing commits. Loading takes up an agent on a stored session: every byte is read
and verified, the grammar is checked, the state folded; the baseline is `json.loads` of the same
rows. What is in memory then, and was at most meanwhile, is beside it.
"""

import itertools
import json
import os
import tempfile
import tracemalloc
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import trio

import trioloop
from bench.prepared_model import DONE, PreparedModel, calls_of
from bench.report import Figure, compared
from bench.timing import Effort, Spent, Stopwatch, alternate, timed
from trioloop.store import read_rows

NAME = "log"
SESSIONS = (1, 8, 32, 128)
COMMITS = 200
EVENTS = 100_000
TAIL = 100
CALLS_A_STEP = 4


@trioloop.event("bench/note")
class Note(trioloop.EventData):
    """Something of an ordinary size."""

    text: str = "x" * 200


async def run(effort: Effort) -> AsyncGenerator[Figure, None]:
    """All cases."""
    for sessions in SESSIONS:
        yield await _durable(effort, sessions)
    for figure in await _loading(effort):
        yield figure


async def _durable(effort: Effort, sessions: int) -> Figure:
    commits = effort.size(COMMITS)

    async def ours() -> Spent:
        with tempfile.TemporaryDirectory() as folder:
            async with _runtime(Path(folder) / "agents.db") as runtime:
                agents = [await runtime.create_agent(f"s{number}") for number in range(sessions)]
                with Stopwatch() as watch:
                    async with trio.open_nursery() as nursery:
                        for agent in agents:
                            nursery.start_soon(_append_and_wait, agent, commits)
        return watch.spent / (commits * sessions)

    timings = await alternate(
        ours, timed(lambda: _write_and_sync(commits), per=commits), effort.runs
    )
    fastest = min(one.wall for one in timings.ours)
    return compared(
        NAME,
        f"durable-s{sessions}",
        timings,
        unit="us/event",
        versus="write + fdatasync",
        clock="wall",
        events_per_s=round(1 / fastest),
    )


def _runtime(path: Path) -> AbstractAsyncContextManager[trioloop.Runtime]:
    limits = trioloop.Limits(session_events_warn=10**9)
    return trioloop.open_runtime(store=trioloop.SqliteStore(path), limits=limits)


async def _append_and_wait(agent: trioloop.Agent, times: int) -> None:
    for _ in range(times):
        agent.session.append(Note())
        await agent.session.checkpoint()


async def _write_and_sync(times: int) -> None:
    await trio.to_thread.run_sync(_write_and_sync_here, times)


def _write_and_sync_here(times: int) -> None:
    line = json.dumps({"type": "bench/note", "seq": 0, "time": 0, "data": {"text": "x" * 200}})
    with tempfile.NamedTemporaryFile("w", dir=tempfile.gettempdir()) as file:
        for _ in range(times):
            file.write(line)
            file.flush()
            os.fdatasync(file.fileno())


# Loading


async def _loading(effort: Effort) -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agents.db"
        await _long_session(path, effort.size(EVENTS))
        return [await _load(effort, path), await _tail(effort, path)]


async def _long_session(path: Path, events: int) -> None:
    """A session of about so many events, of turns of twenty steps with some calls each."""
    calls = calls_of("noop", CALLS_A_STEP)
    turn = [calls] * 20 + [DONE]
    answers = itertools.cycle(turn)
    tool = trioloop.tool(name="noop", effects="read-only", description="Does nothing.")(_noop)
    async with trioloop.open_runtime(
        model=PreparedModel(lambda request: next(answers)),
        tools=[tool],
        store=path,
        durability="relaxed",
        limits=trioloop.Limits(session_events_warn=10**9),
    ) as runtime:
        agent = await runtime.create_agent("long")
        while agent.session.seq < events:
            await agent.ask("go")


async def _noop(index: int) -> int:
    return index


async def _load(effort: Effort, path: Path) -> Figure:
    payloads = [row.payload for row in read_rows(path, "long")]

    async def decode() -> None:
        for payload in payloads:
            json.loads(payload)

    async with _runtime(path) as runtime:

        async def load() -> None:
            agent = await runtime.resume_agent("long")
            await agent.dispose()

        timings = await alternate(timed(load), timed(decode), effort.runs)
        held, most = await _mib_of_loading(runtime)
    return compared(
        NAME,
        f"load-{len(payloads)}",
        timings,
        unit="ms",
        versus="json.loads",
        bytes_per_event=round(sum(map(len, payloads)) / len(payloads)),
        mib_held=held,
        mib_at_most=most,
    )


async def _mib_of_loading(runtime: trioloop.Runtime) -> tuple[float, float]:
    """How much memory an agent on a stored session takes, and how much taking it up took."""
    tracemalloc.start()
    try:
        agent = await runtime.resume_agent("long")
        held, most = tracemalloc.get_traced_memory()
        await agent.dispose()
    finally:
        tracemalloc.stop()
    return round(held / 2**20, 1), round(most / 2**20, 1)


async def _tail(effort: Effort, path: Path) -> Figure:
    """The last hundred events, read from the file and verified."""
    store = trioloop.SqliteStore(path)
    last = len(read_rows(path, "long")) - 1
    payloads = [row.payload for row in read_rows(path, "long")[-TAIL:]]

    async def tail() -> None:
        rows = await store.read(trioloop.SessionId("long"), after=last - TAIL)
        assert len(rows) == TAIL

    async def decode() -> None:
        for payload in payloads:
            json.loads(payload)

    timings = await alternate(timed(tail, 10), timed(decode, 10), effort.runs)
    return compared(NAME, f"last-{TAIL}", timings, unit="ms", versus="json.loads")
