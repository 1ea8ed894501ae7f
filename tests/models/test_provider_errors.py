"""Every recorded error body, and every envelope, tells one kind of failure and no secret."""

import re
from email.utils import formatdate

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.recordings import Recording, error_bodies, recordings
from trioloop.errors import MODEL_FAILURE_CODES, ModelFailure
from trioloop.models.failures import (
    ContextTokens,
    context_tokens,
    error_kind,
    failure_in_stream,
    failure_of_reply,
    read_error,
    retry_after_s,
    safe_text,
)
from trioloop.models.kinds import FAILED_FINISHES, FAILURE_CODES, FINISHES

BODIES = error_bodies()
each_body = pytest.mark.parametrize("recording", BODIES.values(), ids=BODIES.keys())


def failure_of(status: int, body: object, **headers: str) -> ModelFailure:
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return failure_of_reply(status, named, raw, secrets=(), now=0)


def test_the_recordings_are_all_here() -> None:
    assert len(BODIES) == 24


@each_body
def test_a_recorded_error_is_of_its_kind(recording: Recording) -> None:
    expected = recording["expected"]
    headers, body = recording["headers"], recording["body"].encode()
    failure = failure_of_reply(recording["status"], headers, body, secrets=(), now=0)
    assert failure.code == FAILURE_CODES[expected["error_kind"]]
    assert failure.retryable == expected["retryable"]
    assert failure.status == recording["status"]
    assert failure.request_id == (headers.get("x-request-id") or headers.get("request-id"))
    assert failure.retry_after_s == expected.get("retry_after_s")
    assert "failed_generation" not in failure.message


@each_body
def test_the_numbers_of_a_context_error_are_read_out(recording: Recording) -> None:
    expected = recording["expected"]
    error = read_error(msgspec.json.decode(recording["body"]))
    assert error is not None
    assert context_tokens(error) == ContextTokens(
        limit=expected.get("limit_tokens"),
        prompt=expected.get("prompt_tokens"),
        completion=expected.get("completion_tokens"),
    )


def test_a_context_error_tells_its_numbers_in_its_message() -> None:
    recording = recordings()["local-llamacpp-error-ctx-chat"]
    failure = failure_of(400, recording["body"].encode())
    assert "prompt 9010, limit 4096" in failure.message


@pytest.mark.parametrize(
    "name", ["error-ctx-openai-responses-midstream", "error-overloaded-anthropic-midstream"]
)
def test_an_error_event_of_another_api_is_of_its_kind(name: str) -> None:
    recording = recordings()[name]
    last = re.findall(r"data: (.*)", recording["sse_text"])[-1]
    failure = failure_in_stream(msgspec.json.decode(last), secrets=())
    assert failure.code == FAILURE_CODES[recording["expected"]["error_kind"]]
    assert failure.retryable == recording["expected"]["retryable"]


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (400, {"error": "bad"}, "INVALID_REQUEST"),
        (422, {"detail": "no such field"}, "INVALID_REQUEST"),
        (422, {"detail": [{"msg": "wrong", "input": "secret"}]}, "INVALID_REQUEST"),
        (401, {"message": "Unauthorized"}, "AUTH"),
        (403, b"", "AUTH"),
        (402, {"error": {"message": "Insufficient Balance"}}, "QUOTA"),
        (429, {"error": {"code": "insufficient_quota", "message": "m"}}, "QUOTA"),
        (429, {"error": {"message": "m", "code": "429"}}, "RATE_LIMIT"),
        (429, [{"error": {"code": 429, "message": "Resource exhausted"}}], "RATE_LIMIT"),
        (413, b"<html>too large</html>", "CONTEXT_WINDOW_EXCEEDED"),
        (502, b"<html>Bad Gateway</html>", "SERVER"),
        (500, b"", "SERVER"),
        (503, b"\xff\xfe", "OVERLOADED"),
        (408, b"{", "TIMEOUT"),
        (409, b"null", "SERVER"),
        (400, {"error": {"code": "content_filter", "message": "m"}}, "CONTENT_FILTER"),
        (302, b"", "UNKNOWN"),
        (400, b"[" * 100_000, "INVALID_REQUEST"),
        (
            400,
            {"error": {"message": "Provider returned error", "code": 400, "metadata": {
                "raw": '{"message": "maximum context length is 10 tokens"}'}}},
            "CONTEXT_WINDOW_EXCEEDED",
        ),
    ],
)  # fmt: skip
def test_each_envelope_and_status_has_its_code(status: int, body: object, code: str) -> None:
    failure = failure_of(status, body)
    assert failure.code == code
    assert failure.status == status
    assert "secret" not in failure.message


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        ({"error": {"type": "server_error", "message": "m"}}, "SERVER"),
        ({"error": {"type": "invalid_request_error", "message": "m"}}, "INVALID_REQUEST"),
        ({"error": {"code": 429, "message": "m"}}, "RATE_LIMIT"),
        ({"error": {"code": "502", "message": "m"}}, "SERVER"),
        ({"error": {"message": "m"}}, "UNKNOWN"),
        ({}, "UNKNOWN"),
    ],
)
def test_an_error_inside_a_stream_is_told_by_its_words(payload: object, code: str) -> None:
    assert failure_in_stream(payload, secrets=()).code == code


