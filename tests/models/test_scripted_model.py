"""A scripted model answers each request with the next entry of its script."""

import pytest
import trio
import trio.testing

from tests.models.asking import ask, make_request
from trioloop.chunks import Finish, TextDelta
from trioloop.errors import InvalidInputError, ModelFailure
from trioloop.events import CallConfig
from trioloop.log.rebuild import Request
from trioloop.messages import ReasoningBlock, RefusalBlock, TextBlock, ToolCallBlock
from trioloop.models.scripted import (
    USAGE,
    Answer,
    Entry,
    Fail,
    Reasoning,
    Refusal,
    ScriptedModel,
    Stall,
    Text,
    ToolCall,
    Wait,
)


async def test_each_entry_answers_one_request(autojump_clock: trio.testing.MockClock) -> None:
    model = ScriptedModel([Text("one"), "two"])
    assert (await ask(model)).assembled.message.text == "one"
    assert (await ask(model)).assembled.message.text == "two"
    assert len(model.requests) == 2


async def test_a_used_up_script_is_a_failure_that_says_so() -> None:
    model = ScriptedModel([])
    with pytest.raises(ModelFailure, match="no entry for request 1") as caught:
        await ask(model)
    assert not caught.value.retryable


async def test_a_list_mixes_reasoning_text_and_calls() -> None:
    model = ScriptedModel(
        [[Reasoning("hm"), Text("I look."), ToolCall("temperature", city="Paris"), ToolCall("x")]]
    )
    asked = await ask(model)
    thought, said, first, second = asked.assembled.message.content
    assert (thought, said) == (ReasoningBlock("hm"), TextBlock("I look."))
    assert isinstance(first, ToolCallBlock)
    assert isinstance(second, ToolCallBlock)
    assert (first.name, first.arguments) == ("temperature", '{"city":"Paris"}')
    assert (second.name, second.arguments) == ("x", "{}")
    assert first.wire_id != second.wire_id
    assert asked.assembled.finish == Finish("tool_calls")
    assert asked.assembled.usage == USAGE


async def test_raw_arguments_may_be_no_json() -> None:
    model = ScriptedModel([Answer([ToolCall("x", raw_arguments='{"a')], finish="length")])
    asked = await ask(model)
    assert asked.assembled.message.calls[0].arguments == '{"a'
    assert asked.assembled.finish == Finish("length")


async def test_a_refusal_finishes_as_one() -> None:
    asked = await ask(ScriptedModel([Refusal("No.")]))
    assert asked.assembled.message.content == (RefusalBlock("No."),)
    assert asked.assembled.finish == Finish("refusal")


async def test_an_answer_may_be_empty_and_without_usage() -> None:
    asked = await ask(ScriptedModel([Answer([], usage=None)]))
    assert asked.assembled.message.content == ()
    assert asked.assembled.usage is None


async def test_fail_is_raised_on_entering_the_stream() -> None:
    model = ScriptedModel([Fail("RATE_LIMIT", retry_after=2, status=429)])
    call = await model.prepare(CallConfig(provider="scripted", model="scripted"))
    stream = call.stream(make_request())
    with pytest.raises(ModelFailure) as caught:
        await stream.__aenter__()
    failure = caught.value
    assert (failure.code, failure.retry_after_s, failure.status) == ("RATE_LIMIT", 2, 429)
    assert failure.retryable


async def test_fail_after_pieces_leaves_them_streamed() -> None:
    model = ScriptedModel([[Text("par"), Fail("TRUNCATED")]])
    call = await model.prepare(CallConfig(provider="scripted", model="scripted"))
    async with call.stream(make_request()) as stream:
        assert await anext(stream) == (TextDelta("par"),)
        with pytest.raises(ModelFailure, match="the script says so"):
            await anext(stream)


async def test_a_function_answers_by_the_request() -> None:
    def count(request: Request) -> Entry:
        return Text(f"{len(request.history)} message")

    every = ScriptedModel(count)
    assert (await ask(every)).assembled.message.text == "1 message"
    assert (await ask(every)).assembled.message.text == "1 message"


async def test_an_async_function_may_take_its_time(autojump_clock: trio.testing.MockClock) -> None:
    async def later(request: Request) -> Entry:
        await trio.sleep(60)
        return [Text("late")]

    assert (await ask(ScriptedModel([later]))).assembled.message.text == "late"
    assert trio.current_time() >= 60


async def test_pieces_are_cut_into_chunks_and_reads() -> None:
    model = ScriptedModel([Text("abcdefg")], chunk_chars=2, chunks_per_read=3)
    asked = await ask(model)
    assert [len(batch) for batch in asked.batches] == [3, 1, 2]
    assert asked.assembled.message.content == (TextBlock("abcdefg"),)


async def test_text_around_a_wait_is_one_block(autojump_clock: trio.testing.MockClock) -> None:
    model = ScriptedModel([[Text("a"), Wait(30), Text("b")]], read_delay_s=1)
    asked = await ask(model)
    assert asked.assembled.message.content == (TextBlock("ab"),)
    assert trio.current_time() == pytest.approx(33)


async def test_stall_lasts_until_it_is_cancelled(autojump_clock: trio.testing.MockClock) -> None:
    with trio.move_on_after(3600) as scope:
        await ask(ScriptedModel([[Text("a"), Stall()]]))
    assert scope.cancelled_caught


async def test_preparing_and_streaming_pass_checkpoints() -> None:
    model = ScriptedModel(["a"])
    config = CallConfig(provider="scripted", model="scripted")
    with trio.testing.assert_checkpoints():
        call = await model.prepare(config)
    with trio.testing.assert_checkpoints():
        stream = await call.stream(make_request()).__aenter__()
    with trio.testing.assert_checkpoints():
        await anext(stream)


async def test_a_piece_of_another_type_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="entry 1 of the script holds 3"):
        await ask(ScriptedModel([[3]]))  # type: ignore[list-item]


def test_a_failure_of_a_code_that_there_is_not_is_refused_where_it_is_written() -> None:
    with pytest.raises(InvalidInputError, match="'AUTHENTICATION' is no model failure"):
        Fail("AUTHENTICATION")
