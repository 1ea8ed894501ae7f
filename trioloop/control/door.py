"""The front door's judgement: what a request's head is answered with. Pure.

The rules are a table, applied in its order before any WebSocket code sees a byte; then come the
upgrade and the token.
"""

import base64
import binascii
from collections.abc import Callable, Mapping

import attrs

from trioloop.control.protocol import PATH
from trioloop.control.tokens import Grant

_HEADER_BYTES = frozenset((0x09, *range(0x20, 0x7F)))
_KEY_BYTES = 16


@attrs.frozen
class Head:
    """The head of a request, as it was read."""

    method: bytes
    target: bytes
    version: bytes
    headers: tuple[tuple[bytes, bytes], ...]

    def all(self, name: bytes) -> tuple[bytes, ...]:
        """All values of a header, which is named in lower case."""
        return tuple(value for known, value in self.headers if known == name)

    def has_word(self, name: bytes, word: bytes) -> bool:
        """Whether a header that is a list has a word."""
        words = b",".join(self.all(name)).lower().split(b",")
        return word in [one.strip() for one in words]


@attrs.frozen
class Refused:
    """An answer in HTTP, and no more.

    Attributes:
        status: of the answer.
        headers: that belong to it.
        guess: a token was presented, and it is wrong.
    """

    status: int
    headers: tuple[tuple[bytes, bytes], ...] = ()
    guess: bool = False


@attrs.frozen
class Page:
    """A file of the console, or the health answer, by its path."""

    path: str


@attrs.frozen
class Upgrade:
    """A WebSocket connection.

    Attributes:
        key: the client's, checked.
        grant: what its token allows; None: a page connects, and its first message has the token.
    """

    key: bytes
    grant: Grant | None


@attrs.frozen(kw_only=True)
class House:
    """What a door needs to know.

    Attributes:
        hosts: values of Host that mean this endpoint; None: any, where no name leads here.
        origins: pages that may connect.
        pages: paths that are served beside the WebSocket.
        check: what a presented token allows.
    """

    hosts: frozenset[bytes] | None
    origins: frozenset[bytes]
    pages: frozenset[str]
    check: Callable[[bytes], Grant | None]


def judge(head: Head, house: House) -> Page | Upgrade | Refused:
    """What a request is answered with."""
    for holds, refused in _RULES:
        if not holds(head, house):
            return refused
    return _admission(head, house)


def _is_printable(head: Head, house: House) -> bool:
    return all(_HEADER_BYTES.issuperset(value) for _, value in head.headers)


def _is_for_us(head: Head, house: House) -> bool:
    hosts = head.all(b"host")
    return len(hosts) == 1 and (house.hosts is None or hosts[0].lower() in house.hosts)


def _is_served(head: Head, house: House) -> bool:
    path = head.target.decode("latin-1")
    return path == PATH or path in house.pages


def _has_no_body(head: Head, house: House) -> bool:
    return head.all(b"content-length") in ((), (b"0",)) and not head.all(b"transfer-encoding")


def _may_connect(head: Head, house: House) -> bool:
    origins = head.all(b"origin")
    return len(origins) <= 1 and house.origins.issuperset(origins)


_RULES: tuple[tuple[Callable[[Head, House], bool], Refused], ...] = (
    (_is_printable, Refused(400)),
    (_is_for_us, Refused(421)),
    (lambda head, house: head.version == b"1.1", Refused(505)),
    (_is_served, Refused(404)),
    (lambda head, house: head.method == b"GET", Refused(405, ((b"Allow", b"GET"),))),
    (_has_no_body, Refused(400)),
    (_may_connect, Refused(403)),
)


def _admission(head: Head, house: House) -> Page | Upgrade | Refused:
    path = head.target.decode("ascii")
    if path != PATH:
        return Page(path)
    keys = head.all(b"sec-websocket-key")
    if (
        not head.has_word(b"connection", b"upgrade")
        or not head.has_word(b"upgrade", b"websocket")
        or head.all(b"sec-websocket-version") != (b"13",)
    ):
        upgrade = ((b"Upgrade", b"websocket"), (b"Sec-WebSocket-Version", b"13"))
        return Refused(426, upgrade)
    if len(keys) != 1 or not _is_key(keys[0]):
        return Refused(400)
    presented = head.all(b"authorization")
    if not presented and head.all(b"origin"):
        return Upgrade(keys[0], None)
    grant = _granted(presented, house)
    return Refused(401, guess=bool(presented)) if grant is None else Upgrade(keys[0], grant)


def _granted(presented: tuple[bytes, ...], house: House) -> Grant | None:
    if len(presented) != 1:
        return None
    scheme, _, token = presented[0].partition(b" ")
    return house.check(token) if scheme.lower() == b"bearer" else None


def _is_key(key: bytes) -> bool:
    try:
        return len(base64.b64decode(key, validate=True)) == _KEY_BYTES
    except binascii.Error:
        return False


REASONS: Mapping[int, bytes] = {
    200: b"OK",
    400: b"Bad Request",
    401: b"Unauthorized",
    403: b"Forbidden",
    404: b"Not Found",
    405: b"Method Not Allowed",
    408: b"Request Timeout",
    421: b"Misdirected Request",
    426: b"Upgrade Required",
    429: b"Too Many Requests",
    431: b"Request Header Fields Too Large",
    503: b"Service Unavailable",
    505: b"HTTP Version Not Supported",
}


def answer(status: int, body: bytes = b"", headers: tuple[tuple[bytes, bytes], ...] = ()) -> bytes:
    """An HTTP answer as bytes; the connection is closed after it."""
    lines = [
        b"HTTP/1.1 %d %s" % (status, REASONS[status]),
        *(b"%s: %s" % pair for pair in headers),
        b"Content-Length: %d" % len(body),
        b"Connection: close",
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def upgrade_head(key: bytes) -> bytes:
    """The head that the WebSocket code is shown in the place of the client's own."""
    return (
        b"GET %s HTTP/1.1\r\nHost: endpoint\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n" % (PATH.encode(), key)
    )
