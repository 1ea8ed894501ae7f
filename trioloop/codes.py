"""Every code that a log or an exception can show: what it says, and what to do about it.

One table for each place where a code stands. The errors themselves are in `errors`; applications
may add codes of their own: a `Reject` names one, and an exception that has a `code` keeps it.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import attrs


@attrs.frozen
class Code:
    """What a code says, and what to do about it, in words for the developer of an application."""

    says: str
    do: str


# In tool/result

Ran: TypeAlias = Literal["no", "perhaps", "yes"]


@attrs.frozen
class CallCode(Code):
    """A code of a call. `ran`: whether its body may have had effects."""

    ran: Ran


ToolCode: TypeAlias = Literal[
    "INVALID_ARGUMENTS",
    "TOOL_ABANDONED",
    "TOOL_ABORTED",
    "TOOL_ABORTED_BEFORE_DISPATCH",
    "TOOL_CALL_CUT",
    "TOOL_CANCELLED",
    "TOOL_CRASHED",
    "TOOL_DENIED",
    "TOOL_FAILED",
    "TOOL_INTERNAL",
    "TOOL_LEAKED_CANCEL",
    "TOOL_NOT_STARTED",
    "TOOL_OUTCOME_UNKNOWN",
    "TOOL_RESULT_UNENCODABLE",
    "TOOL_RESULT_WITHHELD",
    "TOOL_TIMEOUT",
    "UNKNOWN_TOOL",
]

TOOL_CODES: Mapping[ToolCode, CallCode] = {
    "UNKNOWN_TOOL": CallCode(
        "The step has no tool of that name; near names are in the result.",
        "Nothing, if the model goes on well. Else say in the prompt which tools there are.",
        "no",
    ),
    "INVALID_ARGUMENTS": CallCode(
        "The arguments are no JSON object, or don't fit the tool's schema; each fault is named.",
        "Nothing, if the model corrects itself. Else describe the parameters better.",
        "no",
    ),
    "TOOL_DENIED": CallCode(
        "A policy, a guard or a person didn't let the call run, or the policy itself failed.",
        "Read the reason. Where `meta.errors` stands beside it, mend the policy.",
        "no",
    ),
    "TOOL_CALL_CUT": CallCode(
        "The answer was cut off at the maximum number of tokens (P14).",
        "Raise `max_tokens`, or ask for less in one answer.",
        "no",
    ),
    "TOOL_ABORTED_BEFORE_DISPATCH": CallCode(
        "The turn was cancelled before the call ran (T9).", "Nothing: it had no effects.", "no"
    ),
    "TOOL_NOT_STARTED": CallCode(
        "The process ended before the call was dispatched; repair says so (D4).",
        "Nothing: it had no effects.",
        "no",
    ),
    "TOOL_CANCELLED": CallCode(
        "This call alone was cancelled (T12); the result says whether it had begun.",
        "Look at what it may have done, if it had.",
        "perhaps",
    ),
    "TOOL_TIMEOUT": CallCode(
        "The call took more than the tool's `timeout_s`; the result says whether it had begun.",
        "Raise `timeout_s`, or make the tool quicker; look at what it may have done.",
        "perhaps",
    ),
    "TOOL_INTERNAL": CallCode(
        "The scheduler of calls failed (P21).",
        "Look at what the call may have done, and report the fault with its log.",
        "perhaps",
    ),
    "TOOL_OUTCOME_UNKNOWN": CallCode(
        "The process ended after the call was dispatched; repair says so (D4).",
        "Look at what it may have done before it is asked for again; the model is told so, too.",
        "perhaps",
    ),
    "TOOL_ABORTED": CallCode(
        "The turn was cancelled while the call ran (T9).",
        'Look at what it may have done. What must end whole wants `on_cancel="finish"`.',
        "yes",
    ),
    "TOOL_ABANDONED": CallCode(
        "The call's thread didn't end within `grace_s` after it was asked to (T13).",
        "It may still be at work. Call `context.check_cancelled()` in long bodies.",
        "yes",
    ),
    "TOOL_FAILED": CallCode(
        "The body, or what wraps it, raised; the model is told the type and the message.",
        "Raise `ToolError` to choose the words. The chain of exceptions is in `meta.errors`.",
        "yes",
    ),
    "TOOL_CRASHED": CallCode(
        "The body raised what isn't an `Exception`, or left a cancel scope or nursery open.",
        "Mend the tool: `meta.errors` has the chain of exceptions.",
        "yes",
    ),
    "TOOL_LEAKED_CANCEL": CallCode(
        "The body raised `trio.Cancelled` though nothing was cancelled.",
        "Mend the tool: never keep a `Cancelled` to raise it later.",
        "yes",
    ),
    "TOOL_RESULT_UNENCODABLE": CallCode(
        "The body returned what JSON can't hold; the path to it is in the result.",
        "Return text, JSON values, data classes or content blocks.",
        "yes",
    ),
    "TOOL_RESULT_WITHHELD": CallCode(
        "The post-policy withheld the result, failed, or had no time left to read it (T9).",
        "Read the feedback. Where `meta.errors` stands beside it, mend the policy.",
        "yes",
    ),
}
"""The codes that our own results carry. A tool's or a wrapper's outcome may have another."""


# In assistant/attempt


@attrs.frozen
class FailureCode(Code):
    """A code of a failed attempt. `retryable`: the same request may succeed later."""

    retryable: bool


MODEL_FAILURES: Mapping[str, FailureCode] = {
    "RATE_LIMIT": FailureCode(
        "Too many requests, or tokens, for the moment.",
        "Retry; ask less often, or raise the account's limit.",
        retryable=True,
    ),
    "OVERLOADED": FailureCode(
        "The provider has no room for the request, or is away for the moment.",
        "Retry.",
        retryable=True,
    ),
    "SERVER": FailureCode("The provider failed.", "Retry.", retryable=True),
    "TIMEOUT": FailureCode(
        "Nothing came within the model's time limits.",
        "Retry; raise the limit that the message names, if answers are just slow.",
        retryable=True,
    ),
    "TRANSPORT": FailureCode(
        "The connection couldn't be made, or broke.",
        "Retry; check address, proxy and network.",
        retryable=True,
    ),
    "TRUNCATED": FailureCode(
        "The stream ended before the model had finished.", "Retry.", retryable=True
    ),
    "EMPTY_RESPONSE": FailureCode(
        "The stream ended well, but held no answer.", "Retry.", retryable=True
    ),
    "CONTEXT_WINDOW_EXCEEDED": FailureCode(
        "The request has more tokens than the model takes.",
        "Shorten the history first: a retry of the same request is refused (R6).",
        retryable=False,
    ),
    "AUTH": FailureCode(
        "The provider didn't accept the key, or the key may not use the model.",
        "Check the key and what it may do.",
        retryable=False,
    ),
    "QUOTA": FailureCode(
        "The account has used up what it may spend.",
        "Raise the account's budget.",
        retryable=False,
    ),
    "INVALID_REQUEST": FailureCode(
        "The provider refused the request as it stands, or knows no such model.",
        "Read the message; check model, settings and `extra`.",
        retryable=False,
    ),
    "UNSUPPORTED": FailureCode(
        "The model can't do what the settings or messages ask for; nothing was sent.",
        "Change the setting that the message names, or take another model.",
        retryable=False,
    ),
    "CONTENT_FILTER": FailureCode(
        "The provider's filter stopped the request or the answer.",
        "Change what is asked.",
        retryable=False,
    ),
    "MALFORMED_RESPONSE": FailureCode(
        "What came isn't what the provider's API promises.",
        "Check the address: it may not speak this API. Report it with the attempt from the log.",
        retryable=False,
    ),
    "UNKNOWN": FailureCode(
        "The adapter met what it has no word for; the message has it as it came.",
        "Read the message.",
        retryable=False,
    ),
}
"""Why an attempt can fail, in our words for every provider's."""


