"""What a cancel or a failure leaves of an answer that is on its way (P8 to P10, P13, E3)."""

from collections.abc import AsyncIterator, Sequence

import trio
from trio.testing import MockClock

from tests.agent.reading import ends, facts, said, types
from trioloop.agent.notifications import StreamChunks, StreamEnded
from trioloop.chunks import Chunk, Finish, TextDelta, Usage, UsageChunk, expand
from trioloop.events import (
    AssistantAttemptLogged,
    AssistantMessageLogged,
    Event,
    StepStarted,
    ToolResultLogged,
)
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import AttemptFailed, Retry, StreamRequest
from trioloop.messages import TextBlock
from trioloop.ports import ChunkStream
from trioloop.testing import (
    Fail,
    Reasoning,
    ScriptedModel,
    Stall,
    Text,
    ToolCall,
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


async def test_a_cancel_as_the_last_frame_comes_keeps_the_whole_message(
    autojump_clock: MockClock,
) -> None:
    def cancel(told: StreamChunks) -> None:
        if any(isinstance(chunk, Finish) for chunk in told.chunks):
            agent.cancel("listener")

    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.on("stream-chunk", cancel)
        settled = await agent.ask("one")
        assert (settled.reason, settled.text) == ("aborted", "hi")
        (message,) = facts(agent, AssistantMessageLogged)
        assert (message.finish is not None, message.interrupted) == (True, False)


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
