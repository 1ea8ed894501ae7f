"""What each method does, by its name; the other half of the method table."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from trioloop.control.answers import agents, approvals, inboxes, messages, sessions
from trioloop.control.results import Result
from trioloop.control.service import Service

Answering = Callable[[Service, Any], Awaitable[Result]]  # Any: each takes its own parameters

ANSWERS: Mapping[str, Answering] = {
    "agents/list": agents.list_agents,
    "agents/create": agents.create,
    "agents/resume": agents.resume,
    "agents/fork": agents.fork,
    "agents/dispose": agents.dispose,
    "agent/send": messages.send,
    "agent/cancel": agents.cancel,
    "agent/cancel_call": agents.cancel_call,
    "agent/wake": agents.wake,
    "agent/status": agents.status,
    "inbox/list": inboxes.list_inbox,
    "inbox/remove": inboxes.remove,
    "inbox/replace": inboxes.replace,
    "inbox/restore": inboxes.restore,
    "session/events": sessions.events,
    "session/part": sessions.part,
    "session/explain": sessions.explain,
    "approval/list": approvals.list_approvals,
    "approval/answer": approvals.answer,
    "approval/forget": approvals.forget,
}
"""Those that belong to a connection (`authenticate`, `runtime/info`, subscriptions) are in
`dialogue`."""

__all__ = ["ANSWERS", "Answering"]
