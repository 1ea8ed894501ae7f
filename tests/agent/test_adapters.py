"""How a turn stands adapters that fail, swallow or replace what they shouldn't (E3, H6)."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import attrs
import trio
from trio.testing import MockClock

from tests.agent.reading import ends, facts, reasons, types
from trioloop.chunks import Chunk, Finish, TextDelta
from trioloop.errors import ModelFailure
from trioloop.events import AssistantMessageLogged, CallConfig
from trioloop.log.rebuild import Request
from trioloop.ports import Capabilities, ChunkStream, PreparedCall, RetryPolicy
from trioloop.testing import open_test_runtime


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
