"""What servers of the Responses API do that no recording shows, and bounds."""

import json
from typing import Any

import pytest

from tests.models.reading import assembled, reader_of
from trioloop.chunks import Finish
from trioloop.errors import ModelFailure
from trioloop.stream.assemble import Assembled

CALL = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "x"}
SAID = {"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "hi"}]}


def ends(status: str = "completed", **more: Any) -> dict[str, Any]:
    return {"type": f"response.{status}", "response": {"id": "r", "status": status, **more}}


def event(kind: str, **members: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", **members}


def read(*events: dict[str, Any]) -> tuple[Assembled, ModelFailure | None]:
    reader = reader_of("openai_responses", arguments_chars_max=50, output_tokens_max=9)
    chunks = []
    for one in events:
        chunks += reader.feed(b"data: " + json.dumps(one).encode() + b"\n\n")
    chunks += reader.close()
    return assembled(chunks), reader.failure


def calls_of(answer: Assembled) -> list[tuple[str, str, str]]:
    return [(call.wire_id, call.name, call.arguments) for call in answer.message.calls]


def test_items_that_only_the_end_tells_are_read() -> None:
    answer, failure = read(ends(output=[SAID, {**CALL, "arguments": "{}"}]))
    assert failure is None
    assert answer.message.text == "hi"
    assert calls_of(answer) == [("c", "x", "{}")]


def test_an_end_that_tells_fewer_items_takes_none_away() -> None:
    answer, _ = read(
        event("output_item.done", output_index=0, item=SAID),
        event("output_item.done", output_index=1, item={**CALL, "arguments": "{}"}),
        ends(output=[{**CALL, "id": "fc_other", "arguments": "{}"}]),
    )
    assert answer.message.text == "hi"
    assert calls_of(answer) == [("c", "x", "{}")]


def test_what_the_pieces_left_out_is_given_with_the_end() -> None:
    answer, _ = read(
        event("output_text.delta", output_index=0, content_index=0, delta="h"),
        event("output_item.added", output_index=1, item=CALL),
        event("function_call_arguments.delta", output_index=1, delta='{"a"'),
        event("output_item.done", output_index=0, item=SAID),
        event("output_item.done", output_index=1, item={**CALL, "arguments": '{"a":1}'}),
        ends(),
    )
    assert answer.message.text == "hi"
    assert calls_of(answer) == [("c", "x", '{"a":1}')]


def test_arguments_that_are_only_written_otherwise_are_good() -> None:
    answer, failure = read(
        event("output_item.added", output_index=0, item=CALL),
        event("function_call_arguments.delta", output_index=0, delta='{"a": 1}'),
        event("output_item.done", output_index=0, item={**CALL, "arguments": '{"a":1}'}),
        ends(),
    )
    assert failure is None
    assert calls_of(answer) == [("c", "x", '{"a": 1}')]


def test_arguments_may_come_before_the_name_of_their_call() -> None:
    answer, _ = read(
        event("function_call_arguments.delta", output_index=0, delta="{}"),
        event("output_item.done", output_index=0, item={**CALL, "arguments": "{}"}),
        ends(),
    )
    assert calls_of(answer) == [("c", "x", "{}")]


def test_a_call_cut_at_the_token_limit_is_told_as_cut_whatever_the_status() -> None:
    cut = {**CALL, "arguments": '{"a'}
    for used, reason in ((9, "length"), (8, "tool_calls")):
        answer, _ = read(ends(output=[cut], usage={"input_tokens": 1, "output_tokens": used}))
        assert answer.finish == Finish(reason, "completed", response_id="r")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("why", "finish"),
    [
        ("content_filter", Finish("content_filter", "incomplete:content_filter", response_id="r")),
        ("new", Finish("length", "incomplete:new", inferred=True, response_id="r")),
    ],
)
def test_why_it_is_incomplete_is_told_in_our_words(why: str, finish: Finish) -> None:
    answer, _ = read(ends("incomplete", output=[SAID], incomplete_details={"reason": why}))
    assert answer.finish == finish


def test_items_of_the_server_are_kept_whole() -> None:
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    answer, _ = read(event("output_item.done", output_index=0, item=search), ends(output=[search]))
    (block,) = answer.message.content
    assert json.loads(bytes(block.replay.data)) == search  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([{"type": "error", "code": "rate_limit_exceeded", "message": "m"}], "RATE_LIMIT"),
        ([ends("failed", error={"code": "server_error", "message": "m"})], "SERVER"),
        ([ends("failed", error=None)], "SERVER"),
        ([event("output_text.delta", output_index=0, delta="a")], "TRUNCATED"),
        ([event("output_item.done", output_index=0, item=SAID)], "TRUNCATED"),
        ([ends(output=[])], "EMPTY_RESPONSE"),
        ([ends(output=[{"type": "function_call", "call_id": "c"}])], "MALFORMED_RESPONSE"),
        ([ends(output=[{**CALL, "arguments": "x" * 51}])], "MALFORMED_RESPONSE"),
        ([event("output_item.added", output_index=0, item=CALL),
          event("function_call_arguments.delta", output_index=0, delta='{"a":1}'),
          event("output_item.done", output_index=0, item={**CALL, "arguments": '{"a":2}'})],
         "MALFORMED_RESPONSE"),
    ],
)  # fmt: skip
def test_what_is_no_answer_fails(events: list[dict[str, Any]], code: str) -> None:
    answer, failure = read(*events)
    assert failure is not None
    assert failure.code == code
    assert answer.finish is None


def test_done_without_an_end_is_truncated() -> None:
    reader = reader_of("openai_responses")
    reader.feed(b'data: {"type":"response.output_text.delta","delta":"a"}\n\ndata: [DONE]\n\n')
    assert reader.failure is not None
    assert reader.failure.code == "TRUNCATED"
