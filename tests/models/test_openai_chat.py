"""The Chat Completions adapter over a mocked server: what it sends, reads, refuses and times."""

import json

import httpx  # noqa: ASYNC127 - as in trioloop/models/transport.py
import pytest

from tests.models.asking import ask, collect, failure_of
from tests.models.judging import assert_as_expected
from tests.models.recordings import Recording, error_bodies, streams
from tests.models.serving import ANSWER, HALF, Pieces, mocked, streaming
from trioloop.chunks import Finish, Frame, TextDelta
from trioloop.ids import call_id
from trioloop.models.kinds import FAILURE_CODES
from trioloop.stream.assemble import assemble

STREAMS = streams("openai_chat")
ERRORS = {name: found for name, found in error_bodies().items() if found["api"] == "openai_chat"}


def test_the_recordings_are_all_here() -> None:
    assert (len(STREAMS), len(ERRORS)) == (26, 13)


@pytest.mark.parametrize("size", [7, 4096, 10**9])
@pytest.mark.parametrize("recording", STREAMS.values(), ids=STREAMS.keys())
async def test_a_recorded_stream_reads_as_expected(recording: Recording, size: int) -> None:
    data = recording["sse_text"].encode()
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    model, mock = mocked(httpx.Response(200, headers=recording["headers"], stream=Pieces(pieces)))
    chunks, failure = await collect(model)
    answer = assemble(
        [Frame(0, tuple(chunks))],
        provider="p",
        model="m",
        call_id=lambda index: call_id(1, 1, index),
        used_wire_ids=(),
    )
    assert_as_expected(recording, answer, failure)
    assert [type(chunk) for chunk in chunks].count(Finish) == (failure is None)
    assert failure is not None or isinstance(chunks[-1], Finish)
    assert len(mock.requests) == 1


@pytest.mark.parametrize("recording", ERRORS.values(), ids=ERRORS.keys())
async def test_a_recorded_refusal_fails_after_one_request(recording: Recording) -> None:
    headers = {
        name: value
        for name, value in recording["headers"].items()
        if name not in {"content-encoding", "transfer-encoding"}
    }
    model, mock = mocked(
        httpx.Response(recording["status"], headers=headers, content=recording["body"])
    )
    failure = await failure_of(model)
    assert failure.code == FAILURE_CODES[recording["expected"]["error_kind"]]
    assert failure.retryable == recording["expected"]["retryable"]
    assert len(mock.requests) == 1


async def test_what_is_sent() -> None:
    model, mock = mocked(streaming(ANSWER), api_key="the-key", headers={"x-team": "blue-team"})
    await collect(model)
    (request,) = mock.requests
    assert request.method == "POST"
    assert str(request.url) == "https://api.test/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer the-key"
    assert request.headers["x-team"] == "blue-team"
    assert request.headers["content-type"] == "application/json"
    assert json.loads(request.content) == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": "hello"}],
    }


async def test_what_was_read_before_a_failure_is_given_first() -> None:
    broken = HALF + b'data: {"error": {"code": 502, "message": "down"}}\n\n'
    model, _ = mocked(streaming(broken))
    chunks, failure = await collect(model)
    assert chunks == [TextDelta("par")]
    assert failure is not None
    assert failure.code == "SERVER"


async def test_a_clean_end_without_a_finish_is_truncated() -> None:
    model, _ = mocked(streaming(HALF))
    chunks, failure = await collect(model)
    assert chunks == [TextDelta("par")]
    assert failure is not None
    assert failure.code == "TRUNCATED"


@pytest.mark.parametrize("content_type", ["application/json", "application/octet-stream"])
async def test_an_answer_in_one_piece_of_json_is_read(content_type: str) -> None:
    message = {"role": "assistant", "content": "hi", "tool_calls": None}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    pieces = Pieces(
        [b"\n", b"\n\n", json.dumps(body).encode()[:20], json.dumps(body).encode()[20:]]
    )
    model, _ = mocked(httpx.Response(200, headers={"content-type": content_type}, stream=pieces))
    asked = await ask(model)
    assert asked.assembled.message.text == "hi"
    assert asked.assembled.finish == Finish("stop", "stop")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"error": {"code": 429, "message": "slow down"}}', "RATE_LIMIT"),
        (b'{"status": "ok"}', "MALFORMED_RESPONSE"),
        (b'{"choices": [', "MALFORMED_RESPONSE"),
    ],
)
async def test_json_that_is_no_answer_fails(body: bytes, code: str) -> None:
    model, _ = mocked(httpx.Response(200, headers={"content-type": "text/plain"}, content=body))
    assert (await failure_of(model)).code == code


async def test_a_page_is_no_answer() -> None:
    model, _ = mocked(httpx.Response(200, html="<html>Welcome</html>"))
    failure = await failure_of(model)
    assert failure.code == "MALFORMED_RESPONSE"
    assert "base_url" in failure.message


async def test_no_key_and_no_header_is_told_in_a_failure() -> None:
    echo = {"error": {"message": "wrong: the-secret-key and the-other-secret", "code": "x"}}
    model, _ = mocked(
        httpx.Response(401, json=echo),
        api_key="the-secret-key",
        headers={"api-key": "the-other-secret"},
    )
    failure = await failure_of(model)
    assert "secret" not in f"{failure!r} {failure} {failure.message} {model!r}"
    assert failure.message == "401, authentication: wrong: [key] and [key]"


@pytest.mark.parametrize(
    "error",
    [
        httpx.ReadError("reset"),
        httpx.RemoteProtocolError("Server disconnected"),
        httpx.ConnectError("refused"),
        httpx.WriteError(""),
    ],
)
async def test_a_broken_connection_is_a_transport_failure(error: Exception) -> None:
    model, mock = mocked(error)
    failure = await failure_of(model)
    assert failure.code == "TRANSPORT"
    assert failure.__cause__ is None
    assert len(mock.requests) == 1


async def test_a_header_that_http_refuses_is_not_told() -> None:
    model, _ = mocked(httpx.LocalProtocolError("Illegal header value b'Bearer key'"))
    failure = await failure_of(model)
    assert failure.code == "INVALID_REQUEST"
    assert "key" not in str(failure)
