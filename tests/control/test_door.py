"""Who comes in by the front door, and what the others are answered. Pure."""

import base64
from typing import Any

import pytest

from trioloop.control.door import Head, House, Page, Refused, Upgrade, answer, judge
from trioloop.control.tokens import Tokens

TOKENS = Tokens()
TOKEN = TOKENS.issue("me").encode()
HOUSE = House(
    hosts=frozenset((b"127.0.0.1:8765", b"localhost:8765")),
    origins=frozenset((b"http://127.0.0.1:8765",)),
    pages=frozenset(("/", "/health")),
    check=TOKENS.check,
)
KEY = base64.b64encode(bytes(16))
GOOD = {
    b"host": b"127.0.0.1:8765",
    b"connection": b"keep-alive, Upgrade",
    b"upgrade": b"websocket",
    b"sec-websocket-version": b"13",
    b"sec-websocket-key": KEY,
    b"authorization": b"Bearer " + TOKEN,
}


def head(
    method: bytes = b"GET",
    target: bytes = b"/control",
    version: bytes = b"1.1",
    more: tuple[tuple[bytes, bytes], ...] = (),
    **changes: Any,  # bytes, or None: left out
) -> Head:
    """A good request with some headers changed, left out (None) or added."""
    named = {name.replace("_", "-").encode(): value for name, value in changes.items()}
    headers = {**GOOD, **named}
    kept = tuple((name, value) for name, value in headers.items() if value is not None)
    return Head(method, target, version, (*kept, *more))


def status(judged: Any) -> int:
    return judged.status if isinstance(judged, Refused) else 101


def test_a_good_request_comes_in_with_what_its_token_allows() -> None:
    judged = judge(head(), HOUSE)
    assert isinstance(judged, Upgrade)
    assert judged.grant is not None
    assert judged.grant.name == "me"


@pytest.mark.parametrize(
    ("expected", "changes"),
    [
        (403, {"origin": b"https://evil.example"}),
        (403, {"origin": b"null"}),
        (403, {"origin": b""}),
        (403, {"origin": b"http://127.0.0.1:8765.evil.example"}),
        (403, {"origin": b"http://127.0.0.1:9"}),
        (403, {"origin": b"https://127.0.0.1:8765"}),
        (403, {"origin": b"HTTP://127.0.0.1:8765"}),
        (403, {"origin": b"http://127.0.0.1:8765/"}),
        (101, {"origin": b"http://127.0.0.1:8765"}),
        (421, {"host": b"evil.example"}),
        (421, {"host": b"evil.example:8765"}),
        (421, {"host": None}),
        (421, {"host": b""}),
        (421, {"host": b"127.0.0.1"}),
        (101, {"host": b"LOCALHOST:8765"}),
        (401, {"authorization": None}),
        (401, {"authorization": b""}),
        (401, {"authorization": b"Bearer"}),
        (401, {"authorization": b"Bearer "}),
        (401, {"authorization": b"Bearer " + TOKEN[:-1]}),
        (401, {"authorization": b"Bearer  " + TOKEN}),
        (401, {"authorization": b"Basic " + TOKEN}),
        (400, {"authorization": b"Bearer \xc3\xa9" + TOKEN}),
        (400, {"authorization": b"Bearer " + TOKEN + b"\x00"}),
        (426, {"upgrade": None}),
        (426, {"upgrade": b"h2c"}),
        (426, {"connection": b"close"}),
        (426, {"sec_websocket_version": b"8"}),
        (426, {"sec_websocket_version": None}),
        (400, {"sec_websocket_key": None}),
        (400, {"sec_websocket_key": b"short"}),
        (400, {"sec_websocket_key": KEY + b"\xff"}),
        (400, {"content_length": b"5"}),
        (400, {"transfer_encoding": b"chunked"}),
        (400, {"x_anything": b"bell\x07"}),
    ],
)
def test_each_fault_has_its_answer(expected: int, changes: dict[str, Any]) -> None:
    assert status(judge(head(**changes), HOUSE)) == expected


@pytest.mark.parametrize(
    "doubled",
    [
        (421, (b"host", b"127.0.0.1:8765")),
        (403, (b"origin", b"http://127.0.0.1:8765")),
        (401, (b"authorization", b"Bearer " + TOKEN)),
        (426, (b"sec-websocket-version", b"13")),
        (400, (b"sec-websocket-key", KEY)),
    ],
    ids=lambda doubled: doubled[1][0].decode(),
)
def test_a_header_that_counts_may_not_come_twice(
    doubled: tuple[int, tuple[bytes, bytes]],
) -> None:
    expected, header = doubled
    first = {"origin": b"http://127.0.0.1:8765"} if header[0] == b"origin" else {}
    assert status(judge(head(more=(header,), **first), HOUSE)) == expected


@pytest.mark.parametrize(
    ("method", "target", "version", "expected"),
    [
        pytest.param(b"GET", b"/control?token=" + TOKEN, b"1.1", 404, id="a token in the target"),
        (b"GET", b"/?", b"1.1", 404),
        (b"GET", b"/../etc/passwd", b"1.1", 404),
        (b"GET", b"http://127.0.0.1:8765/", b"1.1", 404),
        (b"GET", b"/\xff", b"1.1", 404),
        (b"POST", b"/control", b"1.1", 405),
        (b"OPTIONS", b"/", b"1.1", 405),
        (b"OPTIONS", b"*", b"1.1", 404),
        (b"GET", b"/control", b"1.0", 505),
        (b"GET", b"/control", b"2.0", 505),
    ],
)
def test_other_targets_methods_and_versions_are_refused(
    method: bytes, target: bytes, version: bytes, expected: int
) -> None:
    assert status(judge(head(method, target, version), HOUSE)) == expected


def test_pages_need_no_token_but_the_right_host() -> None:
    assert judge(head(target=b"/", authorization=None), HOUSE) == Page("/")
    assert status(judge(head(target=b"/", host=b"evil.example"), HOUSE)) == 421
    assert status(judge(head(target=b"/", origin=b"https://evil.example"), HOUSE)) == 403


def test_the_console_may_connect_first_and_show_its_token_then() -> None:
    judged = judge(head(origin=b"http://127.0.0.1:8765", authorization=None), HOUSE)
    assert judged == Upgrade(KEY, None)


def test_every_refusal_has_the_same_shape() -> None:
    assert answer(401).endswith(b"\r\n\r\n")
    assert b"Content-Length: 0\r\nConnection: close" in answer(401)
