"""How long a model's server may take, and what its connections may use."""

from typing import Any

import attrs

from trioloop.errors import InvalidInputError


def _positive(_: object, field: "attrs.Attribute[Any]", value: float) -> None:
    if not value > 0:
        raise InvalidInputError(f"{field.name} must be greater than 0, not {value!r}")


def _maximum(default: float) -> float:
    field: float = attrs.field(default=default, validator=_positive)
    return field


def _count(default: int) -> int:
    field: int = attrs.field(default=default, validator=_positive)
    return field


@attrs.frozen(kw_only=True)
class Deadlines:
    """How long a model's server may take, in seconds. A failure names the one that fired.

    Raises:
        InvalidInputError: a value isn't greater than 0.

    Attributes:
        connect_s: to accept a connection.
        first_byte_s: to begin its answer, once it is asked.
        idle_bytes_s: between two network reads.
        idle_progress_s: between two reads that hold a part of the answer: comments and pings show
            that somebody lives, not that anything is done.
        total_s: for the whole exchange, a wait for a free connection included.
    """

    connect_s: float = _maximum(10)
    first_byte_s: float = _maximum(300)
    idle_bytes_s: float = _maximum(300)
    idle_progress_s: float = _maximum(600)
    total_s: float = _maximum(3600)


@attrs.frozen(kw_only=True)
class ConnectionLimits:
    """What the connections of one model may use.

    Raises:
        InvalidInputError: a value isn't greater than 0.

    Attributes:
        connections_max: exchanges at once; further ones wait for their turn.
        response_bytes_max: size of one response.
        event_bytes_max: size of one event in it.
        arguments_chars_max: raw arguments of one call in it.
        error_bytes_max: what is read of an error's body.
    """

    connections_max: int = _count(100)
    response_bytes_max: int = _count(64 * 1024 * 1024)
    event_bytes_max: int = _count(8 * 1024 * 1024)
    arguments_chars_max: int = _count(4 * 1024 * 1024)
    error_bytes_max: int = _count(64 * 1024)
