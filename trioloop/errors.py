"""The one tree of errors.

Each says what went wrong, with which value, and what to do. `code` is the stable word that logs,
exit codes and the wire show; `codes` has what to do about each. Errors that a turn ends with, or
that a tool's result carries, are codes in the log; they become exceptions only where somebody waits
for them.
"""

from collections.abc import Sequence

from trioloop.codes import MODEL_FAILURES


class TrioloopError(Exception):
    """The base of every error that trioloop raises on purpose."""

    code: str = "ERROR"


class InvalidInputError(TrioloopError, ValueError):
    """An argument can't be used as it is. Raised where it is given; nothing has changed."""

    code = "INVALID_INPUT"


# Sending, asking and the life of an agent


class DuplicateMessageError(TrioloopError):
    """A message's id is known already (I1), so nothing was sent. `fate` tells what became of it."""

    code = "DUPLICATE_MESSAGE"

    def __init__(self, message: str, fate: str) -> None:
        super().__init__(
            f"the message {message!r} was sent before and is {fate}: nothing to do, or use a new id"
        )
        self.message = message
        self.fate = fate


class QueueFullError(TrioloopError):
    """An inbox holds as many messages as its limit allows. Raised by sends; nothing has changed."""

    code = "QUEUE_FULL"


class AgentBusyError(TrioloopError):
    """The call would wait for the very turn that makes it (I6). Raised at once."""

    code = "AGENT_BUSY"


class AgentDisposedError(TrioloopError):
    """The agent's registration has ended (S1), so it takes no more messages."""

    code = "AGENT_DISPOSED"


class NoModelError(TrioloopError):
    """An agent has no model to ask."""

    code = "NO_MODEL"


class NoPolicyError(TrioloopError):
    """Something was asked for that a policy does, and none is open that does it."""

    code = "NO_POLICY"


class InternalError(TrioloopError):
    """A fault of trioloop's own (P21, R10)."""

    code = "INTERNAL"


class RuntimeClosedError(TrioloopError):
    """A runtime that was left can't make agents."""

    code = "RUNTIME_CLOSED"


class AgentFailedError(TrioloopError):
    """The driver of an agent failed by a fault of trioloop's own (R10). Raised to its askers."""

    code = "INTERNAL"


class DiscardedError(TrioloopError):
    """An asked message was dropped before a turn claimed it (I6). `outcome` tells how."""

    code = "DISCARDED"

    def __init__(self, message: str, outcome: str) -> None:
        super().__init__(f"the message {message!r} was dropped before a turn took it: {outcome}")
        self.message = message
        self.outcome = outcome


class ParkedError(TrioloopError):
    """An asked message is still pending, but its driver has stopped (I6).

    `agent.wake()` or the next waking message goes on with it.
    """

    code = "PARKED"


class UnknownSessionError(TrioloopError, LookupError):
    """A store has no session of that name."""

    code = "UNKNOWN_SESSION"


class SessionExistsError(TrioloopError):
    """A new session can't take a name that its store, or a live agent, already has."""

    code = "SESSION_EXISTS"


class SessionLockedError(TrioloopError):
    """Somebody else is writing the session (D5). `holder` names them."""

    code = "SESSION_LOCKED"

    def __init__(self, what: str, holder: str) -> None:
        super().__init__(
            f"{what} is being written by {holder}: close that one first, or open it for reading"
        )
        self.holder = holder


class OpenTurnError(TrioloopError):
    """A fork would cut inside a turn (D6). `nearest` is the nearest seq at which it may cut."""

    code = "OPEN_TURN"

    def __init__(self, seq: int, nearest: int) -> None:
        super().__init__(f"seq {seq} lies inside a turn: fork at {nearest} instead")
        self.nearest = nearest


# The log


class LogError(TrioloopError):
    """The base of what can be wrong with a session's log."""

    code = "LOG"


class GrammarError(LogError):
    """An event may not stand where it stands (G1). Nothing of its append was taken."""

    code = "GRAMMAR"

    def __init__(self, seq: int, rule: str, expected: str, got: str) -> None:
        super().__init__(f"event {seq} breaks {rule}: expected {expected}, got {got}")
        self.seq = seq
        self.rule = rule
        self.expected = expected
        self.got = got


class EventEncodingError(LogError, ValueError):
    """A value can't be written as strict JSON. Nothing of its append was taken.

    `path` leads to it, as in `$.meta.ratio`; `why` says what is wrong with it.
    """

    code = "UNENCODABLE"

    def __init__(self, event_type: str, path: str, why: str) -> None:
        super().__init__(f"{event_type} can't be written: {why} at {path}")
        self.event_type = event_type
        self.path = path
        self.why = why


