"""How answers and errors end, in providers' words and in ours: one table for each.

An adapter reads a provider's error to one kind; what the kind means to the loop stands here only.
"""

from typing import Literal, TypeAlias

from trioloop.chunks import FinishReason

ErrorKind: TypeAlias = Literal[
    "context_length",
    "rate_limit",
    "quota",
    "overloaded",
    "unavailable",
    "server",
    "timeout",
    "authentication",
    "permission",
    "not_found",
    "bad_tool_call",
    "content_filter",
    "invalid_request",
    "network",
    "unknown",
]

FAILURE_CODES: dict[ErrorKind, str] = {
    "context_length": "CONTEXT_WINDOW_EXCEEDED",
    "rate_limit": "RATE_LIMIT",
    "quota": "QUOTA",
    "overloaded": "OVERLOADED",
    "unavailable": "OVERLOADED",
    "server": "SERVER",
    "timeout": "TIMEOUT",
    "authentication": "AUTH",
    "permission": "AUTH",
    "not_found": "INVALID_REQUEST",
    "bad_tool_call": "MALFORMED_RESPONSE",
    "content_filter": "CONTENT_FILTER",
    "invalid_request": "INVALID_REQUEST",
    "network": "TRANSPORT",
    "unknown": "UNKNOWN",
}
"""What each kind of error is to the loop: a code of `errors.MODEL_FAILURE_CODES`."""

FINISHES: dict[str, FinishReason] = {
    # Chat Completions and its imitators
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "content_filter",
    # Responses: the status, or the reason why it is incomplete
    "completed": "stop",
    "incomplete": "length",
    "max_output_tokens": "length",
    # Messages
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "pause",
    "compaction": "pause",
}
"""Why a model stopped, in our words."""

FAILED_FINISHES: dict[str, ErrorKind] = {
    "error": "server",
    "insufficient_system_resource": "overloaded",
    "failed": "server",
    "cancelled": "server",
}
"""The finishes that are errors, and the kind of each."""