# In turn/end

TURN_CODES: Mapping[str, Code] = {
    "REJECTED": Code(
        "A listener of `agent.pre_step` rejected the step and named no code of its own (P3).",
        "Read the message; `by` names the listener.",
    ),
    "NO_MODEL": Code("Nobody chose a model.", "Give `open_runtime(model=...)` one."),
    "TOOL_ACTIVATION_FAILED": Code(
        "A tool's `when` raised, so the step's tools aren't known.", "Mend the condition."
    ),
    "HOOK_MISUSE": Code(
        "A listener awaited `next()` twice, or gave an answer that its hook doesn't have (H1).",
        "Mend the listener that the message names.",
    ),
    "HOOK_TIMEOUT": Code(
        "A listener took more time than it was registered with (H3).",
        "Raise its `timeout_s`, or make it quicker.",
    ),
    "UNENCODABLE": Code(
        "A listener or section gave a value that strict JSON can't hold.",
        "Change the value that the message leads to.",
    ),
    "LEAKED_CANCEL": Code(
        "A listener or adapter raised `trio.Cancelled` though nothing was cancelled (R8).",
        "Mend the listener in `by`: never keep a `Cancelled` to raise it later.",
    ),
    "STORE_FAILED": Code(
        "The store couldn't commit; the turn closed in memory (P19).",
        "Mend the disk; the next message, or `agent.wake()`, tries again what is kept (D3).",
    ),
    "FENCED": Code(
        "Another owner has the session now (P20). Only `Settled` tells: this log isn't ours.",
        "Dispose of the agent; go on where the other owner is.",
    ),
    "INTERNAL": Code(
        "A fault of trioloop's own (P21, R10).", "Report it with the log of the session."
    ),
    "UNKNOWN": Code(
        "An exception without a code was raised by a listener, a section or an adapter.",
        "Mend what raised it; `by` names the listener.",
    ),
}
"""Codes of a turn that was blocked or failed, beside those of the attempt that failed it (P13)."""


