"""The protocol: JSON-RPC 2.0 in text frames, one object each. Pure; the method table is data.

`docs/wire-protocol.md` and the JSON Schema beside it are written from this table.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs
import msgspec
from msgspec import Raw, Struct

from trioloop.control import parameters, results
from trioloop.control.faults import CODES, WireError
from trioloop.control.tokens import Scope

PROTOCOL = 1
PATH = "/control"
ID_CHARACTERS_MAX = 128

RequestId: TypeAlias = int | str

Repeats: TypeAlias = Literal["reads", "by nature", "by the log", "by id"]
"""Why a command may come twice: it changes nothing, it asks for a state, the log knows its id, or
the endpoint remembers its id for a while."""


@attrs.frozen
class Method:
    """A row of the method table.

    Attributes:
        name: as it stands on the wire.
        takes: its parameters.
        gives: its result.
        scope: what a token must allow.
        repeats: why it may come twice.
        says: what it does.
        waits: it may take its time, so that others are answered meanwhile.
    """

    name: str
    takes: type[parameters.Parameters]
    gives: type[results.Result]
    scope: Scope
    repeats: Repeats
    says: str
    waits: bool = False


@attrs.frozen
class Announcement:
    """A row of the table of notifications: its name, its parameters, and when it comes."""

    name: str
    gives: type[results.Result]
    says: str


_ROWS = (
    Method("authenticate", parameters.Token, results.Granted, "read", "reads",
           "Shows a token. Only as the first message, where the handshake showed none."),
    Method("runtime/info", parameters.Nothing, results.Info, "read", "reads",
           "Version, protocol, limits, and what the token allows."),
    Method("runtime/subscribe", parameters.Nothing, results.Done, "read", "reads",
           "Tells of the live agents and the open questions, now and when they change."),
    Method("agents/list", parameters.AgentPage, results.AgentList, "read", "reads",
           "Live and stored agents, by name."),
    Method("agents/create", parameters.OneAgent, results.AgentState, "control", "by the log",
           "Makes an agent on a new session; the name is the command's id.", waits=True),
    Method("agents/resume", parameters.OneAgent, results.AgentState, "control", "by nature",
           "Makes a stored session's agent live. Starts nothing by itself.", waits=True),
    Method("agents/fork", parameters.Fork, results.AgentState, "control", "by the log",
           "Makes an agent that begins where another session was.", waits=True),
    Method("agents/dispose", parameters.Disposal, results.Done, "admin", "by nature",
           "Ends an agent's registration; its session stays.", waits=True),
    Method("agent/send", parameters.Send, results.Sent, "control", "by the log",
           "Sends a message; answered when it is durable. The server alone decides which turn "
           "takes it."),
    Method("agent/cancel", parameters.Cancel, results.Done, "control", "by id",
           "Cancels the open turn."),
    Method("agent/cancel_call", parameters.OneCall, results.Done, "control", "by nature",
           "Cancels one running call."),
    Method("agent/wake", parameters.OneAgent, results.Done, "control", "by id",
           "Goes on with what is pending, if anything is."),
    Method("agent/status", parameters.OneAgent, results.AgentState, "read", "reads",
           "The agent as it is now."),
    Method("inbox/list", parameters.OneAgent, results.Inbox, "read", "reads",
           "The pending messages."),
    Method("inbox/remove", parameters.OneMessage, results.Done, "control", "by nature",
           "Discards a pending message."),
    Method("inbox/replace", parameters.Replacement, results.Done, "control", "by id",
           "Puts other content in a pending message's place; its id stays."),
    Method("inbox/restore", parameters.OneTurn, results.Restored, "control", "by id",
           "Puts back what a turn claimed and didn't admit, once."),
    Method("session/events", parameters.EventPage, results.Events, "read", "reads",
           "A page of a session's durable events, live or stored."),
    Method("session/part", parameters.EventPart, results.Part, "read", "reads",
           "A part of an event that is too large for one frame."),
    Method("session/subscribe", parameters.Subscribe, results.Subscribed, "read", "reads",
           "Each durable event after a cursor exactly once, in order, then those to come."),
    Method("session/unsubscribe", parameters.Unsubscribe, results.Done, "read", "by nature",
           "Ends a subscription."),
    Method("session/explain", parameters.OneMessage, results.Story, "read", "reads",
           "What happened to a message."),
    Method("approval/list", parameters.Nothing, results.Approvals, "read", "reads",
           "The questions that wait for an answer."),
    Method("approval/answer", parameters.Answer, results.Answered, "control", "by the log",
           "Answers a question; the first answer counts."),
    Method("approval/forget", parameters.Forgetting, results.Done, "control", "by id",
           "Takes back answers that hold for further calls, which are asked about again."),
)  # fmt: skip

METHODS: Mapping[str, Method] = {row.name: row for row in _ROWS}

_ANNOUNCED = (
    Announcement("session/event", results.SessionEvent,
                 "A durable event of a subscribed session."),
    Announcement("session/end", results.SessionEnd,
                 "The agent was disposed of; nothing more comes of it."),
    Announcement("agent/notification", results.AgentNotification,
                 "A live fact, where the subscription asked for them. Chunks that a slow reader "
                 "missed come together; the log has everything."),
    Announcement("runtime/state", results.RuntimeState,
                 "After `runtime/subscribe` the state of the runtime, whole; then what changes."),
)  # fmt: skip

ANNOUNCEMENTS: Mapping[str, Announcement] = {row.name: row for row in _ANNOUNCED}

CLOSE_CODES: Mapping[int, str] = {
    1000: "the client closed",
    1001: "the endpoint is left",
    1002: "broken framing",
    1003: "a binary message",
    1007: "text that isn't UTF-8",
    1008: "too many messages, even after `rate_limited`",
    1009: "a message that is too large, or in too many frames",
    1011: "a fault of the server's own; the reason has a reference",
    4001: "no valid token in time, or the token was revoked",
    4008: "a reader that is too slow; the reason has the cursor to resume from",
    4009: "a ping that wasn't answered in time",
}


# Requests


class Request(Struct, frozen=True):
    """A request, its parameters not yet read."""

    jsonrpc: Literal["2.0"]
    id: RequestId
    method: str
    params: Raw = Raw(b"{}")


_decode_request = msgspec.json.Decoder(Request).decode
_decoders = {row.name: msgspec.json.Decoder(row.takes).decode for row in _ROWS}
_UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeError, ValueError)


def decode_request(text: str) -> Request:
    """Read a frame.

    Raises:
        WireError: it is no request: `invalid_request`.
    """
    try:
        request = _decode_request(text)
        json.loads(text, object_pairs_hook=_refuse_doubled)
    except _UNREADABLE:
        raise WireError("invalid_request") from None
    if isinstance(request.id, str) and not 0 < len(request.id) <= ID_CHARACTERS_MAX:
        raise WireError("invalid_request", field="$.id")
    if isinstance(request.id, int) and abs(request.id) > 2**53:
        raise WireError("invalid_request", field="$.id")
    return request


def _refuse_doubled(pairs: list[tuple[str, object]]) -> None:
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("an object has a member twice")


def decode_parameters(request: Request) -> tuple[Method, Any]:  # Any: of the method's class
    """The method of a request, with its parameters.

    Raises:
        WireError: `unknown_method`, or `invalid_params` with the field.
    """
    method = METHODS.get(request.method)
    if method is None:
        raise WireError("unknown_method")
    try:
        return method, _decoders[method.name](request.params)
    except _UNREADABLE as error:
        raise WireError("invalid_params", field=_path_in(str(error))) from None


def _path_in(message: str) -> str:
    """Where a decoder found fault: the path that ends its message, which quotes no value."""
    _, found, path = message.rpartition(" - at `$")
    return f"${path.removesuffix('`')}" if found else "$"


# What goes out


_encode = msgspec.json.Encoder().encode


def encode_result(id: RequestId, result: results.Result) -> str:
    """A result as a frame."""
    return f'{{"jsonrpc":"2.0","id":{_text(id)},"result":{_text(result)}}}'


def encode_error(id: RequestId | None, error: WireError) -> str:
    """An error as a frame; the id is null where the request had none that can be read."""
    known = CODES[error.code]
    data: dict[str, object] = {"code": error.code, **error.facts}
    if error.field is not None:
        data["field"] = error.field
    if error.reference is not None:
        data["reference"] = error.reference
    body = {"code": known.number, "message": known.message, "data": data}
    return f'{{"jsonrpc":"2.0","id":{_text(id)},"error":{_text(body)}}}'


def encode_notification(name: str, fact: results.Result) -> str:
    """A notification as a frame."""
    return f'{{"jsonrpc":"2.0","method":"{name}","params":{_text(fact)}}}'


def _text(value: object) -> str:
    return _encode(value).decode()
