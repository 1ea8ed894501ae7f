"""The attack table of the control endpoint, row by row, on raw sockets (control.md)."""

import contextlib
import json
import socket
import struct
from collections.abc import Iterator

import pytest

from tests.control.attacking import (
    Bystander,
    Target,
    close_code,
    frame,
    read_all,
    read_frame,
    read_head,
    request,
    settles,
    target,
)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """One process for all attacks: what one of them breaks, the next one finds."""
    with target(tmp_path_factory.mktemp("attacked")) as there:
        yield there
        assert "Traceback" not in there.log.read_text(encoding="utf-8")
        assert there.token not in there.log.read_text(encoding="utf-8")


@pytest.fixture
def attacked(serving: Target) -> Iterator[Target]:
    """The process beside a working client, who must not notice; nothing of the attack is left."""
    bystander = Bystander(serving)
    before = serving.descriptors()
    yield serving
    assert bystander.works()
    settles(serving.descriptors, before)
    bystander._socket.close()
    settles(serving.descriptors, before - 1)


# Who may come in


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://localhost.evil.example",
        "http://127.0.0.1:9",
        "http://127.0.0.1",
        "http://user@127.0.0.1:{port}",
    ],
)
def test_other_web_pages_are_refused(attacked: Target, origin: str) -> None:
    line = f"Origin: {origin.format(port=attacked.port)}"
    assert attacked.status(attacked.upgrade(line)) == 403


def test_a_rebound_name_a_missing_host_and_two_of_them_are_misdirected(attacked: Target) -> None:
    def asked(*hosts: str) -> bytes:
        return attacked.head(*(f"Host: {host}" for host in hosts), host=False)

    mine = f"127.0.0.1:{attacked.port}"
    assert attacked.status(asked("evil.example")) == 421
    assert attacked.status(asked()) == 421
    assert attacked.status(asked(mine, mine)) == 421
    assert attacked.status(asked(mine, "evil.example")) == 421


def test_wrong_tokens_look_alike_and_are_counted_while_the_right_one_still_passes(
    attacked: Target,
) -> None:
    wrong = [attacked.token[:-1], "", "x" * 43, attacked.token + "x", attacked.token.swapcase()]
    answers = [attacked.answer(attacked.upgrade(token=one)) for one in wrong * 3]
    assert {answer.split()[1] for answer in answers} == {"401", "429"}
    assert len(set(answers)) == 2
    attacked.open().close()


def test_a_missing_or_doubled_token_is_refused(attacked: Target) -> None:
    bare = attacked.upgrade().replace(b"Authorization", b"X-Authorization")
    assert attacked.status(bare) in (401, 429)
    doubled = attacked.upgrade(f"Authorization: Bearer {attacked.token}")
    assert attacked.status(doubled) in (401, 429)
    foreign = attacked.upgrade(token="\xe9" * 43)
    assert attacked.status(foreign) == 400


def test_a_token_in_the_query_is_refused_and_not_logged(attacked: Target) -> None:
    asked = f"GET /control?token={attacked.token} HTTP/1.1"
    assert attacked.status(attacked.head(request=asked)) == 404


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("GET /../../etc/passwd HTTP/1.1", 404),
        ("GET /console/index.html HTTP/1.1", 404),
        ("GET /index.html HTTP/1.1", 404),
        ("POST / HTTP/1.1", 405),
        ("DELETE /control HTTP/1.1", 405),
        ("GET /control HTTP/1.1", 426),
        ("GET / HTTP/1.0", 505),
        ("GET / HTTP/2.0", 505),
        ("GET / HTTP/9.9", 505),
        ("GARBAGE", 400),
        ("GET  / HTTP/1.1", 400),
    ],
)
def test_other_paths_methods_and_versions(attacked: Target, line: str, status: int) -> None:
    assert attacked.status(attacked.head(request=line)) == status


@pytest.mark.parametrize(
    "line",
    [
        "X: \x80",
        "Sec-WebSocket-Key: \xff",
        "Connection: \xe9",
        "X: a\x00b",
        "X: a\x1bb",
        "X\x80: a",
    ],
)
def test_odd_bytes_in_headers_are_refused(attacked: Target, line: str) -> None:
    assert attacked.status(attacked.upgrade(line)) == 400


def test_a_flood_of_headers_is_refused(attacked: Target) -> None:
    many = [f"X-{number}: y" for number in range(5_000)]
    assert attacked.status(attacked.head(*many)) == 431
    assert attacked.status(attacked.head("X: " + "y" * 100_000)) == 431
    assert attacked.status(b"GET /" + b"a" * 50_000) == 431


def test_tls_and_binary_garbage_on_the_plain_port(attacked: Target) -> None:
    assert attacked.status(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40)) == 400
    assert attacked.status(bytes(range(256)) * 4) == 400


# Those who come and do nothing


def test_a_head_that_never_ends_is_given_up(attacked: Target) -> None:
    with attacked.connect() as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: 127")
        assert b" 408 " in read_all(slow)


def test_whoever_connects_and_leaves_leaves_nothing(attacked: Target) -> None:
    for stage in (b"", b"GET", attacked.head(), attacked.upgrade()[:-2], attacked.upgrade()):
        for linger in (0, 1):
            attacker = attacked.connect()
            if linger:  # closing then resets the connection
                attacker.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            with contextlib.suppress(ConnectionError):
                attacker.sendall(stage)
            attacker.close()


def test_beyond_the_connections_of_one_address_there_is_no_room(attacked: Target) -> None:
    idle = [attacked.connect() for _ in range(40)]
    try:
        full = [one for one in idle if _answered(one)]
        assert len(full) >= 24
        assert all(read_all(one).startswith(b"HTTP/1.1 503 ") for one in full)
    finally:
        for one in idle:
            one.close()