@pytest.mark.parametrize(
    ("status", "asked", "retryable"),
    [(400, "true", True), (429, "false", False), (429, "perhaps", True), (401, "false", False)],
)
def test_the_provider_decides_whether_to_retry(status: int, asked: str, retryable: bool) -> None:
    failure = failure_of(status, {"error": {"message": "m"}}, x_should_retry=asked)
    assert failure.retryable is retryable


def test_a_used_up_quota_is_never_retried() -> None:
    body = {"error": {"code": "insufficient_quota", "message": "m"}}
    assert not failure_of(429, body, x_should_retry="true").retryable


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "1574", "retry-after": "2"}, 1.574),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "3600"}, 3600),
        ({"retry-after": formatdate(1_000_007, usegmt=True)}, 7),
        ({"retry-after": formatdate(999_000, usegmt=True)}, None),
        ({"retry-after": "0"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "abc"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e999"}, None),
        ({"retry-after-ms": "abc", "retry-after": "1"}, 1),
        ({}, None),
    ],
)
def test_the_wait_that_is_asked_for(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, now=1_000_000) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-abcdef1234567890",
        "bad header Bearer abc.def-ghi",
        "key my-own-key-value is wrong",
        "token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.abc",
    ],
)
def test_no_credential_is_told(text: str) -> None:
    told = safe_text(text, ("my-own-key-value", ""))
    assert "[key]" in told
    assert not re.search("abc|my-own|eyJ", told)


def test_quoted_input_and_long_texts_are_cut() -> None:
    assert "prompt" not in safe_text("Field wrong, input_value='the prompt', type=str", ())
    assert len(safe_text("word " * 10_000, ())) < 600


def test_each_kind_and_finish_has_a_meaning_of_ours() -> None:
    assert set(FAILURE_CODES.values()) <= MODEL_FAILURE_CODES
    assert set(FAILED_FINISHES.values()) <= FAILURE_CODES.keys()
    for name, recording in recordings().items():
        expected = recording["expected"]
        assert expected.get("error_kind", "server") in FAILURE_CODES, name
        raw = (expected.get("finish_raw") or "stop").split(":")[-1]
        assert raw in FINISHES or raw in FAILED_FINISHES, name


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["error", "message", "code", "type", "detail", "metadata", "raw", "msg"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(status=st.integers(100, 999), payload=_json, asked=st.text(max_size=5))
def test_any_body_gives_a_failure(status: int, payload: object, asked: str) -> None:
    body = msgspec.json.encode(payload)
    failure = failure_of_reply(
        status, {"retry-after": asked, "x-should-retry": asked}, body, secrets=("x",), now=0
    )
    assert failure.code in MODEL_FAILURE_CODES
    error = read_error(payload)
    assert error is None or error_kind(error) in FAILURE_CODES
