"""stream: 10,000 text deltas from the model to one reader, and to none.

With a reader, the baseline is a Trio memory channel of size 0 that passes as many items. Without
one, it is the model's own stream, read by nobody but a loop: what is above that is the runtime's.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import trio

import trioloop
from bench.observed import observed_agent
from bench.prepared_model import DONE, PreparedModel, PreparedStream, Reads, text_of
from bench.report import Figure, compared
from bench.timing import Effort, Spent, Stopwatch, alternate, timed
from trioloop.agent.notifications import StreamChunks

NAME = "stream"
CHUNKS = 10_000
PER_READ = (1, 4, 16)


async def run(effort: Effort) -> AsyncGenerator[Figure, None]:
    """All cases."""
    chunks = effort.size(CHUNKS)
    for per_read in PER_READ:
        yield await _read(effort, chunks, per_read)
    for per_read in PER_READ:
        yield await _unread(effort, chunks, per_read)


async def _read(effort: Effort, chunks: int, per_read: int) -> Figure:
    reads = text_of(chunks, per_read)

    async def ours() -> Spent:
        async with _asked_before(reads) as agent, agent.watch() as feed:
            with Stopwatch() as watch:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(agent.ask, "go")
                    await _count_chunks(feed, chunks)
        return watch.spent / chunks

    timings = await alternate(
        ours, timed(lambda: _through_channel(chunks), per=chunks), effort.runs
    )
    return compared(
        NAME, f"read-{per_read}", timings, unit="us/chunk", versus="zero-buffer channel"
    )


async def _count_chunks(feed: AsyncIterator[trioloop.Notification], chunks: int) -> None:
    seen = 0
    async for notification in feed:
        if isinstance(notification, StreamChunks):
            seen += len(notification.chunks)
            if seen > chunks:  # usage and finish are chunks, too
                return


async def _through_channel(chunks: int) -> None:
    sender, receiver = trio.open_memory_channel[int](0)

    async def send() -> None:
        async with sender:
            for chunk in range(chunks):
                await sender.send(chunk)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        async for _ in receiver:
            pass


async def _unread(effort: Effort, chunks: int, per_read: int) -> Figure:
    reads = text_of(chunks, per_read)

    async def ours() -> Spent:
        async with _asked_before(reads) as agent:
            with Stopwatch() as watch:
                await agent.ask("go")
        return watch.spent / chunks

    timings = await alternate(ours, timed(lambda: _drain(reads), per=chunks), effort.runs)
    return compared(
        NAME,
        f"unread-{per_read}",
        timings,
        unit="us/chunk",
        versus="the model's stream alone",
        above_us=round(timings.above_us, 3),
    )


async def _drain(reads: Reads) -> None:
    async for _ in PreparedStream(reads):
        pass


@asynccontextmanager
async def _asked_before(reads: Reads) -> AsyncIterator[trioloop.Agent]:
    """An agent nobody watches yet, whose second answer is these reads."""
    answers = iter((DONE, reads))
    model = PreparedModel(lambda request: next(answers))
    async with observed_agent(model, watched=False) as agent:
        await agent.ask("hello")
        yield agent
