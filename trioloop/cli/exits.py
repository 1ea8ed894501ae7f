"""How a command ends: exit codes, and errors as one line."""

from typing import TypeAlias

from trioloop.agent.notifications import Settled
from trioloop.errors import TrioloopError

OK = 0
FAILED = 1
USAGE = 2
MAX_TOKENS = 3
BLOCKED = 4
ABORTED = 5
SIGNALLED = 128

ExitCode: TypeAlias = int

BY_REASON: dict[str, ExitCode] = {
    "completed": OK,
    "error": FAILED,
    "interrupted": FAILED,
    "max-tokens": MAX_TOKENS,
    "blocked": BLOCKED,
    "aborted": ABORTED,
}
"""The exit code of each reason that a turn ends with; a signal's is 128 and its number."""


class CommandError(Exception):
    """Something that a person can put right; its message is shown as one line."""

    def __init__(self, message: str, exit_code: ExitCode = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def code_of(settled: Settled) -> ExitCode:
    """The exit code of a turn."""
    return FAILED if settled.store_error else BY_REASON[settled.reason]


def why(settled: Settled) -> str | None:
    """Why a turn didn't complete, as one line; None: it did."""
    if settled.store_error:
        return f"the answer is not stored: {settled.store_error}"
    told = ": ".join(part for part in (settled.code, settled.message) if part)
    cancelled = "cancelled" if settled.cause == "user" else f"aborted: {settled.cause or 'unknown'}"
    return {
        "completed": None,
        "max-tokens": "the answer was cut: the model reached its maximum of tokens",
        "aborted": f"the turn was {cancelled}",
        "error": told or "the turn ended with an error that nobody described",
    }.get(settled.reason, f"the turn was {settled.reason}: {told or 'no reason was told'}")


def explained(error: BaseException) -> CommandError | None:
    """An error as a person can use it; None where it is a fault of our own."""
    error = unwrapped(error)
    if isinstance(error, CommandError):
        return error
    if isinstance(error, TrioloopError):
        return CommandError(str(error) or type(error).__name__)
    if isinstance(error, OSError):
        return CommandError(str(error))
    return None


def unwrapped(error: BaseException) -> BaseException:
    """The exception inside groups of one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
