"""The console's files, and the headers that they are served with."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import attrs

_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    b"img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = (
    (b"Content-Security-Policy", _POLICY),
    (b"Cache-Control", b"no-store"),
    (b"Cross-Origin-Opener-Policy", b"same-origin"),
    (b"Cross-Origin-Resource-Policy", b"same-origin"),
    (b"Referrer-Policy", b"no-referrer"),
    (b"X-Content-Type-Options", b"nosniff"),
)
_TYPES = {
    "html": b"text/html; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "svg": b"image/svg+xml",
}

HEALTH = "/health"


@attrs.frozen
class File:
    """A file as it is served."""

    body: bytes
    headers: tuple[tuple[bytes, bytes], ...]


@cache
def pages() -> Mapping[str, File]:
    """What is served beside the WebSocket, by path."""
    folder = files("trioloop.control") / "console"
    found = {
        f"/{one.name}": _file(one.name, one.read_bytes())
        for one in folder.iterdir()
        if one.name.rpartition(".")[2] in _TYPES
    }
    found["/"] = found.pop("/index.html")
    found[HEALTH] = File(b"ok\n", ((b"Content-Type", b"text/plain"), *_HEADERS))
    return found


def _file(name: str, body: bytes) -> File:
    return File(body, ((b"Content-Type", _TYPES[name.rpartition(".")[2]]), *_HEADERS))
