"""What a cancel or a failure leaves of an answer that is on its way (P8 to P10, P13, E3)."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import attrs
import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import ends, facts, pass_waits, reasons, said, types
from trioloop.agent.notifications import StreamEnded
from trioloop.chunks import Chunk, Finish, TextDelta, Usage, UsageChunk, expand
from trioloop.errors import ModelFailure
from trioloop.events import (
    AssistantAttemptLogged,
    AssistantMessageLogged,
    CallConfig,
    Event,
    StepStarted,
    ToolResultLogged,
)
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import AttemptFailed, Retry, StreamRequest
from trioloop.log.rebuild import Request
from trioloop.messages import TextBlock
from trioloop.ports import Capabilities, ChunkStream, PreparedCall, RetryPolicy
from trioloop.testing import (
    Answer,
    Fail,
    Reasoning,
    ScriptedModel,
    Stall,
    Text,
    ToolCall,
    Wait,
    open_test_runtime,
)
from trioloop.tools.tool import tool

ADMISSION = ["step/start", "user/message", "request/header", "request/context"]


@tool(effects="read-only")
async def slow() -> int:
    """Take five seconds."""
    await trio.sleep(5)
    return 42


# Between admission and the stream (P8)


async def test_a_cancel_between_admission_and_stream_leaves_an_attempt_that_was_not_sent(
    autojump_clock: MockClock,
) -> None:
    def observe(event: Event) -> None:
        if isinstance(event.data, StepStarted):
            agent.cancel("observer")

    model = ScriptedModel([])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.session.observe(observe)
        settled = await agent.ask("one")
        assert (settled.reason, settled.cause) == ("aborted", "observer")
        assert types(agent) == [
            "turn/start",
            *ADMISSION,
            "assistant/attempt",
            "step/end",
            "turn/end",
        ]
        (attempt,) = facts(agent, AssistantAttemptLogged)
        assert attempt.cancelled
        assert not attempt.sent
        assert model.requests == []


async def test_a_listener_around_the_stream_that_raises_leaves_an_attempt_that_was_not_sent(
    autojump_clock: MockClock,
) -> None:
    async def broken(request: StreamRequest, next: Next[ChunkStream]) -> ChunkStream:
        raise ValueError("no stream")

    asked: list[object] = []

    async def look(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
        asked.append(failed)
        return None

    model = ScriptedModel([])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.stream.add(broken)
        agent.hooks.request_error.add(look)
        settled = await agent.ask("one")
        assert (settled.reason, settled.message) == ("error", "no stream")
        assert [one.sent for one in facts(agent, AssistantAttemptLogged)] == [False]
        assert ends(agent)[0].by is not None
    assert asked == []
    assert model.requests == []


# While it streams (P9)


async def test_a_cancel_while_text_streams_keeps_what_was_visible(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([[Reasoning("hm"), Text("half"), ToolCall("slow"), Stall()], Text("2")])
    async with open_test_runtime(model=model, tools=[slow]) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel("why")
        await agent.wait_idle()
        assert trio.current_time() == 1
        (message,) = facts(agent, AssistantMessageLogged)
        assert message.interrupted
        assert message.finish is None
        assert message.message.calls == ()
        assert message.message.text == "half"
        assert len(message.message.content) == 2
        assert types(agent)[-3:] == ["assistant/message", "step/end", "turn/end"]
        await agent.ask("two")
        assert said(model.requests[1]) == ["U one", "A half", "U two"]


async def test_a_cancel_before_anything_was_visible_leaves_an_attempt(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([[ToolCall("slow"), Stall()], Text("2")])
    async with open_test_runtime(model=model, tools=[slow]) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel("why")
        await agent.wait_idle()
        assert facts(agent, AssistantMessageLogged) == []
        (attempt,) = facts(agent, AssistantAttemptLogged)
        assert attempt.cancelled
        assert attempt.sent
        chunks = [chunk for frame in expand(attempt.stream, ()) for chunk in frame.chunks]
        assert len(chunks) == 2
        assert ends(agent)[0].cause == "why"
        await agent.ask("two")
        assert said(model.requests[1]) == ["U one", "U two"]


async def test_a_cancel_before_the_first_chunk_leaves_an_attempt(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Stall()])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel()
        await agent.wait_idle()
        (attempt,) = facts(agent, AssistantAttemptLogged)
        assert expand(attempt.stream, ()) == ()
        assert attempt.sent


async def test_reasoning_alone_is_kept_with_its_usage(autojump_clock: MockClock) -> None:
    usage = Usage(input_tokens=5, output_tokens=6)

    async def stream(request: StreamRequest, next: Next[ChunkStream]) -> ChunkStream:
        return _with_usage(await next(), usage)

    model = ScriptedModel([[Reasoning("hm"), Stall()]])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.stream.add(stream)
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel()
        await agent.wait_idle()
        (message,) = facts(agent, AssistantMessageLogged)
        assert message.interrupted
        assert message.usage == usage


async def _with_usage(stream: ChunkStream, usage: Usage) -> AsyncIterator[Sequence[Chunk]]:
    async for chunks in stream:
        yield (*chunks, UsageChunk(usage))


# After the finish chunk (P10)


async def test_a_cancel_in_the_last_frame_keeps_the_whole_message(
    autojump_clock: MockClock,
) -> None:
    def cancel(chunks: object) -> None:
        agent.cancel("observer")

    model = ScriptedModel([[ToolCall("slow"), ToolCall("slow")]])
    async with open_test_runtime(model=model, tools=[slow]) as runtime:
        agent = await runtime.create_agent("a")
        agent.on("stream-end", cancel)
        settled = await agent.ask("one")
        assert (settled.reason, settled.cause) == ("aborted", "observer")
        (message,) = facts(agent, AssistantMessageLogged)
        assert not message.interrupted
        assert len(message.message.calls) == 2
        assert [one.code for one in facts(agent, ToolResultLogged)] == [
            "TOOL_ABORTED_BEFORE_DISPATCH"
        ] * 2
        assert types(agent)[-2:] == ["step/end", "turn/end"]


async def test_a_cancel_while_calls_run_records_each_in_order(autojump_clock: MockClock) -> None:
    @tool(effects="read-only")
    async def quick() -> str:
        return "real"

    @tool
    async def later() -> str:
        return "never"

    calls = [ToolCall("slow"), ToolCall("quick"), ToolCall("later")]
    model = ScriptedModel([calls, Text("2")])
    async with open_test_runtime(model=model, tools=[slow, quick, later]) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel("why")
        await agent.wait_idle()
        assert trio.current_time() == 1
        assert [one.code for one in facts(agent, ToolResultLogged)] == [
            "TOOL_ABORTED",
            None,
            "TOOL_ABORTED_BEFORE_DISPATCH",
        ]
        assert facts(agent, ToolResultLogged)[1].content == (TextBlock("real"),)
        assert len(model.requests) == 1
        await agent.ask("what did you just do?")
        lines = said(model.requests[1])
        assert len(lines) == 6
        assert lines[3] == "T real"


# Failures (P13)


async def test_a_failed_attempt_is_recorded_with_its_partial_stream_and_ends_the_turn(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([[Text("half"), Fail("OVERLOADED", "busy", status=529)], Text("2")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        settled = await agent.ask("one")
        assert (settled.reason, settled.code, settled.message) == ("error", "OVERLOADED", "busy")
        assert types(agent)[-3:] == ["assistant/attempt", "step/end", "turn/end"]
        (attempt,) = facts(agent, AssistantAttemptLogged)
        assert attempt.failure is not None
        assert attempt.failure.status == 529
        (frame,) = expand(attempt.stream, ())
        assert frame.chunks == (TextDelta("half", 0),)
        await agent.ask("two")
        assert said(model.requests[1]) == ["U one", "U two"]


async def test_a_failing_attempts_usage_counts(autojump_clock: MockClock) -> None:
    usage = Usage(input_tokens=5, output_tokens=6)

    async def stream(request: StreamRequest, next: Next[ChunkStream]) -> ChunkStream:
        return _with_usage(await next(), usage)

    async with open_test_runtime(model=ScriptedModel([[Text("half"), Fail("SERVER")]])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.stream.add(stream)
        assert (await agent.ask("one")).usage == usage
        assert agent.session.state.usage == usage


async def test_a_stream_that_ends_without_a_finish_is_truncated(autojump_clock: MockClock) -> None:
    async def stream(request: StreamRequest, next: Next[ChunkStream]) -> ChunkStream:
        return _without_finish(await next())

    async with open_test_runtime(model=ScriptedModel([Text("half")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.stream.add(stream)
        settled = await agent.ask("one")
        assert (settled.reason, settled.code) == ("error", "TRUNCATED")


async def _without_finish(stream: ChunkStream) -> AsyncIterator[Sequence[Chunk]]:
    async for chunks in stream:
        yield tuple(chunk for chunk in chunks if not isinstance(chunk, Finish))


async def test_the_end_of_a_stream_is_told_behind_its_durable_event(
    autojump_clock: MockClock,
) -> None:
    told: list[StreamEnded] = []
    async with open_test_runtime(model=ScriptedModel([Text("hi"), Fail("AUTH")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.on("stream-end", told.append)
        agent.on("stream-end", lambda one: seqs.append(agent.session.seq))
        seqs: list[int] = []
        await agent.ask("one")
        await agent.ask("two")
        assert [one.seq for one in told] == seqs
        assert [one.outcome for one in told] == ["message", "attempt"]
        kinds = [agent.session.events()[one.seq].type for one in told]
        assert kinds == ["assistant/message", "assistant/attempt"]


# Adapters that misbehave


@attrs.frozen
class Adapter:
    """A model and its prepared call, whose stream is a context manager of a test's own."""

    make: Callable[[Request], AbstractAsyncContextManager[ChunkStream]]
    provider: str = "adapter"
    name: str = "adapter"
    capabilities: Capabilities = attrs.Factory(Capabilities)
    retry_policy: RetryPolicy = attrs.Factory(RetryPolicy)

    @property
    def config(self) -> CallConfig:
        """Its settings."""
        return CallConfig(provider=self.provider, model=self.name)

    async def prepare(self, config: CallConfig) -> PreparedCall:
        """Itself."""
        await trio.lowlevel.checkpoint()
        return self

    def stream(self, request: Request) -> AbstractAsyncContextManager[ChunkStream]:
        """The test's stream."""
        return self.make(request)


