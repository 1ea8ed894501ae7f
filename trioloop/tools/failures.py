"""What the model and the log are told of a call that has no plain result (tools.md section 4).

Each text says what is true of the call: that it didn't run, or that it did and its effects are
unknown.
"""

from collections.abc import Iterator
from typing import Literal, TypeAlias

import trio

from trioloop.codes import ToolCode
from trioloop.errors import ToolError
from trioloop.messages import Json
from trioloop.ports import ToolOutcome
from trioloop.tools.excerpt import clean, prefix
from trioloop.tools.words import code_of, words_of

Cause: TypeAlias = Literal["cancelled", "timeout", "aborted"]

_MESSAGE_BYTES_MAX = 8 * 1024
_CHAIN_MAX = 8  # exceptions of one chain that the log is told of

_NOT_RUN: dict[Cause, tuple[ToolCode, str]] = {
    "cancelled": ("TOOL_CANCELLED", "This call was cancelled before it ran."),
    "timeout": ("TOOL_TIMEOUT", "This call took too long before it ran."),
    "aborted": ("TOOL_ABORTED_BEFORE_DISPATCH", "The turn was cancelled before this call ran."),
}
_STOPPED: dict[Cause, tuple[ToolCode, str]] = {
    "cancelled": (
        "TOOL_CANCELLED",
        "This call was cancelled while it ran. What it has done by then is unknown.",
    ),
    "timeout": (
        "TOOL_TIMEOUT",
        "This call took too long and was stopped. What it has done by then is unknown.",
    ),
    "aborted": (
        "TOOL_ABORTED",
        "The turn was cancelled while this call ran. What it has done by then is unknown.",
    ),
}


def failure(code: ToolCode, text: str, meta: dict[str, Json] | None = None) -> ToolOutcome:
    """The outcome of a call that failed in some way; what the codes say is in `codes`."""
    return ToolOutcome(content=text, is_error=True, code=code, meta=meta)


def stopped(cause: Cause, *, ran: bool) -> ToolOutcome:
    """The outcome of a call that was stopped, before or after its body had started."""
    return failure(*(_STOPPED if ran else _NOT_RUN)[cause])


def cut() -> ToolOutcome:
    """The outcome of each call of an answer that was cut at max tokens (P14)."""
    return failure(
        "TOOL_CALL_CUT",
        "This call was not run: the answer was cut off at the maximum number of tokens.",
    )


def abandoned() -> ToolOutcome:
    """The outcome of a call whose thread didn't end in time."""
    return failure(
        "TOOL_ABANDONED",
        "This call was stopped but didn't end in time. It may still be running.",
    )


def leaked() -> ToolOutcome:
    """The outcome of a call that raised `trio.Cancelled` though nothing was cancelled."""
    return failure(
        "TOOL_LEAKED_CANCEL",
        "The tool stopped as if it had been cancelled, but nothing had cancelled it. "
        "What it has done by then is unknown.",
    )


def left_open(error: BaseException) -> ToolOutcome:
    """The outcome of a body that left a cancel scope or nursery open behind it."""
    return failure(
        "TOOL_CRASHED",
        "The tool left a cancel scope or a nursery open, so its result can't be trusted.",
        {"errors": _chain(error)},
    )


def unknown_tool(name: str, near: tuple[str, ...]) -> ToolOutcome:
    """The outcome of a call to a tool that this step doesn't have."""
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    return failure("UNKNOWN_TOOL", f"There is no tool {clean(name)[:200]!r} in this step.{hint}")


def invalid_arguments(name: str, faults: tuple[str, ...]) -> ToolOutcome:
    """The outcome of a call whose arguments don't fit its tool."""
    text = f"The arguments don't fit {name}, so it was not run:\n" + "\n".join(faults)
    return failure("INVALID_ARGUMENTS", prefix(text, _MESSAGE_BYTES_MAX))


def denied(reason: str) -> ToolOutcome:
    """The outcome of a call that a policy didn't let run."""
    return failure("TOOL_DENIED", prefix(f"This call was not run: {reason}", _MESSAGE_BYTES_MAX))


def denied_by_fault(who: str | None, error: BaseException) -> ToolOutcome:
    """The outcome of a call that didn't run because a policy failed."""
    return failure(
        "TOOL_DENIED",
        f"This call was not run: the policy {who or 'that decides about it'} failed.",
        {"errors": _chain(error)},
    )


def withheld(why: str, error: BaseException | None = None) -> ToolOutcome:
    """The outcome of a call whose result nobody could vouch for (T9)."""
    meta: dict[str, Json] | None = None if error is None else {"errors": _chain(error)}
    return failure("TOOL_RESULT_WITHHELD", prefix(why, _MESSAGE_BYTES_MAX), meta)


def internal() -> ToolOutcome:
    """The outcome of each call that has none when the scheduler itself fails (P21)."""
    return failure("TOOL_INTERNAL", "The tool runner failed. What this call has done is unknown.")


def raised(error: BaseException) -> ToolOutcome:
    """The outcome of a body, or of what wraps it, that raised. Groups are flattened in order."""
    leaves = list(_leaves(error))
    crashed = any(not isinstance(leaf, Exception) for leaf in leaves)
    return failure(
        "TOOL_CRASHED" if crashed else "TOOL_FAILED",
        prefix("\n".join(_told(leaf) for leaf in leaves), _MESSAGE_BYTES_MAX),
        {"errors": [line for leaf in leaves for line in _chain(leaf)]},
    )


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _leaves(part)
    elif not isinstance(error, trio.Cancelled):
        yield error


def _told(error: BaseException) -> str:
    """What the model is told of an exception: a `ToolError` in its own words."""
    if isinstance(error, ToolError):
        return words_of(error, _MESSAGE_BYTES_MAX) or type(error).__name__
    return _described(error)


def _described(error: BaseException) -> str:
    text = words_of(error, _MESSAGE_BYTES_MAX)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _chain(error: BaseException) -> list[Json]:
    """An exception and what led to it, for the log."""
    lines: list[Json] = []
    cause: BaseException | None = error
    while cause is not None and len(lines) < _CHAIN_MAX:
        message = words_of(cause, _MESSAGE_BYTES_MAX)
        line: dict[str, Json] = {"type": type(cause).__name__, "message": message}
        code = code_of(cause)
        if code is not None:
            line["code"] = code
        lines.append(line)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return lines
