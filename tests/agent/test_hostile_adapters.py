"""What an adapter gives or raises may be anything: the attempt fails, the agent goes on (G12)."""

import math
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.agent.listening import retrying
from tests.agent.reading import facts, types
from tests.agent.test_adapters import Adapter
from trioloop.agent.agent import Agent
from trioloop.chunks import (
    ArgumentsDelta,
    Chunk,
    Finish,
    TextDelta,
    ToolCallStart,
    UsageChunk,
    expand,
)
from trioloop.errors import ModelFailure
from trioloop.events import AssistantAttemptLogged
from trioloop.log.rebuild import Request
from trioloop.ports import ChunkStream
from trioloop.testing import open_test_runtime

STOP: Any = (Finish("stop"),)


def adapter(first: Sequence[Any], error: BaseException | None = None) -> Adapter:
    """A model whose first answer is what a test says, and whose later ones are fine."""
    asked: list[Request] = []

    async def answer() -> AsyncGenerator[Sequence[Chunk], None]:
        for batch in first if len(asked) == 1 else [(TextDelta("fine", 0),), STOP]:
            await trio.lowlevel.checkpoint()
            yield batch
        if error is not None and len(asked) == 1:
            raise error

    @asynccontextmanager
    async def make(request: Request) -> AsyncIterator[ChunkStream]:
        asked.append(request)
        async with aclosing(answer()) as stream:
            yield stream

    def stream(request: Request) -> AbstractAsyncContextManager[ChunkStream]:
        return make(request)

    return Adapter(stream)


def _failure(agent: Agent) -> AssistantAttemptLogged:
    (attempt,) = facts(agent, AssistantAttemptLogged)
    assert attempt.sent
    assert not attempt.cancelled
    assert attempt.failure is not None
    return attempt


NO_CHUNKS: dict[str, list[Any]] = {
    "text in place of a chunk": [("text",), STOP],
    "a number": [(3,), STOP],
    "no text": [(TextDelta(None, 0),), STOP],  # type: ignore[arg-type]
    "half a character": [(TextDelta("a\ud800", 0),), STOP],
    "half a character in arguments": [
        (ToolCallStart(0, "w", "look"), ArgumentsDelta(0, '{"a": "\ud800"}')),
        STOP,
    ],
    "a block without a number": [(TextDelta("a", "b"),), STOP],  # type: ignore[arg-type]
    "a call without a name": [(ToolCallStart(0, "w", None),), STOP],  # type: ignore[arg-type]
    "no usage": [(UsageChunk(None), *STOP)],  # type: ignore[arg-type]
    "a finish of its own": [(Finish("whatever"),)],  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", NO_CHUNKS)
async def test_what_is_no_chunk_is_a_failed_attempt(case: str, autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=adapter(NO_CHUNKS[case])) as runtime:
        agent = await runtime.create_agent("a")
        settled = await agent.ask("one")
        assert (settled.reason, settled.code) == ("error", "MALFORMED_RESPONSE")
        assert _failure(agent).failure is not None
        assert types(agent)[-3:] == ["assistant/attempt", "step/end", "turn/end"]
        assert (await agent.ask("two")).text == "fine"


async def test_a_batch_that_is_none_is_a_failed_attempt(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=adapter([None])) as runtime:
        agent = await runtime.create_agent("a")
        assert (await agent.ask("one")).code == "UNKNOWN"
        assert _failure(agent).failure is not None


async def test_an_attempt_of_no_chunks_may_be_retried(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=adapter([("text",), STOP])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request_error.add(retrying())
        settled = await agent.ask("one")
        assert (settled.reason, settled.text) == ("completed", "fine")
        assert types(agent).count("step/start") == 1


async def test_a_cancel_behind_what_is_no_chunk_is_an_abort(autojump_clock: MockClock) -> None:
    async def stalling() -> AsyncGenerator[Sequence[Any], None]:
        yield ("text",)
        await trio.sleep_forever()

    @asynccontextmanager
    async def make(request: Request) -> AsyncIterator[ChunkStream]:
        async with aclosing(stalling()) as stream:
            yield stream

    async with open_test_runtime(model=Adapter(make)) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel("why")
        await agent.wait_idle()
        (attempt,) = facts(agent, AssistantAttemptLogged)
        assert attempt.cancelled
        assert types(agent)[-3:] == ["assistant/attempt", "step/end", "turn/end"]


class _Unreadable(ModelFailure):
    @property
    def status(self) -> int | None:
        """No status can be had."""
        raise RuntimeError("no")

    @status.setter
    def status(self, value: int | None) -> None:
        pass


class _SpeechlessError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def _server(**facts: object) -> ModelFailure:
    failure = ModelFailure("SERVER", "it broke")
    for name, value in facts.items():
        object.__setattr__(failure, name, value)
    return failure


ODD: dict[str, tuple[Exception, str]] = {
    "a wait that is no number": (_server(retry_after_s=math.nan), "SERVER"),
    "an endless wait": (_server(retry_after_s=math.inf), "SERVER"),
    "a wait into the past": (_server(retry_after_s=-1), "SERVER"),
    "a message that is an object": (_server(message=object()), "SERVER"),
    "half a character in its message": (_server(message="\ud800"), "SERVER"),
    "a code that is a number": (_server(code=3), "UNKNOWN"),
    "a status in words": (_server(status="broken"), "SERVER"),
    "facts that can't be read": (_Unreadable("SERVER", "it broke"), "UNKNOWN"),
    "words that can't be read": (_SpeechlessError(), "UNKNOWN"),
    "half a character": (RuntimeError("\ud800"), "UNKNOWN"),
    "a very long message": (RuntimeError("x" * 10_000_000), "UNKNOWN"),
    "an error without a code": (RuntimeError("plain"), "UNKNOWN"),
}


@pytest.mark.parametrize("case", ODD)
async def test_odd_facts_of_a_failure_are_left_out(case: str, autojump_clock: MockClock) -> None:
    error, code = ODD[case]
    model = adapter([(TextDelta("half", 0),)], error)
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        settled = await agent.ask("one")
        assert (settled.reason, settled.code) == ("error", code)
        attempt = _failure(agent)
        assert attempt.failure is not None
        assert attempt.failure.status is None
        assert attempt.failure.retry_after_s is None
        assert len(attempt.failure.message) < 5_000
        (frame,) = expand(attempt.stream, ())
        assert frame.chunks == (TextDelta("half", 0),)
        assert (await agent.ask("two")).text == "fine"


async def test_a_stream_that_dies_behind_the_head_of_a_call_admits_no_call(
    autojump_clock: MockClock,
) -> None:
    model = adapter([(ToolCallStart(0, "w", "look"),)])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        settled = await agent.ask("one")
        assert (settled.reason, settled.code) == ("error", "TRUNCATED")
        assert "tool/call" not in types(agent)
        await agent.wait_idle()
        assert (await agent.ask("two")).text == "fine"
