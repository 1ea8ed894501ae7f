"""trioloop: a structured-concurrency runtime for LLM agents on Trio.

The names that applications use. Durable facts are in `trioloop.events`, what people and models say
in `trioloop.messages`, models in `trioloop.models`, hooks in `trioloop.hooks`, the pool alone in
`trioloop.tools.pool`, what tests need in `trioloop.testing`.
"""

from trioloop.agent.agent import Agent
from trioloop.agent.notifications import Notification, Settled
from trioloop.chunks import Usage
from trioloop.errors import (
    AgentDisposedError,
    InvalidInputError,
    ModelFailure,
    StoreError,
    ToolError,
    TrioloopError,
    UnknownSessionError,
)
from trioloop.events import CallConfig, Event, EventData, event
from trioloop.handles import AgentHandle, SessionHandle
from trioloop.hooks.points import Hooks
from trioloop.ids import CallId, Ids, MessageId, SessionId
from trioloop.limits import Limits
from trioloop.log.explain import explain
from trioloop.log.explain import first_difference as diff
from trioloop.log.fold import check
from trioloop.log.folding import Fold
from trioloop.log.rebuild import Request, rebuild_request
from trioloop.log.replay import Moment, replay
from trioloop.log.tokens import ByteEstimator, TokenEstimator, context_tokens
from trioloop.messages import ImageBlock, TextBlock, UserMessage, user_message
from trioloop.ports import ToolOutcome
from trioloop.prompt import Section
from trioloop.runtime.open import open_runtime
from trioloop.runtime.runtime import Runtime
from trioloop.session import Session
from trioloop.store import (
    MemoryStore,
    SqliteStore,
    export_session,
    import_session,
    read_session,
)
from trioloop.stream.assemble import Assembled
from trioloop.tools import Tool, ToolConditionContext, ToolContext, tool

from . import events, messages

__all__ = [
    "Agent",
    "AgentDisposedError",
    "AgentHandle",
    "Assembled",
    "ByteEstimator",
    "CallConfig",
    "CallId",
    "Event",
    "EventData",
    "Fold",
    "Hooks",
    "Ids",
    "ImageBlock",
    "InvalidInputError",
    "Limits",
    "MemoryStore",
    "MessageId",
    "ModelFailure",
    "Moment",
    "Notification",
    "Request",
    "Runtime",
    "Section",
    "Session",
    "SessionHandle",
    "SessionId",
    "Settled",
    "SqliteStore",
    "StoreError",
    "TextBlock",
    "TokenEstimator",
    "Tool",
    "ToolConditionContext",
    "ToolContext",
    "ToolError",
    "ToolOutcome",
    "TrioloopError",
    "UnknownSessionError",
    "Usage",
    "UserMessage",
    "check",
    "context_tokens",
    "diff",
    "event",
    "events",
    "explain",
    "export_session",
    "import_session",
    "messages",
    "open_runtime",
    "read_session",
    "rebuild_request",
    "replay",
    "tool",
    "user_message",
]