async def _chunks(*chunks: Chunk) -> AsyncIterator[Sequence[Chunk]]:
    for chunk in chunks:
        await trio.lowlevel.checkpoint()
        yield (chunk,)


async def settled_with(
    make: Callable[[Request], AbstractAsyncContextManager[ChunkStream]],
) -> tuple[str, str | None, list[str]]:
    """How the turn of an adapter's answer ends, and the end of its log."""
    async with open_test_runtime(model=Adapter(make)) as runtime:
        agent = await runtime.create_agent("a")
        settled = await agent.ask("one")
        return settled.reason, settled.code, types(agent)[-3:]


FAILED = ("error", "UNKNOWN", ["assistant/attempt", "step/end", "turn/end"])


async def test_an_adapter_that_raises_as_it_is_asked_is_a_failed_attempt(
    autojump_clock: MockClock,
) -> None:
    def make(request: Request) -> AbstractAsyncContextManager[ChunkStream]:
        raise RuntimeError("at once")

    assert await settled_with(make) == FAILED


async def test_an_adapter_that_raises_as_its_stream_opens_is_a_failed_attempt(
    autojump_clock: MockClock,
) -> None:
    @asynccontextmanager
    async def make(request: Request) -> AsyncIterator[ChunkStream]:
        await trio.lowlevel.checkpoint()
        if request is not None:
            raise RuntimeError("opening")
        yield _chunks()

    assert await settled_with(make) == FAILED


