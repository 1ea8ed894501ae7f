"""Any bytes, cut anywhere, end in one finish or one failure, in bounded memory.

TRIOLOOP_FUZZ says how many examples of each kind are tried; small by default.
"""

import os
from itertools import pairwise

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.models.reading import READERS, assembled, reader_of
from tests.models.recordings import streams
from trioloop.chunks import Finish
from trioloop.errors import MODEL_FAILURE_CODES

EXAMPLES = int(os.environ.get("TRIOLOOP_FUZZ", "60"))
EVENT_BYTES_MAX = 3_000
fuzzed = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
each_api = pytest.mark.parametrize("api", READERS)
EVENTS = {
    api: [event.encode() + b"\n\n" for one in streams(api).values()
          for event in one["sse_text"].split("\n\n") if len(event) < EVENT_BYTES_MAX]
    for api in READERS
}  # fmt: skip
NAMES = [
    "type", "index", "delta", "content_block", "message", "usage", "error", "content", "text",
    "item", "output_index", "item_id", "response", "output", "status", "summary", "arguments",
    "call_id", "name", "id", "input", "partial_json", "signature", "thinking", "choices",
    "tool_calls", "function", "finish_reason", "reasoning_details", "stop_reason", "part",
]  # fmt: skip
WORDS = [
    "message_start", "content_block_start", "content_block_delta", "content_block_stop",
    "message_delta", "message_stop", "text_delta", "input_json_delta", "tool_use", "thinking",
    "redacted_thinking", "server_tool_use", "response.output_item.added", "function_call",
    "response.output_item.done", "response.completed", "response.failed", "reasoning",
    "response.output_text.delta", "response.function_call_arguments.done", "completed",
    "response.reasoning_summary_text.done", "stop", "end_turn", "error", "{}", "x",
]  # fmt: skip
values = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.floats() | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6)
    ),
    max_leaves=25,
)  # fmt: skip
nested = st.integers(1, 5_000).map(lambda depth: b"data: " + b"[" * depth + b"\n\n")


def encoded(value: object) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def assert_one_end(api: str, stream: bytes, cuts: list[int]) -> None:
    reader = reader_of(api, event_bytes_max=EVENT_BYTES_MAX, arguments_chars_max=500)
    chunks = []
    places = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    for start, end in pairwise(places):
        chunks += reader.feed(stream[start:end])
        assert reader._decoder.held_bytes <= EVENT_BYTES_MAX + 4_096
    chunks += reader.close()
    finishes = [chunk for chunk in chunks if isinstance(chunk, Finish)]
    assert len(finishes) == (reader.failure is None)
    assert reader.finished == (reader.failure is None)
    if reader.failure is not None:
        assert reader.failure.code in MODEL_FAILURE_CODES
    assembled(chunks)


@each_api
@given(data=st.data())
@fuzzed
def test_any_bytes_end_in_one_way(api: str, data: st.DataObject) -> None:
    pieces = data.draw(
        st.lists(
            st.binary(max_size=40)
            | st.sampled_from(EVENTS[api])
            | values.map(encoded)
            | nested
            | st.sampled_from([b"data: [DONE]\n\n", b"\r\n", b": x\n", b"event: error\n"]),
            max_size=8,
        )
    )
    cuts = data.draw(st.lists(st.integers(0, 4_000), max_size=6))
    assert_one_end(api, b"".join(pieces), cuts)


@each_api
@given(data=st.data())
@fuzzed
def test_a_recorded_stream_with_a_broken_place_ends_in_one_way(
    api: str, data: st.DataObject
) -> None:
    stream = data.draw(st.sampled_from([one["sse_text"] for one in streams(api).values()])).encode()
    start = data.draw(st.integers(0, len(stream)))
    length = data.draw(st.integers(0, 30))
    broken = stream[:start] + data.draw(st.binary(max_size=10)) + stream[start + length :]
    assert_one_end(api, broken, [start, start + 3])


@each_api
def test_what_comes_behind_the_end_spoils_nothing(api: str) -> None:
    ended = [one for one in streams(api).values() if "error" not in one["expected"]]
    assert ended
    for recording in ended:
        stream = recording["sse_text"].encode()
        assert_one_end(api, stream + b"data: " + b"[" * EVENT_BYTES_MAX + b"\n\n", [])


@each_api
@given(value=values)
@fuzzed
def test_any_answer_in_one_piece_ends_in_one_way(api: str, value: object) -> None:
    reader = reader_of(api)
    chunks = reader.feed_whole(msgspec.json.encode(value))
    assert reader.finished == (reader.failure is None)
    assert any(isinstance(chunk, Finish) for chunk in chunks) == reader.finished
