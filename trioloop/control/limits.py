"""The limits of a control endpoint: what one peer, and what all of them, may cost."""

from typing import Any

import attrs

from trioloop.errors import InvalidInputError


def _positive(instance: object, field: "attrs.Attribute[Any]", value: float) -> None:
    if not value > 0:
        raise InvalidInputError(f"{field.name} must be greater than 0, not {value!r}")


def _count(default: int) -> int:
    field: int = attrs.field(default=default, validator=_positive)
    return field


def _seconds(default: float) -> float:
    field: float = attrs.field(default=default, converter=float, validator=_positive)
    return field


@attrs.frozen(kw_only=True)
class ControlLimits:
    """The limits of one endpoint; give `serve` the ones you change.

    Raises:
        InvalidInputError: a value isn't greater than 0.

    Attributes:
        connections_max: connections at once; beyond it 503.
        peer_connections_max: connections at once of one address, or of one user on a Unix socket.
        unproven_connections_max: connections at once that haven't shown a token yet.
        head_bytes_max: size of a request's head; beyond it 431.
        head_s: how long a request's head, TLS included, may take.
        token_s: how long the first message, with the token, may take where a page connects.
        failures_max: wrong tokens of one address in a minute; beyond it 429.
        message_bytes_max: size of one incoming message; beyond it 1009. Images need more.
        fragments_max: frames that one incoming message may come in; beyond it 1009.
        messages_burst_max: messages, and pings, that may come at once.
        messages_per_s_max: messages, and pings, a second, once that burst is used up.
        subscriptions_max: subscriptions of one connection.
        waiting_commands_max: commands of one connection that take their time, at once.
        live_frames_per_s_max: frames with streamed chunks a second, of all connections together;
            beyond it those of each reader are merged.
        frame_bytes_max: size of an event that is sent whole; of a larger one its size is told, and
            it is fetched in parts.
        page_bytes_max: size of one page of events.
        send_s: how long a reader may take for one frame; beyond it 4008.
        ping_s: how long a connection may be silent before it is asked, and to answer.
        close_s: how long a closing handshake may take.
        shutdown_s: how long all connections may take when the endpoint is left.
        commands_remembered_max: commands whose outcome is given again when they come again.
    """

    connections_max: int = _count(64)
    peer_connections_max: int = _count(16)
    unproven_connections_max: int = _count(32)
    head_bytes_max: int = _count(16 * 1024)
    head_s: float = _seconds(5)
    token_s: float = _seconds(5)
    failures_max: int = _count(5)
    message_bytes_max: int = _count(64 * 1024)
    fragments_max: int = _count(1_000)
    messages_burst_max: int = _count(100)
    messages_per_s_max: int = _count(20)
    subscriptions_max: int = _count(32)
    waiting_commands_max: int = _count(8)
    live_frames_per_s_max: int = _count(2_000)
    frame_bytes_max: int = _count(512 * 1024)
    page_bytes_max: int = _count(256 * 1024)
    send_s: float = _seconds(10)
    ping_s: float = _seconds(20)
    close_s: float = _seconds(2)
    shutdown_s: float = _seconds(2)
    commands_remembered_max: int = _count(1_000)