async def test_an_adapter_that_raises_in_the_middle_is_a_failed_attempt(
    autojump_clock: MockClock,
) -> None:
    async def broken() -> AsyncIterator[Sequence[Chunk]]:
        yield (TextDelta("half", 0),)
        await trio.lowlevel.checkpoint()
        raise RuntimeError("middle")

    @asynccontextmanager
    async def make(request: Request) -> AsyncIterator[ChunkStream]:
        yield broken()

    assert await settled_with(make) == FAILED


async def test_a_whole_answer_stands_though_its_adapter_fails_to_close(
    autojump_clock: MockClock,
) -> None:
    @asynccontextmanager
    async def make(request: Request) -> AsyncIterator[ChunkStream]:
        yield _chunks(TextDelta("whole", 0), Finish("stop"))
        raise RuntimeError("closing")

    ended = await settled_with(make)
    assert ended == ("completed", None, ["assistant/message", "step/end", "turn/end"])


async def test_an_adapter_that_swallows_its_own_failure_is_truncated(
    autojump_clock: MockClock,
) -> None:
    @asynccontextmanager
    async def make(request: Request) -> AsyncIterator[ChunkStream]:
        async def broken() -> AsyncIterator[Sequence[Chunk]]:
            yield (TextDelta("half", 0),)
            raise RuntimeError("swallowed")

        try:  # noqa: SIM105 - written out, as an adapter would
            yield broken()
        except RuntimeError:
            pass

    assert await settled_with(make) == ("error", "TRUNCATED", FAILED[2])


