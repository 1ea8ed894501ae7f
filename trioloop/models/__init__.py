"""Models: what answers an agent's requests. Importing this package imports no HTTP client.

A name is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trioloop.models.anthropic import Anthropic
    from trioloop.models.deadlines import ConnectionLimits, Deadlines
    from trioloop.models.demonstration import DemonstrationModel
    from trioloop.models.openai_chat import OpenAIChat
    from trioloop.models.openai_responses import OpenAIResponses
    from trioloop.models.recorded import RecordedModel
    from trioloop.models.scripted import ScriptedModel
    from trioloop.models.sent_calls import CallIds
    from trioloop.models.services import SERVICES, Dialect, Service, from_name

__all__ = [
    "SERVICES",
    "Anthropic",
    "CallIds",
    "ConnectionLimits",
    "Deadlines",
    "DemonstrationModel",
    "Dialect",
    "OpenAIChat",
    "OpenAIResponses",
    "RecordedModel",
    "ScriptedModel",
    "Service",
    "from_name",
]

_ROOMS = {
    "SERVICES": "services",
    "Anthropic": "anthropic",
    "CallIds": "sent_calls",
    "ConnectionLimits": "deadlines",
    "Deadlines": "deadlines",
    "DemonstrationModel": "demonstration",
    "Dialect": "services",
    "OpenAIChat": "openai_chat",
    "OpenAIResponses": "openai_responses",
    "RecordedModel": "recorded",
    "ScriptedModel": "scripted",
    "Service": "services",
    "from_name": "services",
}


def __getattr__(name: str) -> object:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
