"""What listeners of model.stream may do with a stream (section 5)."""

from collections.abc import AsyncIterator, Sequence

import pytest
import trio
from trio.testing import MockClock

from tests.agent.listening import retrying
from tests.agent.reading import facts, pass_waits, said
from trioloop.chunks import Chunk, Finish, TextDelta, Usage, UsageChunk, expand
from trioloop.errors import ModelFailure
from trioloop.events import AssistantAttemptLogged, AssistantMessageLogged, CallConfig
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import StreamRequest
from trioloop.ports import ChunkStream
from trioloop.testing import Answer, ScriptedModel, Text, Wait, open_test_runtime


async def test_what_a_listener_makes_of_the_stream_is_what_is_recorded(
    autojump_clock: MockClock,
) -> None:
    async def shout(request: StreamRequest, next: Next[ChunkStream]) -> ChunkStream:
        return _shouted(await next())

    model = ScriptedModel([Text("hi"), Text("ho")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.stream.add(shout)
        assert (await agent.ask("one")).text == "HI"
        await agent.ask("two")
        assert said(model.requests[1]) == ["U one", "A HI", "U two"]


async def _shouted(stream: ChunkStream) -> AsyncIterator[Sequence[Chunk]]:
    async for chunks in stream:
        yield tuple(
            TextDelta(chunk.text.upper(), chunk.block) if isinstance(chunk, TextDelta) else chunk
            for chunk in chunks
        )


async def test_a_listener_may_answer_without_the_model(autojump_clock: MockClock) -> None:
    async def answer(request: StreamRequest, next: Next[ChunkStream]) -> ChunkStream:
        return _cached()

    model = ScriptedModel([])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.stream.add(answer)
        assert (await agent.ask("one")).text == "cached"
    assert model.requests == []


async def _cached() -> AsyncIterator[Sequence[Chunk]]:
    await trio.lowlevel.checkpoint()
    yield (TextDelta("cached", 0), Finish("stop"))


async def test_a_listener_that_reads_the_stream_itself_is_told_not_to(
    autojump_clock: MockClock,
) -> None:
    async def read(request: StreamRequest, next: Next[ChunkStream]) -> ChunkStream:
        stream = await next()
        await stream.__anext__()
        return stream

    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.stream.add(read)
        settled = await agent.ask("one")
        assert (settled.reason, settled.code) == ("error", "HOOK_MISUSE")


async def test_a_request_that_a_listener_would_change_is_frozen(autojump_clock: MockClock) -> None:
    async def change(request: StreamRequest, next: Next[ChunkStream]) -> ChunkStream:
        request.request.config = CallConfig(provider="x", model="y")  # type: ignore[misc]
        return await next()

    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.stream.add(change)
        settled = await agent.ask("one")
        assert settled.reason == "error"
        assert [one.sent for one in facts(agent, AssistantAttemptLogged)] == [False]


@pytest.mark.parametrize("waits", [False, True])
async def test_times_and_chunks_are_kept_exactly(waits: bool, autojump_clock: MockClock) -> None:
    pieces = (Text("a"), Wait(1.5), Text("b")) if waits else (Text("a"), Text("b"))
    model = ScriptedModel([Answer(pieces, usage=None)])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        await pass_waits()
        await agent.ask("one")
        (message,) = facts(agent, AssistantMessageLogged)
        frames = expand(message.stream, message.message.content)
        chunks = [chunk for frame in frames for chunk in frame.chunks]
        assert chunks == [TextDelta("a", 0), TextDelta("b", 0), Finish("stop")]
        assert frames[-1].at_ms == (1500 if waits else 0)


async def test_the_usage_of_attempts_that_gave_no_answer_counts(autojump_clock: MockClock) -> None:
    async def once_in_vain(request: StreamRequest, next: Next[ChunkStream]) -> ChunkStream:
        return await next() if failed else _failing()

    failed: list[int] = []

    async def _failing() -> AsyncIterator[Sequence[Chunk]]:
        failed.append(1)
        yield [TextDelta("ha"), UsageChunk(Usage(input_tokens=1, output_tokens=2))]
        raise ModelFailure("SERVER", "broken")

    answer = Answer((Text("hi"),), usage=Usage(input_tokens=10, output_tokens=20))
    async with open_test_runtime(model=ScriptedModel([answer])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.stream.add(once_in_vain)
        agent.hooks.request_error.add(retrying())
        settled = await agent.ask("one")
        assert settled.usage == Usage(input_tokens=11, output_tokens=22)
        (attempt,) = facts(agent, AssistantAttemptLogged)
        assert attempt.usage == Usage(input_tokens=1, output_tokens=2)


async def test_no_stream_is_entered_behind_a_cancel_that_a_listener_came_through(
    autojump_clock: MockClock,
) -> None:
    async def slow(request: StreamRequest, next: Next[ChunkStream]) -> ChunkStream:
        with trio.CancelScope(shield=True):
            await trio.sleep(5)
        return await next()

    model = ScriptedModel([])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.stream.add(slow)
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel("why")
        await agent.wait_idle()
        assert model.requests == []
        assert [one.sent for one in facts(agent, AssistantAttemptLogged)] == [False]
