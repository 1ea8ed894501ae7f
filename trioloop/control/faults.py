"""What goes wrong on the wire: stable codes, their JSON-RPC numbers, and what raises them.

An error never echoes a value and never shows a traceback: a code, the field where one is to blame,
and a reference by which the line in the log is found.
"""

from collections.abc import Mapping

import attrs

from trioloop.errors import (
    AgentBusyError,
    AgentDisposedError,
    InvalidInputError,
    OpenTurnError,
    QueueFullError,
    RuntimeClosedError,
    SessionExistsError,
    SessionLockedError,
    StoreError,
    TrioloopError,
    UnknownSessionError,
)


@attrs.frozen
class Code:
    """A stable code.

    Attributes:
        number: the JSON-RPC code.
        message: what it says, always the same.
    """

    number: int
    message: str


CODES: Mapping[str, Code] = {
    "invalid_request": Code(-32600, "the frame is no request in strict JSON"),
    "unknown_method": Code(-32601, "there is no such method"),
    "invalid_params": Code(-32602, "the parameters don't fit the method"),
    "internal": Code(-32603, "a fault of the server's own"),
    "unauthenticated": Code(-32001, "a token comes first"),
    "forbidden": Code(-32002, "the token doesn't allow this"),
    "not_found": Code(-32003, "there is none of that name"),
    "agent_busy": Code(-32004, "the agent would wait for itself"),
    "queue_full": Code(-32005, "the inbox is full"),
    "already_decided": Code(-32006, "the question has its answer"),
    "session_closed": Code(-32007, "the agent was disposed of"),
    "session_locked": Code(-32008, "somebody else writes the session"),
    "rate_limited": Code(-32009, "too many messages: slow down"),
    "id_conflict": Code(-32010, "the id was used for something else"),
    "open_turn": Code(-32011, "the cut lies inside a turn"),
    "foreign_cursor": Code(-32012, "the cursor is of another session"),
    "future_cursor": Code(-32013, "the cursor lies in the future"),
    "too_many": Code(-32014, "a limit is reached"),
    "store_failed": Code(-32015, "the store takes no more"),
}


class WireError(TrioloopError):
    """An error as a peer sees it.

    Attributes:
        code: one of `CODES`.
        field: the parameter to blame, as a path.
        facts: further facts for programs, none of them the peer's own words.
        reference: by which the line in the log is found.
    """

    def __init__(
        self,
        code: str,
        *,
        field: str | None = None,
        facts: Mapping[str, int | str] | None = None,
        reference: str | None = None,
    ) -> None:
        super().__init__(f"{code}: {CODES[code].message}" + (f" ({field})" if field else ""))
        self.code = code
        self.field = field
        self.facts = facts or {}
        self.reference = reference


_CODES_OF_ERRORS: tuple[tuple[type[TrioloopError], str], ...] = (
    (AgentBusyError, "agent_busy"),
    (QueueFullError, "queue_full"),
    (AgentDisposedError, "session_closed"),
    (RuntimeClosedError, "session_closed"),
    (SessionLockedError, "session_locked"),
    (SessionExistsError, "id_conflict"),
    (UnknownSessionError, "not_found"),
    (StoreError, "store_failed"),
    (InvalidInputError, "invalid_params"),
)


def as_wire_error(error: TrioloopError) -> WireError | None:
    """An error of trioloop's as a peer sees it; None: it is none that a peer can cause."""
    if isinstance(error, WireError):
        return error
    if isinstance(error, OpenTurnError):
        return WireError("open_turn", facts={"nearest": error.nearest})
    for kind, code in _CODES_OF_ERRORS:
        if isinstance(error, kind):
            return WireError(code)
    return None