async def test_an_adapter_that_swallows_its_cancel_ends_the_turn_aborted(
    autojump_clock: MockClock,
) -> None:
    @asynccontextmanager
    async def make(request: Request) -> AsyncIterator[ChunkStream]:
        async def waiting() -> AsyncIterator[Sequence[Chunk]]:
            yield (TextDelta("half", 0),)
            await trio.sleep_forever()

        try:  # noqa: SIM105 - written out, as an adapter would
            yield waiting()
        except trio.Cancelled:
            pass

    async with open_test_runtime(model=Adapter(make)) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel("why")
        await agent.wait_idle()
        assert reasons(agent) == ["aborted"]
        (message,) = facts(agent, AssistantMessageLogged)
        assert message.interrupted
        assert message.message.text == "half"


async def test_an_adapter_that_raises_in_place_of_the_cancel_ends_the_turn_aborted(
    autojump_clock: MockClock,
) -> None:
    @asynccontextmanager
    async def make(request: Request) -> AsyncIterator[ChunkStream]:
        async def waiting() -> AsyncIterator[Sequence[Chunk]]:
            yield (TextDelta("half", 0),)
            try:
                await trio.sleep_forever()
            except trio.Cancelled:
                raise OSError("cut") from None

        yield waiting()

    async with open_test_runtime(model=Adapter(make)) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel("why")
        await agent.wait_idle()
        assert [(end.reason, end.also) for end in ends(agent)] == [("aborted", ("OSError: cut",))]
        (message,) = facts(agent, AssistantMessageLogged)
        assert message.interrupted


async def test_a_failure_out_of_an_adapters_nursery_keeps_its_code(
    autojump_clock: MockClock,
) -> None:
    @asynccontextmanager
    async def make(request: Request) -> AsyncIterator[ChunkStream]:
        async def fail() -> None:
            raise ModelFailure("RATE_LIMIT", "slow down")

        async def waiting() -> AsyncIterator[Sequence[Chunk]]:
            await trio.sleep_forever()
            yield ()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)
            yield waiting()

    assert await settled_with(make) == ("error", "RATE_LIMIT", FAILED[2])


async def test_a_stream_is_closed_when_its_turn_is_cancelled(autojump_clock: MockClock) -> None:
    closed: list[float] = []

    @asynccontextmanager
    async def make(request: Request) -> AsyncIterator[ChunkStream]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            try:
                yield _chunks()
            finally:
                closed.append(trio.current_time())
                nursery.cancel_scope.cancel()

    async with open_test_runtime(model=Adapter(make)) as runtime:
        agent = await runtime.create_agent("a")
        settled = await agent.ask("one")
        assert settled.code == "TRUNCATED"
    assert closed == [0]


# Listeners around the stream


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
        return _chunks(TextDelta("cached", 0), Finish("stop"))

    model = ScriptedModel([])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.stream.add(answer)
        assert (await agent.ask("one")).text == "cached"
    assert model.requests == []


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
