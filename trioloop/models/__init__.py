"""Models: what answers an agent's requests. Importing this package imports no HTTP client.

A name is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trioloop.models.scripted import ScriptedModel

__all__ = ["ScriptedModel"]

_ROOMS = {"ScriptedModel": "scripted"}


def __getattr__(name: str) -> object:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