# In exceptions

RAISED: Mapping[str, str] = {
    "INVALID_INPUT": "Change the argument that the message names.",
    "DUPLICATE_MESSAGE": "Nothing, if the message was meant to be sent once: `fate` tells of it.",
    "QUEUE_FULL": "Wait until the agent has worked some off, or raise `queue_messages_max`.",
    "AGENT_BUSY": "Send without waiting: `followup` or `steer`.",
    "AGENT_DISPOSED": "Resume the session with `runtime.resume_agent(name)`, and send to that.",
    "NO_POLICY": "Open one: `agent.compact()` needs `plugins.compaction` or `plugins.pruning`.",
    "NO_MODEL": "Give `open_runtime(model=...)` one, or name one in `agent.request`.",
    "INTERNAL": "Report it with the log of the session.",
    "RUNTIME_CLOSED": "Make agents inside the `async with` block of their runtime.",
    "DISCARDED": "Send it again under a new id, if it is still wanted; `outcome` tells how.",
    "PARKED": "Call `agent.wake()`, or send a waking message: the agent goes on with it.",
    "UNKNOWN_SESSION": "Check name and store; `runtime.create_agent` makes a new session.",
    "SESSION_EXISTS": "Take another name, or resume it with `runtime.resume_agent`.",
    "SESSION_LOCKED": "Close the other writer, which `holder` names, or open it for reading.",
    "OPEN_TURN": "Fork at `nearest`.",
    "GRAMMAR": "Where you append yourself: `expected` tells what may stand there. Else report it.",
    "UNENCODABLE": "Change the value that `path` leads to.",
    "UNSUPPORTED_SESSION": "Read it with the version, and the plugins, that wrote it.",
    "DAMAGED_SESSION": "What stands before `seq` can be read; restore the rest from a copy.",
    "DAMAGED_EXPORT": "Export the session once more; `line` is the first that is wrong.",
    "STORE_FAILED": "Mend the disk, then wake the agent: nothing in memory is lost.",
    "FENCED": "Dispose of the agent; go on where the other owner is.",
    "SEQUENCE_CONFLICT": "For authors of stores: read the session again from `actual` on.",
    "STORE_UNREADABLE": "Check path and permissions.",
    "HOOK_MISUSE": "Mend the listener that the message names.",
    "HOOK_TIMEOUT": "Raise the listener's `timeout_s`, or make it quicker.",
    "TOOL_FAILED": "Yours to raise: the model reads the words.",
    "TOOL_CANCELLED": "Let it go up, so that the thread ends.",
    "TOOL_LEAKED_CANCEL": "Mend the call: never keep a `Cancelled` to raise it later.",
    "TOOL_SCHEMA": "Change the annotation that the message names.",
    "DUPLICATE_TOOL": "Close the registration of the other one first, or rename one.",
    "TOOL_ACTIVATION_FAILED": "Mend the tool's `when`.",
    "TOOL_SET_DISPOSED": "Don't keep a step's tool set beyond the step.",
    "INVALID_ARGUMENTS": "`faults` has a line for each; the model is told them by itself.",
}
"""What to do about an error that is raised, by its code; what it says is in its docstring."""