class UnsupportedSessionError(LogError):
    """A log was written by a newer version, or holds a type that nobody here declares (E5)."""

    code = "UNSUPPORTED_SESSION"


class DamagedSessionError(LogError):
    """Stored bytes aren't what was written. `seq` is the first damaged event."""

    code = "DAMAGED_SESSION"

    def __init__(self, session: str, seq: int, why: str) -> None:
        super().__init__(
            f"session {session!r} is damaged from event {seq} on ({why}): "
            "what stands before it can still be read"
        )
        self.seq = seq


class DamagedExportError(LogError):
    """Exported lines aren't what was exported. `line` is the first that is wrong, from 1 on."""

    code = "DAMAGED_EXPORT"

    def __init__(self, line: int, why: str) -> None:
        super().__init__(
            f"line {line} isn't what was exported ({why}): nothing was taken, export it once more"
        )
        self.line = line


# The store


class StoreError(TrioloopError):
    """The base of what a store refuses or fails to do."""

    code = "STORE"


class StoreFailedError(StoreError):
    """A commit failed, so the store takes no more (D3). What is in memory isn't lost."""

    code = "STORE_FAILED"


class FencedError(StoreError):
    """Another owner has the session now (D5); nothing was written. `epoch` is that owner's."""

    code = "FENCED"

    def __init__(self, session: str, epoch: int) -> None:
        super().__init__(f"session {session!r} was taken over by the owner of epoch {epoch}")
        self.epoch = epoch


class SequenceConflictError(StoreError):
    """A commit expected another next seq than the store has; nothing was written."""

    code = "SEQUENCE_CONFLICT"

    def __init__(self, session: str, expected: int, actual: int) -> None:
        super().__init__(
            f"session {session!r} goes on at seq {actual}, the commit expected {expected}"
        )
        self.expected = expected
        self.actual = actual


class StoreUnreadableError(StoreError):
    """A file can't be opened as a store: missing, not a store, or no permission."""

    code = "STORE_UNREADABLE"


# Hooks, tools and models


class HookMisuseError(TrioloopError):
    """A listener broke its hook's protocol: called `next` twice, or gave a wrong answer (H1)."""

    code = "HOOK_MISUSE"


class HookTimeoutError(TrioloopError):
    """A listener took longer than the time it was registered with (H3)."""

    code = "HOOK_TIMEOUT"


class ToolError(TrioloopError):
    """Raised by a tool's body to tell the model, in these words, what went wrong."""

    code = "TOOL_FAILED"


class CallCancelledError(TrioloopError):
    """Raised in a body's thread by `ToolContext.check_cancelled` once its call was cancelled."""

    code = "TOOL_CANCELLED"


class LeakedCancelError(TrioloopError):
    """Something raised `trio.Cancelled` though nothing was cancelled.

    The outcome of such a call: a stray `Cancelled` that went on would end its nursery in silence.
    """

    code = "TOOL_LEAKED_CANCEL"


class ToolSchemaError(TrioloopError, TypeError):
    """A function's signature can't be declared to a model. Raised where the tool is made."""

    code = "TOOL_SCHEMA"


class DuplicateToolError(TrioloopError):
    """A scope has a tool of that name already."""

    code = "DUPLICATE_TOOL"


class ToolActivationError(TrioloopError):
    """A tool's condition failed, so a step's tools aren't known. The turn ends with it."""

    code = "TOOL_ACTIVATION_FAILED"


class ToolSetDisposedError(TrioloopError):
    """A step's tool set was used after its step."""

    code = "TOOL_SET_DISPOSED"


class ArgumentsError(TrioloopError, ValueError):
    """Arguments that a model wrote don't fit a tool. `faults` has a line for each fault."""

    code = "INVALID_ARGUMENTS"

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)


class ModelFailure(TrioloopError):  # noqa: N818 - the name that the model port gives it
    """A model's attempt failed. Raised by adapters; its facts are recorded in the log.

    Attributes:
        code: one of `MODEL_FAILURE_CODES`.
        message: what happened, without credentials, headers or prompt text.
        status: the HTTP status, where there was one.
        retry_after_s: how long the provider asked to wait, in seconds.
        request_id: the provider's id of the request.
        retryable: whether the same request may succeed later.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        request_id: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        if code not in MODEL_FAILURE_CODES:
            raise InvalidInputError(f"{code!r} is no model failure: {sorted(MODEL_FAILURE_CODES)}")
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.retry_after_s = retry_after_s
        self.request_id = request_id
        self.retryable = code in RETRYABLE_CODES if retryable is None else retryable


MODEL_FAILURE_CODES = frozenset(MODEL_FAILURES)
RETRYABLE_CODES = frozenset(code for code, known in MODEL_FAILURES.items() if known.retryable)
