"""How adapters look at a provider's JSON: each value is checked where it is read."""

import json
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

Object: TypeAlias = dict[str, Any]  # Any: a provider's JSON; each value is checked where it's read


class _Unreadable:
    """What `read_json` gives for data that is no JSON."""


UNREADABLE: Final = _Unreadable()


def read_json(data: bytes) -> object:
    """The JSON value of some data, or `UNREADABLE`.

    Half a surrogate pair in it becomes a question mark, a broken byte a replacement character.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        value = json.loads(data.decode("utf-8", "replace"), strict=False)
        encoded = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        return msgspec.json.decode(encoded)
    except (ValueError, RecursionError):
        return UNREADABLE


def is_json_object(text: str) -> bool:
    """Whether some text is the JSON of an object."""
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False


def an_object(value: object) -> Object:
    """A JSON object as it is, anything else as an empty one."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[Object]:
    """The JSON objects of a JSON array; none where it is something else."""
    if not isinstance(value, list):
        return []
    return [item for item in value if isinstance(item, dict)]


def string(value: object) -> str:
    """A JSON string as it is, anything else as an empty one."""
    return value if isinstance(value, str) else ""


def count(holder: object, name: str) -> int | None:
    """A number of tokens, where a member tells one."""
    value = holder.get(name) if isinstance(holder, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
