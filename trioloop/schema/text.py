"""Reads the JSON object that a model wrote as a call's arguments, strictly.

Empty text is `{}`. What JSON readers silently make the best of is refused, because a model's slip
there means that nobody knows what it wanted: duplicate keys, NaN, lone surrogates.
"""

import json
from typing import Any, NoReturn

import msgspec

from trioloop.errors import ArgumentsError

_SHOWN_CHARACTERS = 80


def parse_object(raw: str) -> dict[str, Any]:  # Any: a JSON value, of which the schema decides
    """The object that a call's raw arguments are; empty text is `{}`.

    Raises:
        ArgumentsError: the text isn't JSON, isn't an object, or is ambiguous.
    """
    if not raw or raw.isspace():
        return {}
    try:
        return _parsed(raw)
    except RecursionError:
        raise ArgumentsError(["$: expected a JSON object, got one nested too deeply"]) from None


def _parsed(raw: str) -> dict[str, Any]:  # Any: as above
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise ArgumentsError([f"$: expected a JSON object, {_why_not(raw, error)}"]) from None
    if not isinstance(found, dict):
        raise ArgumentsError([f"$: expected a JSON object, got {shown(found)}"])
    if "\\u003" in raw or raw.count(":") != _colons(found):  # else no key came twice
        _refuse_duplicates(raw)
    return found


def shown(value: object) -> str:
    """A JSON value's kind and the beginning of its text, to show what was got."""
    kind = kind_of(value)
    if kind in ("array", "object"):
        return f"{kind} {_cut(_written(value))}"
    return "null" if kind == "null" else f"{kind} {_cut(_written(value))}"


def kind_of(value: object) -> str:
    """The JSON Schema name of a JSON value's type."""
    if value is None:
        return "null"
    return _KINDS.get(type(value), "object")


_KINDS: dict[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def _colons(value: object) -> int:
    """How many colons a JSON value needs: one for each key, and those in its texts."""
    if type(value) is str:
        return value.count(":")
    if type(value) is dict:
        return sum(1 + name.count(":") + _colons(member) for name, member in value.items())
    return sum(map(_colons, value)) if type(value) is list else 0


def _written(value: object) -> str:
    if isinstance(value, str):
        value = value[: _SHOWN_CHARACTERS + 1]
    elif isinstance(value, list):
        value = value[:_SHOWN_CHARACTERS]
    return msgspec.json.encode(value).decode()


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."


def _why_not(raw: str, error: Exception) -> str:
    try:
        json.loads(raw, parse_constant=_refuse_constant)
    except json.JSONDecodeError as reason:
        near = raw[max(0, reason.pos - 20) : reason.pos + 20]
        where = f"line {reason.lineno}, column {reason.colno}"
        return f"got text that isn't JSON: {reason.msg} at {where}, near {near!r}"
    except ArgumentsError as reason:
        return str(reason)
    except ValueError:
        return f"got text that isn't JSON: {error}"
    if "number out of range" in str(error).lower():
        return f"got a number that is out of range: {error}"
    return "got text with half of a UTF-16 surrogate pair, which is no character"


def _refuse_constant(name: str) -> NoReturn:
    raise ArgumentsError([f"got {name}, which isn't JSON: leave it out or give a number"])


def _refuse_duplicates(raw: str) -> None:
    twice: list[str] = []

    def pairs(members: list[tuple[str, object]]) -> dict[str, object]:
        seen = dict(members)
        if len(seen) != len(members):
            names = [name for name, _ in members]
            twice.extend(dict.fromkeys(name for name in names if names.count(name) > 1))
        return seen

    json.loads(raw, object_pairs_hook=pairs)
    if twice:
        raise ArgumentsError([f"$: expected each key once, got {name!r} twice" for name in twice])
