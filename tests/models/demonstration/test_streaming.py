"""How the demonstration model streams: in small pieces, at its pace, with one finish."""

import gc
from typing import Any

import pytest
import trio
import trio.testing

from trioloop.chunks import Finish, TextDelta, ToolCallStart, UsageChunk
from trioloop.errors import InvalidInputError
from trioloop.events import CallConfig
from trioloop.ids import SessionId
from trioloop.log.rebuild import Request
from trioloop.messages import user_message
from trioloop.models.demonstration import DemonstrationModel

CONFIG = CallConfig(provider="trioloop", model="demonstration")


def request(tool: Any, question: str = "add 2 and 3") -> Request:
    number = {"type": "number"}
    add = tool("add", "Add two numbers.", a=number, b=number)
    history: Any = (user_message(question),)  # any sequence of messages will do here
    return Request(CONFIG, (add,), (), history, SessionId("demo"))


async def test_pieces_come_at_the_pace_that_was_asked(tool: Any, autojump_clock: Any) -> None:
    prepared = await DemonstrationModel(pace_s=0.5).prepare(CONFIG)
    async with prepared.stream(request(tool, "hello")) as stream:
        started = trio.current_time()
        times = [trio.current_time() - started async for _ in stream]
    assert len(times) > 10
    assert times == pytest.approx([0.5 * (index + 1) for index in range(len(times))])


async def test_a_call_streams_its_start_its_arguments_and_one_finish(tool: Any) -> None:
    prepared = await DemonstrationModel(pace_s=0).prepare(CONFIG)
    async with prepared.stream(request(tool)) as stream:
        batches = [batch async for batch in stream]
    assert batches[0] == [ToolCallStart(0, "demo_0", "add")]
    *_, usage, finish = batches[-1]
    assert finish == Finish("tool_calls")
    assert isinstance(usage, UsageChunk)
    assert usage.usage.input_tokens == 4
    assert not any(isinstance(chunk, TextDelta) for batch in batches for chunk in batch)


async def test_asking_passes_checkpoints_and_can_be_cancelled(tool: Any) -> None:
    prepared = await DemonstrationModel(pace_s=0).prepare(CONFIG)
    with trio.testing.assert_checkpoints():
        await DemonstrationModel().prepare(CONFIG)
    with trio.CancelScope() as scope:
        async with prepared.stream(request(tool)) as stream:
            scope.cancel()
            async for _ in stream:
                pytest.fail("a cancelled stream gave a batch")
    assert scope.cancelled_caught


@pytest.mark.parametrize("pace_s", [-1, float("nan"), float("inf")])
def test_a_pace_that_is_no_time_is_refused(pace_s: float) -> None:
    with pytest.raises(InvalidInputError, match="pace_s must be 0 or more seconds"):
        DemonstrationModel(pace_s=pace_s)


async def test_a_stream_that_is_left_early_leaves_nothing_behind(tool: Any) -> None:
    prepared = await DemonstrationModel(pace_s=0).prepare(CONFIG)
    async with prepared.stream(request(tool)) as stream:
        await anext(stream)
    gc.collect()  # a generator that wasn't closed would warn here, and warnings are errors
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
