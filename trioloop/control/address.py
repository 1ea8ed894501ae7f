"""Where an endpoint is, as people write it, and streams to it."""

import re
import ssl
from urllib.parse import urlsplit

import attrs
import trio

from trioloop.errors import InvalidInputError

_SCHEMES = {"ws": False, "http": False, "wss": True, "https": True}
_UNIX = "unix:"


@attrs.frozen
class Address:
    """A host and port, or a Unix socket.

    Attributes:
        host: a name or number; "" for a Unix socket.
        port: its port.
        tls: whether to speak TLS.
        path: of a Unix socket.
        tls_context: what to trust; None: what the system does.
    """

    host: str = ""
    port: int = 0
    tls: bool = False
    path: str | None = None
    tls_context: ssl.SSLContext | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def authority(self) -> str:
        """What `Host` says."""
        if self.path is not None:
            return "localhost"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    async def connect(self) -> trio.abc.Stream:
        """A stream to it. A checkpoint.

        Raises:
            ssl.SSLError: it speaks no TLS, or shows a certificate that isn't trusted.
            OSError: it can't be reached.
        """
        if self.path is not None:
            return await trio.open_unix_socket(self.path)
        stream = await trio.open_tcp_stream(self.host, self.port)
        if not self.tls:
            return stream
        context = self.tls_context or ssl.create_default_context()
        secure = trio.SSLStream(stream, context, server_hostname=self.host, https_compatible=True)
        try:
            await secure.do_handshake()
        except trio.BrokenResourceError as broken:
            await trio.aclose_forcefully(secure)
            raise _reason(broken) from None
        except BaseException:  # cancelled, nobody else would close it
            await trio.aclose_forcefully(secure)
            raise
        return secure


def _reason(broken: trio.BrokenResourceError) -> OSError:
    """Why a handshake failed: TLS itself, or a peer that went away."""
    cause = broken.__cause__
    if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError):
        return cause
    return ConnectionAbortedError("the endpoint went away in the TLS handshake")


def read_address(text: str, tls_context: ssl.SSLContext | None = None) -> tuple[Address, str]:
    """An address, and the token in its fragment; "" where it has none.

    Args:
        text: `http://HOST:PORT/#TOKEN`, also with `https`, `ws` or `wss`; or `unix:PATH#TOKEN`.
        tls_context: what to trust.

    Raises:
        InvalidInputError: it has another form.
    """
    rest, _, token = text.partition("#")
    if rest.startswith(_UNIX):
        return Address(path=rest.removeprefix(_UNIX).removeprefix("//")), token
    try:
        parts = urlsplit(rest)
        tls, port = _SCHEMES[parts.scheme], parts.port
    except (KeyError, ValueError):
        tls, port, parts = False, None, urlsplit("")
    if not parts.hostname or parts.path not in ("", "/", "/control") or parts.query:
        raise InvalidInputError(
            "an endpoint's address looks like http://127.0.0.1:8765/#TOKEN or unix:PATH#TOKEN, "
            "as `trioloop serve` prints it"
        )
    default = 443 if tls else 80
    return Address(parts.hostname, port or default, tls, tls_context=tls_context), token


@attrs.frozen
class Listen:
    """Where to listen: a Unix socket's path, or a host and a port (0: any that is free)."""

    host: str = ""
    port: int = 0
    path: str | None = None

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.path is not None or self.host in ("127.0.0.1", "::1", "localhost")


def read_listen(text: str) -> Listen:
    """Where to listen, as people write it: `HOST:PORT`, `[::1]:PORT` or `unix:PATH`.

    Raises:
        InvalidInputError: it has another form.
    """
    if text.startswith(_UNIX) and text != _UNIX:
        return Listen(path=text.removeprefix(_UNIX))
    found = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([0-9A-Za-z.-]+)):([0-9]{1,5})", text)
    if found is None or int(found[3]) > 65_535:
        raise InvalidInputError(f"{text!r} is nowhere to listen: use HOST:PORT or unix:PATH")
    return Listen(host=found[1] or found[2], port=int(found[3]))