def _answered(attacker: socket.socket) -> bool:
    attacker.settimeout(0.3)
    try:
        attacker.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return False
    finally:
        attacker.settimeout(20)
    return True


# Frames


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frame(1, bytes(70_000)), 1009),
        (frame(1, length=2**63 - 1), 1009),
        (frame(1, length=2**40), 1009),
        (frame(1, b"a" * 40_000, final=False) + frame(0, b"a" * 40_000), 1009),
        (frame(1, final=False) + frame(0, final=False) * 2_000, 1009),
        (frame(9, b"ping") * 300, 1008),
        (request("agent/status", agent="bystander") * 300, 1008),
        (frame(1, b"\xff\xfe"), 1007),
        (frame(1, b"\xed\xa0\x80"), 1007),
        (frame(2, b"binary"), 1003),
        (frame(3, b"odd"), 1002),
        (frame(11, b"odd"), 1002),
        (frame(0, b"nothing to go on with"), 1002),
        (frame(9, b"x" * 126), 1002),
        (frame(9, final=False), 1002),
        (frame(8, b"\x00"), 1002),
        (bytes((0xC1, 0x80)) + bytes(4), 1002),
        (bytes((0x81, 0x01)) + b"a", 1002),
    ],
    ids=lambda value: value if isinstance(value, int) else f"{len(value)} bytes",
)
def test_each_kind_of_bad_frame_has_its_close_code(
    attacked: Target, sent: bytes, code: int
) -> None:
    with attacked.open() as attacker:
        with contextlib.suppress(ConnectionError):
            attacker.sendall(sent)
        assert close_code(attacker) == code


@pytest.mark.parametrize(
    ("sent", "opcode"), [(request("agent/status", agent="bystander"), 1), (frame(3, b"odd"), 8)]
)
def test_what_comes_in_one_packet_with_the_request_is_not_forgotten(
    attacked: Target, sent: bytes, opcode: int
) -> None:
    with attacked.connect() as attacker:
        attacker.sendall(attacked.upgrade() + sent)
        assert b" 101 " in read_head(attacker)
        assert read_frame(attacker)[0] == opcode


def test_a_flood_is_told_once_before_it_is_cut(attacked: Target) -> None:
    with attacked.open() as attacker:
        attacker.sendall(request("agent/status", agent="bystander") * 101)
        told = [json.loads(read_frame(attacker)[1]) for _ in range(101)]
    limited = [
        one for one in told if one.get("error", {}).get("data", {}).get("code") == "rate_limited"
    ]
    assert len(limited) <= 1


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 60_000,
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":' + b'{"a":' * 9_000,
        b"9" * 60_000,
        b'{"jsonrpc":"2.0","id":1,"id":2,"method":"runtime/info"}',
        b'{"jsonrpc":"2.0","id":1,"method":"runtime/info","params":NaN}',
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"runtime/info"}',
        b"",
    ],
    ids=lambda text: text[:20].decode("latin-1"),
)
def test_json_that_is_none_is_an_invalid_request_and_the_connection_stays(
    attacked: Target, text: bytes
) -> None:
    with attacked.open() as attacker:
        attacker.sendall(frame(1, text) + request("runtime/info", 7))
        first = json.loads(read_frame(attacker)[1])
        assert (first["id"], first["error"]["data"]["code"]) == (None, "invalid_request")
        assert json.loads(read_frame(attacker)[1])["id"] == 7


@pytest.mark.parametrize("name", ["../x", "a\0", "a\n", "\uff11", "a" * 300, "absent", "\u001b[2J"])
def test_session_names_say_nothing_of_what_is_there(attacked: Target, name: str) -> None:
    with attacked.open() as attacker:
        attacker.sendall(request("session/events", agent=name))
        error = json.loads(read_frame(attacker)[1])["error"]
    assert error["data"] == {"code": "not_found"}
    assert name not in json.dumps(error)


def test_a_client_can_t_give_itself_scopes(attacked: Target) -> None:
    with attacked.open() as attacker:
        attacker.sendall(request("authenticate", token=attacked.token))
        assert json.loads(read_frame(attacker)[1])["error"]["data"]["code"] == "invalid_request"
        attacker.sendall(request("runtime/info", scopes=["admin"]))
        assert json.loads(read_frame(attacker)[1])["error"]["data"]["code"] == "invalid_params"


def test_a_page_that_connects_and_shows_no_token_is_closed(attacked: Target) -> None:
    origin = f"Origin: http://127.0.0.1:{attacked.port}"
    asked = attacked.upgrade(origin).replace(b"Authorization", b"X-Authorization")
    with attacked.connect() as attacker:
        attacker.sendall(asked)
        assert close_code_behind_head(attacker) == 4001


def close_code_behind_head(attacker: socket.socket) -> int:
    """The close code of a connection whose handshake is still to be read."""
    assert b" 101 " in read_head(attacker)
    return close_code(attacker)


def test_a_reader_that_stops_costs_nothing(attacked: Target) -> None:
    before = attacked.memory_kib()
    stopped = [attacked.open() for _ in range(8)]
    for attacker in stopped:
        attacker.sendall(request("session/subscribe", agent="bystander", live=True))
    writer = attacked.open()
    for number in range(60):
        message = {"id": f"m{number}", "content": "x" * 20_000}
        writer.sendall(request("agent/send", number, agent="bystander", message=message))
        read_frame(writer)
    writer.sendall(request("agent/cancel", 99, agent="bystander", discard_inbox=True))
    read_frame(writer)
    grown = attacked.memory_kib() - before
    for attacker in (*stopped, writer):
        attacker.close()
    assert grown < 60_000
