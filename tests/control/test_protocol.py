"""What is a request, and what is told of one that isn't. Pure."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trioloop.control.answers import ANSWERS
from trioloop.control.faults import CODES, WireError
from trioloop.control.protocol import (
    METHODS,
    decode_parameters,
    decode_request,
    encode_error,
    encode_result,
)
from trioloop.control.results import Done

OF_THE_DIALOGUE = {
    "authenticate",
    "runtime/info",
    "runtime/subscribe",
    "session/subscribe",
    "session/unsubscribe",
}


def asking(method: str, params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def test_every_method_has_an_answer_and_every_answer_a_method() -> None:
    assert set(METHODS) == set(ANSWERS) | OF_THE_DIALOGUE


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "1",
        '"agent/wake"',
        '[{"jsonrpc":"2.0","id":1,"method":"runtime/info"}]',
        '{"id":1,"method":"runtime/info"}',
        '{"jsonrpc":"1.0","id":1,"method":"runtime/info"}',
        '{"jsonrpc":"2.0","method":"runtime/info"}',
        '{"jsonrpc":"2.0","id":null,"method":"runtime/info"}',
        '{"jsonrpc":"2.0","id":true,"method":"runtime/info"}',
        '{"jsonrpc":"2.0","id":1.5,"method":"runtime/info"}',
        '{"jsonrpc":"2.0","id":"","method":"runtime/info"}',
        '{"jsonrpc":"2.0","id":9007199254740993,"method":"runtime/info"}',
        '{"jsonrpc":"2.0","id":1,"method":7}',
        '{"jsonrpc":"2.0","id":1,"method":"runtime/info","id":2}',
        '{"jsonrpc":"2.0","id":1,"method":"agent/wake","params":{"agent":"a","agent":"b"}}',
        '{"jsonrpc":"2.0","id":1,"method":"agent/wake","params":{"agent":NaN}}',
        '{"jsonrpc":"2.0","id":1,"method":"agent/wake","params":Infinity}',
        '\ufeff{"jsonrpc":"2.0","id":1,"method":"runtime/info"}',
        '{"jsonrpc":"2.0","id":1,"method":"x","params":' + "[" * 60_000 + "]" * 60_000 + "}",
        '{"jsonrpc":"2.0","id":1,"method":"x","params":' + '{"a":' * 20_000,
        "9" * 60_000,
    ],
    ids=lambda text: text[:60],
)
def test_a_frame_that_is_no_request_is_told_so(text: str) -> None:
    with pytest.raises(WireError) as caught:
        decode_request(text)
    assert caught.value.code == "invalid_request"


def test_an_id_is_a_number_or_a_short_text() -> None:
    assert decode_request('{"jsonrpc":"2.0","id":7,"method":"x"}').id == 7
    assert decode_request('{"jsonrpc":"2.0","id":"a","method":"x"}').id == "a"
    with pytest.raises(WireError):
        decode_request('{"jsonrpc":"2.0","id":"%s","method":"x"}' % ("a" * 129))


@pytest.mark.parametrize(
    ("method", "params", "code", "field"),
    [
        ("agent/walk", {}, "unknown_method", None),
        ("agent/wake", {}, "invalid_params", "$"),
        ("agent/wake", [], "invalid_params", "$"),
        ("agent/wake", {"agent": 7}, "invalid_params", "$.agent"),
        ("agent/wake", {"agent": "a", "scopes": ["admin"]}, "invalid_params", "$"),
        ("agent/send", {"agent": "a", "message": {"id": ""}}, "invalid_params", "$.message.id"),
        (
            "agent/send",
            {"agent": "a", "message": {"id": "m", "content": [{"type": "text"}]}},
            "invalid_params",
            "$.message.content[0]",
        ),
        (
            "agent/send",
            {"agent": "a", "message": {"id": "m", "content": "x"}, "preset": "secret words"},
            "invalid_params",
            "$.preset",
        ),
        ("session/events", {"agent": "a", "limit": 0}, "invalid_params", "$.limit"),
        ("session/events", {"agent": "a", "after": 2**60}, "invalid_params", "$.after"),
    ],
)
def test_wrong_parameters_are_told_by_their_path_alone(
    method: str, params: Any, code: str, field: str | None
) -> None:
    with pytest.raises(WireError) as caught:
        decode_parameters(decode_request(asking(method, params)))
    assert (caught.value.code, caught.value.field) == (code, field)
    assert "secret" not in encode_error(1, caught.value)


def test_half_a_surrogate_is_no_text() -> None:
    text = '{"jsonrpc":"2.0","id":1,"method":"agent/wake","params":{"agent":"\\ud800"}}'
    with pytest.raises(WireError) as caught:
        decode_parameters(decode_request(text))
    assert caught.value.code == "invalid_request"


def test_answers_are_json_rpc() -> None:
    assert json.loads(encode_result("a", Done())) == {
        "jsonrpc": "2.0",
        "id": "a",
        "result": {"changed": True},
    }
    error = WireError("internal", field="$.x", reference="ab12")
    assert json.loads(encode_error(None, error)) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {
            "code": -32603,
            "message": CODES["internal"].message,
            "data": {"code": "internal", "field": "$.x", "reference": "ab12"},
        },
    }


@given(st.text() | st.from_regex(r'\{"jsonrpc":"2.0","id":[0-9a-z"]*,"method":.*'))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(WireError):
        method, asked = decode_parameters(decode_request(text))
        assert isinstance(asked, method.takes)
