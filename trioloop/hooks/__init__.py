"""Hooks: the places where policy joins the loop.

`dispatch` is the mechanism, `points` the places with their payloads and answers.
"""

from trioloop.hooks.dispatch import Next, Registration, Serial, Waterfall
from trioloop.hooks.points import (
    Accept,
    Allow,
    Ask,
    Assembly,
    AttemptFailed,
    CallRequest,
    Compact,
    Decision,
    Deny,
    Enter,
    Hooks,
    PostExecution,
    PostPolicy,
    PrePolicy,
    PreStep,
    Reject,
    Replace,
    RequestProposal,
    Retry,
    SectionText,
    StreamRequest,
    TurnStopping,
    Withhold,
)
from trioloop.ports import RetryPolicy

__all__ = [
    "Accept",
    "Allow",
    "Ask",
    "Assembly",
    "AttemptFailed",
    "CallRequest",
    "Compact",
    "Decision",
    "Deny",
    "Enter",
    "Hooks",
    "Next",
    "PostExecution",
    "PostPolicy",
    "PrePolicy",
    "PreStep",
    "Registration",
    "Reject",
    "Replace",
    "RequestProposal",
    "Retry",
    "RetryPolicy",
    "SectionText",
    "Serial",
    "StreamRequest",
    "TurnStopping",
    "Waterfall",
    "Withhold",
]
