"""The catalogue of codes."""

from collections.abc import Iterator

from docs.catalogues.reading import class_link, says, told
from trioloop import errors
from trioloop.agent.signal import ASKER_CANCELLED, HOST_CANCELLED
from trioloop.codes import MODEL_FAILURES, RAISED, TOOL_CODES, TURN_CODES
from trioloop.errors import LogError, ModelFailure, StoreError, TrioloopError

OPENING = """\
---
hide:
  - toc
---

# Codes

A code is a stable word for how something went wrong. It stands in the log, in notifications, in
exceptions and in the exit messages of the command line. The same tables are in `trioloop.codes`,
for programs. An application may add codes of its own: `Reject(code=...)` names one, and an
exception with a `code` keeps it.

## Why a turn ends

A `turn/end` has one reason.

| reason | code | the turn |
| --- | --- | --- |
| `completed` | | nothing more was owed |
| `max-tokens` | | as that, but an answer in it was cut off at its maximum of tokens |
| `blocked` | `REJECTED`, or the listener's own | a listener of `agent.pre_step` rejected a step |
| `aborted` | none; `cause` tells who cancelled | was cancelled |
| `error` | one of those below | failed |
| `interrupted` | | was open when its process died, and was closed by repair |

"""

CAUSES = {
    "user": "`agent.cancel()`; other words are the application's own, `agent.cancel(cause)`",
    "disposed": "`agent.dispose()`, or the runtime was left",
    HOST_CANCELLED: "what surrounds the runtime was cancelled, or its deadline passed",
    ASKER_CANCELLED: "the `ask` whose message the turn had claimed was cancelled",
}

BASES = (TrioloopError, LogError, StoreError, ModelFailure)


def raised() -> list[type[TrioloopError]]:
    """Every class of errors that is raised with a code of its own, in the order of the code."""
    classes = (value for value in vars(errors).values() if isinstance(value, type))
    return [cls for cls in classes if issubclass(cls, TrioloopError) and cls not in BASES]


def _turns() -> Iterator[str]:
    yield "### Codes of a turn\n\nBeside these, a turn has the code of the attempt that failed it"
    yield " and that nobody retried.\n\n| code | says | what to do |\n| --- | --- | --- |\n"
    for name, code in TURN_CODES.items():
        yield f"| `{name}` | {told(code.says)} | {told(code.do)} |\n"
    yield "\n### Causes of an aborted turn\n\n| cause | from |\n| --- | --- |\n"
    for cause, comes_from in CAUSES.items():
        yield f"| `{cause}` | {comes_from} |\n"


def _attempts() -> Iterator[str]:
    yield "\n## Why an attempt fails\n\nIn the `failure` of an [`assistant/attempt`]"
    yield "(events.md#assistant-attempt), and in the `turn/end` where nobody retried. Whether a "
    yield "failure is *retryable* is for listeners of [`agent.request_error`]"
    yield "(hooks.md#agent-request_error) to read; an adapter may know better for one failure.\n\n"
    yield "| code | says | what to do | retryable |\n| --- | --- | --- | --- |\n"
    for name, code in MODEL_FAILURES.items():
        retryable = "yes" if code.retryable else "no"
        yield f"| `{name}` | {told(code.says)} | {told(code.do)} | {retryable} |\n"


def _calls() -> Iterator[str]:
    yield "\n## How a call ends without a plain result\n\nIn a [`tool/result`]"
    yield "(events.md#tool-result), which the model is told as an error. *Ran* is whether the "
    yield "tool's body may have had effects.\n\n"
    yield "| code | ran | says | what to do |\n| --- | --- | --- | --- |\n"
    for name, code in TOOL_CODES.items():
        yield f"| `{name}` | {code.ran} | {told(code.says)} | {told(code.do)} |\n"


def _errors() -> Iterator[str]:
    yield "\n## What is raised\n\nEach is a `TrioloopError`, and has its code as `code`. A "
    yield "`ModelFailure` has one of [those of attempts](#why-an-attempt-fails). "
    yield "[Errors](../errors.md) has their attributes.\n\n"
    yield "| error | says | what to do |\n| --- | --- | --- |\n"
    for cls in raised():
        name = f"{class_link(cls)}<br>`{cls.code}`"
        yield f"| {name} | {says(cls)} | {RAISED[cls.code]} |\n"


def page() -> str:
    """The page, as Markdown."""
    return "".join((OPENING, *_turns(), *_attempts(), *_calls(), *_errors()))
