"""What imitators of the Chat Completions API do that no recording shows, and bounds."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trioloop.chunks import (
    ArgumentsDelta,
    Chunk,
    Finish,
    Frame,
    ReplayChunk,
    TextDelta,
    ToolCallStart,
    Usage,
)
from trioloop.errors import ModelFailure
from trioloop.ids import call_id
from trioloop.messages import ReasoningBlock, Replay
from trioloop.models.answer_reader import Reading
from trioloop.models.chat_stream import ChatReader, read_usage
from trioloop.stream.assemble import Assembled, assemble


def reader(arguments_chars_max: int = 1_000) -> ChatReader:
    return ChatReader(
        Reading(replay_key="p", event_bytes_max=10_000, arguments_chars_max=arguments_chars_max)
    )


def event(delta: object = None, finish: str | None = None, **members: object) -> bytes:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice], **members}).encode() + b"\n\n"


def call(**piece: object) -> dict[str, object]:
    function = {name: piece.pop(name) for name in ("name", "arguments") if name in piece}
    return {**piece, "function": function}


def calls(*pieces: dict[str, object]) -> dict[str, object]:
    return {"tool_calls": list(pieces)}


DONE = b"data: [DONE]\n\n"


def read(*events: bytes) -> tuple[Assembled, ModelFailure | None]:
    chat = reader()
    chunks: list[Chunk] = [chunk for data in events for chunk in chat.feed(data)]
    chunks += chat.close()
    assembled = assemble(
        [Frame(0, tuple(chunks))],
        provider="p",
        model="m",
        call_id=lambda index: call_id(1, 1, index),
        used_wire_ids=(),
    )
    return assembled, chat.failure


def called(*deltas: object) -> list[tuple[str, str, str]]:
    answer, failure = read(*[event(delta) for delta in deltas], event(finish="tool_calls"))
    assert failure is None
    return [(block.wire_id, block.name, block.arguments) for block in answer.message.calls]


def test_arguments_may_be_null_an_object_or_absent() -> None:
    assert called(
        calls(call(index=0, id="a", name="x", arguments=None)),
        calls(call(index=1, id="b", name="y", arguments={"city": "Paris"})),
        calls(call(index=2, id="c", name="z")),
    ) == [("a", "x", ""), ("b", "y", '{"city":"Paris"}'), ("c", "z", "")]


def test_calls_that_are_all_numbered_0_are_told_apart_by_id() -> None:
    assert called(
        calls(call(index=0, id="a", name="x", arguments='{"n":1}')),
        calls(call(index=0, id="b", name="x", arguments='{"n":2}')),
    ) == [("a", "x", '{"n":1}'), ("b", "x", '{"n":2}')]


def test_an_id_that_changes_within_a_call_is_still_one_call() -> None:
    assert called(
        calls(call(index=0, id="a", name="x", arguments='{"n"')),
        calls(call(index=0, id="b", name="x", arguments=":1}")),
    ) == [("a", "x", '{"n":1}')]


def test_whole_calls_without_index_and_id_are_told_apart() -> None:
    assert called(
        calls(call(name="x", arguments="{}"), call(name="y", arguments="{}")),
    ) == [(call_id(1, 1, 0), "x", "{}"), (call_id(1, 1, 1), "y", "{}")]


def test_without_index_pieces_without_id_continue_the_last_call() -> None:
    assert called(
        calls(call(id="a", name="x", arguments="{")),
        calls(call(arguments="}")),
        calls(call(id="b", name="y", arguments="{}")),
        calls(call(id="a", name="x", arguments=" ")),
    ) == [("a", "x", "{} "), ("b", "y", "{}")]


def test_a_name_may_come_after_arguments() -> None:
    assert called(
        calls(call(index=0, id="a", arguments="{")), calls(call(index=0, name="x", arguments="}"))
    ) == [("a", "x", "{}")]


def test_a_function_call_of_old_is_a_call() -> None:
    answer, failure = read(
        event({"function_call": {"name": "x", "arguments": "{"}}),
        event({"function_call": {"arguments": "}"}}),
        event(finish="function_call"),
    )
    assert failure is None
    assert [(block.name, block.arguments) for block in answer.message.calls] == [("x", "{}")]
    assert answer.finish == Finish("tool_calls", "function_call")


def test_stop_with_calls_means_calls() -> None:
    answer, _ = read(event(calls(call(index=0, id="a", name="x", arguments="{}")), "stop"))
    assert answer.finish == Finish("tool_calls", "stop")


def test_tool_calls_without_a_call_means_stop() -> None:
    answer, _ = read(event({"content": "hi"}, "tool_calls"))
    assert answer.finish == Finish("stop", "tool_calls")


def test_a_call_without_a_name_is_malformed() -> None:
    answer, failure = read(event(calls(call(index=0, id="a", arguments="{}")), "tool_calls"))
    assert failure is not None
    assert failure.code == "MALFORMED_RESPONSE"
    assert answer.finish is None


def test_an_unknown_finish_is_kept_in_its_own_words() -> None:
    answer, _ = read(event({"content": "hi"}, "eos_token"))
    assert answer.finish == Finish("stop", "eos_token", inferred=True)


@pytest.mark.parametrize(
    ("finish", "code"), [("error", "SERVER"), ("insufficient_system_resource", "OVERLOADED")]
)
def test_a_finish_that_is_an_error_fails(finish: str, code: str) -> None:
    answer, failure = read(event({"content": "par"}), event(finish=finish), DONE)
    assert failure is not None
    assert failure.code == code
    assert answer.message.text == "par"


def test_error_wins_over_an_earlier_finish() -> None:
    _, failure = read(event({"content": "par"}, "stop"), event(finish="error"), DONE)
    assert failure is not None
    assert failure.code == "SERVER"


def test_an_error_in_a_chunk_keeps_the_text_of_that_chunk() -> None:
    answer, failure = read(event({"content": "par"}, error={"code": 502, "message": "down"}))
    assert failure is not None
    assert failure.code == "SERVER"
    assert failure.message == "502, server: down"
    assert answer.message.text == "par"


def test_nothing_after_the_end_belongs_to_the_answer() -> None:
    answer, failure = read(event({"content": "hi"}, "stop"), DONE, event({"content": "more"}))
    assert failure is None
    assert answer.message.text == "hi"


def test_a_call_cut_off_before_the_mark_of_the_end_is_truncated() -> None:
    _, failure = read(event(calls(call(index=0, id="a", name="x", arguments='{"ci'))), DONE)
    assert failure is not None
    assert failure.code == "TRUNCATED"


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": 3, "completion_tokens": 0}])
def test_an_answer_of_nothing_is_empty(usage: object) -> None:
    _, failure = read(event({"content": ""}, "stop", usage=usage))
    assert failure is not None
    assert failure.code == "EMPTY_RESPONSE"


@pytest.mark.parametrize(
    ("finish", "usage"),
    [("stop", {"prompt_tokens": 3, "completion_tokens": 9}), ("content_filter", None)],
)
def test_an_answer_without_content_that_has_a_reason_is_an_answer(
    finish: str, usage: object
) -> None:
    answer, failure = read(event({"content": None}, finish, usage=usage))
    assert failure is None
    assert answer.message.content == ()


def test_usage_may_hide_in_a_choice_or_beside_it() -> None:
    counts = {"prompt_tokens": 3, "completion_tokens": 4, "prompt_cache_hit_tokens": 2}
    in_choice = b'data: {"choices": [{"finish_reason": "length", "usage": %b}]}\n\n'
    answer, _ = read(in_choice % json.dumps(counts).encode())
    assert answer.usage == Usage(3, 2, 4)
    assert read_usage({"x_groq": {"usage": counts}}) == Usage(3, 2, 4)
    assert read_usage({"usage": {"prompt_tokens": "3"}}) is None
    assert read_usage({"usage": {"prompt_tokens": -3, "completion_tokens": 1}}) == Usage(
        None, None, 1
    )


def test_half_a_surrogate_pair_does_not_break_the_stream() -> None:
    answer, failure = read(
        b'data: {"choices": [{"delta": {"content": "a\\ud83d"}}]}\n\n',
        b'data: {"choices": [{"delta": {"content": "b\xff"}, "finish_reason": "stop"}]}\n\n',
    )
    assert failure is None
    assert answer.message.text == "a?b\ufffd"


def test_broken_json_in_the_middle_is_malformed() -> None:
    answer, failure = read(event({"content": "par"}), b"data: {\n\n", event({"content": "more"}))
    assert failure is not None
    assert failure.code == "MALFORMED_RESPONSE"
    assert answer.message.text == "par"


def test_arguments_beyond_their_limit_are_refused() -> None:
    chat = reader(arguments_chars_max=10)
    first = chat.feed(event(calls(call(index=0, id="a", name="x", arguments='{"a":1'))))
    assert first == [ToolCallStart(0, "a", "x"), ArgumentsDelta(0, '{"a":1')]
    assert chat.feed(event(calls(call(index=0, arguments="12345")))) == []
    assert chat.failure is not None
    assert chat.failure.code == "MALFORMED_RESPONSE"
    assert chat.feed(event({"content": "more"})) == []


def test_an_event_beyond_its_limit_is_refused() -> None:
    chat = reader()
    assert chat.feed(event({"content": "a"})) == [TextDelta("a")]
    assert chat.feed(b"data: " + b"x" * 10_001) == []
    assert chat.failure is not None
    assert chat.failure.code == "MALFORMED_RESPONSE"


def test_signed_reasoning_details_are_joined_to_be_sent_back() -> None:
    answer, _ = read(
        event({"reasoning": "I th", "reasoning_details": [
            {"type": "reasoning.text", "text": "I th", "index": 0, "format": "f"}]}),
        event({"reasoning": "ink", "reasoning_details": [
            {"type": "reasoning.text", "text": "ink", "index": 0, "signature": None}]}),
        event({"reasoning_details": [
            {"type": "reasoning.text", "signature": "sig", "index": 0}]}, "stop"),
    )  # fmt: skip
    (block,) = answer.message.content
    assert isinstance(block, ReasoningBlock)
    assert block.text == "I think"
    assert isinstance(block.replay, Replay)
    assert msgspec.json.decode(block.replay.data) == {
        "reasoning_details": [
            {
                "type": "reasoning.text",
                "text": "I think",
                "index": 0,
                "format": "f",
                "signature": "sig",
            }
        ]
    }


def test_plain_reasoning_details_are_not_kept_twice() -> None:
    details = [{"type": "reasoning.text", "text": "hm", "index": 0}]
    chat = reader()
    chunks = chat.feed(event({"reasoning": "hm", "reasoning_details": details}, "stop") + DONE)
    assert not any(isinstance(chunk, ReplayChunk) for chunk in chunks)


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4)
    | st.sampled_from(["stop", "error", "length", "thinking", "{}"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["choices", "delta", "content", "tool_calls", "function", "function_call", "id",
             "index", "name", "arguments", "finish_reason", "usage", "error", "reasoning",
             "reasoning_details", "refusal", "prompt_tokens", "text", "type", "x_groq"]
        ),
        inner,
        max_size=5,
    ),
    max_leaves=30,
)  # fmt: skip


@given(st.lists(_values | st.binary(max_size=10), max_size=5))
def test_any_events_end_in_a_finish_or_a_failure(events: list[object]) -> None:
    chat = reader()
    for value in events:
        data = value if isinstance(value, bytes) else msgspec.json.encode(value)
        chat.feed(b"data: " + data + b"\n\n")
    chat.close()
    assert chat.finished == (chat.failure is None)


@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "index": st.none() | st.integers(0, 2),
                "id": st.sampled_from(["", "a", "b"]),
                "function": st.fixed_dictionaries(
                    {},
                    optional={
                        "name": st.sampled_from(["", "x", "y"]),
                        "arguments": st.sampled_from([None, "", "{}", '{"a', '":1}', {"a": 1}]),
                    },
                ),
            },
        ),
        max_size=8,
    )
)
def test_any_pieces_of_calls_start_each_call_once(pieces: list[dict[str, object]]) -> None:
    chat = reader()
    chunks = [chunk for piece in pieces for chunk in chat.feed(event(calls(piece)))]
    started = [chunk.block for chunk in chunks if isinstance(chunk, ToolCallStart)]
    assert len(set(started)) == len(started)
    for place, chunk in enumerate(chunks):
        if isinstance(chunk, ArgumentsDelta):
            assert any(
                isinstance(earlier, ToolCallStart) and earlier.block == chunk.block
                for earlier in chunks[:place]
            )
