"""The functions that a program has: one for each tool of its step, and what they give it."""

import keyword
from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import msgspec

from trioloop.events import ToolDeclaration
from trioloop.ext.code.worker import Answer, ProgramCall, Raised, Value
from trioloop.messages import text_of
from trioloop.tools import NestedCall, ToolOutcome

_RAISES: Mapping[str, str] = {
    "TOOL_DENIED": "PermissionError",
    "TOOL_TIMEOUT": "TimeoutError",
    "INVALID_ARGUMENTS": "TypeError",
    "UNKNOWN_TOOL": "NameError",
}
"""The exception that a failed call raises in its program; for all other codes a RuntimeError."""


@attrs.frozen
class Binding:
    """A tool as a program sees it. `parameters` are in order of its declaration."""

    tool: str
    parameters: tuple[str, ...]


def bind(tools: Iterable[ToolDeclaration]) -> dict[str, Binding]:
    """Functions by name. A name that Python can't write is written with underscores."""
    bound: dict[str, Binding] = {}
    for tool in sorted(tools, key=lambda one: not one.name.isidentifier()):  # own names first
        name = tool.name if tool.name.isidentifier() else tool.name.replace("-", "_")
        if not name.isidentifier():
            name = f"_{name}"
        if keyword.iskeyword(name):
            name = f"{name}_"
        bound.setdefault(name, Binding(tool.name, _parameters(tool)))
    return bound


def _parameters(tool: ToolDeclaration) -> tuple[str, ...]:
    schema: dict[str, Any] = msgspec.json.decode(tool.parameters)
    return tuple(schema.get("properties", {}))


def as_nested(call: ProgramCall, binding: Binding) -> NestedCall | Raised:
    """The call of a tool that a program's call means, or what is wrong with it."""
    given = len(call.args)
    if given > len(binding.parameters):
        most = len(binding.parameters)
        return Raised("TypeError", f"{call.name}() takes at most {most} arguments, not {given}")
    arguments = dict(zip(binding.parameters, call.args, strict=False))
    twice = arguments.keys() & call.kwargs.keys()
    if twice:
        return Raised("TypeError", f"{call.name}() got {min(twice)!r} twice")
    return NestedCall(binding.tool, {**arguments, **call.kwargs})


def answer_of(outcome: ToolOutcome) -> Answer:
    """What a call's outcome gives its program: a value, or an exception."""
    text = text_of(outcome.content)
    if outcome.is_error:
        return Raised(_RAISES.get(outcome.code or "", "RuntimeError"), text)
    return Value(text or None if outcome.value is None else outcome.value)
