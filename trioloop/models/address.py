"""Checks the address of a model's server, and the headers that it is sent."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from trioloop.errors import InvalidInputError


def checked_host(base_url: str) -> str:
    """The host, and the port where there is one, of an address; a password in it is refused.

    Raises:
        InvalidInputError: it can't be the address of a server. What may be a password isn't told.
    """
    host = _host(base_url)
    if host is None:
        raise InvalidInputError(
            f"{base_url.rpartition('@')[2]!r} can't be the address of a model's server: "
            "give one such as 'https://api.example.com/v1'"
        )
    return host


def _host(base_url: str) -> str | None:
    try:
        parts = urlsplit(base_url)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # such as a port that is no number
        return None
    return parts.netloc if usable and parts.username is None else None


def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of every request.

    Raises:
        InvalidInputError: HTTP can't send a value, which isn't told.
    """
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            raise InvalidInputError(
                f"the header {name!r} holds characters that HTTP can't send: check its value, "
                "such as a key with a line break"
            )
    return {"content-type": "application/json", "accept-encoding": "identity", **headers}
