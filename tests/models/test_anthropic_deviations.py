"""What servers and gateways of the Messages API do that no recording shows, and bounds."""

import json
from typing import Any

import pytest

from tests.models.judging import opaque
from tests.models.reading import assembled, reader_of
from trioloop.chunks import Finish, Usage
from trioloop.errors import ModelFailure
from trioloop.stream.assemble import Assembled

START = {"type": "message_start", "message": {"id": "msg_1", "usage": {"input_tokens": 3}}}
STOP = {"type": "message_stop"}


def block(index: int, **start: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": start}


def delta(index: int, kind: str, **members: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **members}}


def text(index: int, said: str) -> dict[str, Any]:
    return delta(index, "text_delta", text=said)


def end(reason: str = "end_turn", **more: Any) -> dict[str, Any]:
    usage = {"output_tokens": 5}
    return {"type": "message_delta", "delta": {"stop_reason": reason, **more}, "usage": usage}


def read(*events: dict[str, Any]) -> tuple[Assembled, ModelFailure | None]:
    reader = reader_of("anthropic_messages", arguments_chars_max=50)
    chunks = []
    for event in events:
        chunks += reader.feed(b"data: " + json.dumps(event).encode() + b"\n\n")
    chunks += reader.close()
    return assembled(chunks), reader.failure


def test_a_message_that_begins_twice_goes_on() -> None:
    again = {"type": "message_start", "message": {"id": "msg_2"}}
    answer, failure = read(START, block(0, type="text"), text(0, "a"), again, text(0, "b"), end())
    assert failure is None
    assert answer.message.text == "ab"
    assert answer.finish == Finish("stop", "end_turn", response_id="msg_1")


def test_a_block_that_is_numbered_as_another_is_one_of_its_own() -> None:
    answer, _ = read(START, block(0, type="text", text="a"), block(0, type="text"), text(0, "b"),
                     end(), STOP)  # fmt: skip
    assert [found.text for found in answer.message.content] == ["a", "b"]  # type: ignore[union-attr]


def test_pieces_may_come_without_the_start_of_their_block() -> None:
    answer, failure = read(START, text(0, "a"), delta(1, "input_json_delta", partial_json="{"),
                           {"type": "content_block_stop", "index": 7}, end(), STOP)  # fmt: skip
    assert failure is None
    assert answer.message.text == "a"


def test_usage_is_replaced_and_what_isnt_told_stays() -> None:
    told = {"input_tokens": None, "cache_read_input_tokens": 4, "output_tokens": 7}
    counted = {"type": "message_delta", "delta": {}, "usage": told}
    answer, _ = read(START, text(0, "a"), counted, end(), STOP)
    assert answer.usage == Usage(7, 4, 5, None)


def test_a_call_that_comes_whole_is_read() -> None:
    call = block(0, type="tool_use", id="t", name="x", input={"a": 1})
    answer, _ = read(START, call, {"type": "content_block_stop", "index": 0}, end("tool_use"), STOP)
    assert [found.arguments for found in answer.message.calls] == ['{"a":1}']


def test_an_answer_in_one_piece_is_read() -> None:
    reader = reader_of("anthropic_messages")
    content = [{"type": "text", "text": "hi"}, {"type": "tool_use", "id": "t", "name": "x"}]
    body = {"type": "message", "id": "m", "content": content, "stop_reason": "tool_use"}
    answer = assembled(reader.feed_whole(json.dumps(body).encode()))
    assert reader.failure is None
    assert (answer.message.text, len(answer.message.calls)) == ("hi", 1)


def test_citations_and_callers_are_kept() -> None:
    citation = {"type": "char_location", "cited_text": "x"}
    caller = {"type": "code_execution_20260120", "tool_id": "s"}
    answer, _ = read(
        START, block(0, type="text"), delta(0, "citations_delta", citation=citation), text(0, "a"),
        block(1, type="tool_use", id="t", name="x", caller=caller), end("tool_use"), STOP,
    )  # fmt: skip
    kept = [json.loads(bytes(found.replay.data)) for found in answer.message.content]  # type: ignore[union-attr]
    assert kept == [{"citations": [citation]}, {"caller": caller}]


def test_a_server_tool_whose_input_was_cut_is_not_kept() -> None:
    tool = block(0, type="server_tool_use", id="s", name="search", input={})
    piece = delta(0, "input_json_delta", partial_json='{"q')
    answer, failure = read(START, tool, piece, end("max_tokens"), STOP)
    assert failure is None
    assert opaque(answer) == []


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("pause_turn", Finish("pause", "pause_turn", response_id="msg_1")),
        ("compaction", Finish("pause", "compaction", response_id="msg_1")),
        ("model_context_window_exceeded",
         Finish("length", "model_context_window_exceeded", response_id="msg_1")),
        ("new_reason", Finish("stop", "new_reason", inferred=True, response_id="msg_1")),
    ],
)  # fmt: skip
def test_why_it_stopped_is_told_in_our_words(reason: str, finish: Finish) -> None:
    answer, _ = read(START, text(0, "a"), end(reason), STOP)
    assert answer.finish == finish


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([{"type": "error", "error": {"type": "overloaded_error", "message": "m"}}], "OVERLOADED"),
        ([{"error": {"code": 500, "message": "m"}}], "SERVER"),
        ([text(0, "a"), STOP], "TRUNCATED"),
        ([text(0, "a")], "TRUNCATED"),
        ([block(0, type="tool_use", id="t"), end("tool_use"), STOP], "MALFORMED_RESPONSE"),
        ([block(0, type="tool_use", id="t", name="x"),
          delta(0, "input_json_delta", partial_json="x" * 51)], "MALFORMED_RESPONSE"),
        ([{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, STOP], "EMPTY_RESPONSE"),
    ],
)  # fmt: skip
def test_what_is_no_answer_fails(events: list[dict[str, Any]], code: str) -> None:
    answer, failure = read(START, *events)
    assert failure is not None
    assert failure.code == code
    assert answer.finish is None
