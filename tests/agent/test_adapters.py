"""How a turn stands adapters that fail, swallow or replace what they shouldn't (E3, H6)."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress

import attrs
import trio
from trio.testing import MockClock

from tests.agent.reading import ends, facts, reasons, types
from trioloop.chunks import Chunk, Finish, TextDelta, ToolCallStart, Usage, UsageChunk
from trioloop.errors import ModelFailure
from trioloop.events import AssistantAttemptLogged, AssistantMessageLogged, CallConfig
from trioloop.log.rebuild import Request
from trioloop.messages import AssistantMessage
from trioloop.ports import Capabilities, ChunkStream, PreparedCall, RetryPolicy
from trioloop.testing import open_test_runtime
from trioloop.tools.tool import tool


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


async def _chunks(*chunks: Chunk) -> AsyncGenerator[Sequence[Chunk], None]:
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


async def test_nothing_is_read_behind_a_whole_answer(autojump_clock: MockClock) -> None:
    read_on: list[bool] = []

    async def talkative() -> AsyncGenerator[Sequence[Chunk], None]:
        yield (TextDelta("whole", 0), Finish("stop"))
        await trio.lowlevel.checkpoint()
        read_on.append(True)

    @asynccontextmanager
    async def make(request: Request) -> AsyncIterator[ChunkStream]:
        async with aclosing(talkative()) as stream:
            yield stream

    ended = await settled_with(make)
    assert ended == ("completed", None, ["assistant/message", "step/end", "turn/end"])
    assert not read_on


async def test_a_stream_that_ends_in_place_of_the_cancel_tells_no_failure(
    autojump_clock: MockClock,
) -> None:
    @asynccontextmanager
    async def make(request: Request) -> AsyncIterator[ChunkStream]:
        async def waiting() -> AsyncIterator[Sequence[Chunk]]:
            yield (TextDelta("half", 0),)
            with suppress(trio.Cancelled):
                await trio.sleep_forever()

        yield waiting()

    async with open_test_runtime(model=Adapter(make)) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel("why")
        await agent.wait_idle()
        assert [(end.reason, end.cause, end.also) for end in ends(agent)] == [
            ("aborted", "why", ())
        ]


async def test_no_frame_behind_a_cancel_is_kept_however_quick_it_comes(
    autojump_clock: MockClock,
) -> None:
    async def quick() -> AsyncGenerator[Sequence[Chunk], None]:
        yield (TextDelta("one", 0),)
        yield (TextDelta(" two", 0),)
        yield (Finish("stop"),)

    @asynccontextmanager
    async def make(request: Request) -> AsyncIterator[ChunkStream]:
        async with aclosing(quick()) as stream:
            yield stream

    async with open_test_runtime(model=Adapter(make)) as runtime:
        agent = await runtime.create_agent("a")
        agent.on("stream-chunk", lambda _: agent.cancel("why"))
        await agent.ask("one")
        (message,) = facts(agent, AssistantMessageLogged)
        assert (message.message.text, message.interrupted) == ("one", True)


async def test_what_a_cancelled_attempt_cost_is_kept(autojump_clock: MockClock) -> None:
    usage = Usage(input_tokens=5)

    async def waiting() -> AsyncIterator[Sequence[Chunk]]:
        yield (UsageChunk(usage),)
        await trio.sleep_forever()

    @asynccontextmanager
    async def make(request: Request) -> AsyncIterator[ChunkStream]:
        yield waiting()

    async with open_test_runtime(model=Adapter(make)) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel("why")
        await agent.wait_idle()
        assert [one.usage for one in facts(agent, AssistantAttemptLogged)] == [usage]
        assert agent.session.state.usage == usage


async def test_a_wire_id_that_an_earlier_answer_has_becomes_our_own(
    autojump_clock: MockClock,
) -> None:
    @tool(effects="read-only")
    async def look() -> str:
        """Look."""
        return "seen"

    @asynccontextmanager
    async def make(request: Request) -> AsyncIterator[ChunkStream]:
        asked = sum(isinstance(one, AssistantMessage) for one in request.messages)
        last = (TextDelta("done", 0), Finish("stop"))
        call = (ToolCallStart(0, "same", "look"), Finish("tool_calls"))
        async with aclosing(_chunks(*(last if asked == 2 else call))) as stream:
            yield stream

    async with open_test_runtime(model=Adapter(make), tools=[look]) as runtime:
        agent = await runtime.create_agent("a")
        assert (await agent.ask("one")).text == "done"
        answers = facts(agent, AssistantMessageLogged)
        ids = [call.wire_id for one in answers for call in one.message.calls]
        assert ids[0] == "same"
        assert len(set(ids)) == 2
