"""Writes Python values as strict JSON: what JSON can't hold is refused with the path to it.

msgspec alone would write NaN as null, sets as arrays, bytes as base64 and numbers as keys; such a
change would only show when somebody reads it. A value is written in C and read back: equal means
strict. Only where they differ, a walk in Python makes it plain or names what is wrong.
"""

import dataclasses
import math
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from itertools import islice
from pathlib import PurePath
from typing import Any
from uuid import UUID

import attrs
import msgspec

from trioloop.errors import EventEncodingError
from trioloop.messages import Json
from trioloop.schema.custom import is_pydantic
from trioloop.tools.excerpt import HeadAndTail, clean

_DEPTH_MAX = 200  # also what finds a value that contains itself
_LIGHT_WEIGHT = 2_000  # values written in one go: well under a millisecond
_PATH_CHARACTERS = 120
_GROUP = 250  # members of an array or object looked at in one go
_TEXT_CHARACTERS = 1 << 20  # of one string written in one go


def written(
    value: object,
    path: str = "$",
    *,
    bytes_max: int,
    pieces: Callable[[bytes], object] | None = None,
) -> tuple[str, Json]:
    """A value as strict JSON text, and a plain copy of it; of a large plain one, itself.

    Args:
        value: what to write.
        path: where it stands, for errors.
        bytes_max: how much of a large one's text is kept, head and tail.
        pieces: given all of it, piece by piece.

    Raises:
        EventEncodingError: a part of it can't be written.
    """
    if is_light(value):
        exact = _exact(value)
        if exact is None:
            raw = _encoded(plain(value, path), path)
            exact = raw, msgspec.json.decode(raw)
        if pieces is not None:
            pieces(exact[0])
        return exact[0].decode(), exact[1]
    writer = _Writer()
    kept = HeadAndTail(bytes_max)
    for piece in writer.pieces(value, path, 0):
        kept.feed(piece)
        if pieces is not None:
            pieces(piece)
    return kept.text(), plain(value, path) if writer.changed else value  # type: ignore[return-value]


def plain(
    value: object, path: str = "$", depth: int = 0
) -> Any:  # Any: JSON, as the type checker can't see
    """A value in plain JSON types: data classes as objects, dates and paths as text.

    Raises:
        EventEncodingError: a part of it can't be written.
    """
    if depth > _DEPTH_MAX:
        raise refused(value, path, f"nested deeper than {_DEPTH_MAX} levels, or inside itself")
    if isinstance(value, Enum):
        value = value.value
    if type(value) in _SMALL or isinstance(value, str | int | float):
        return _plain_scalar(value, path)
    if isinstance(value, list | tuple):
        return [plain(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        return {
            _key(key, path): plain(item, _inside(path, key), depth + 1)
            for key, item in value.items()
        }
    return _plain_object(value, path, depth)


def _plain_scalar(value: object, path: str) -> object:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise refused(value, path, "NaN and infinities aren't JSON: give None or a number")
    return value


def _plain_object(value: object, path: str, depth: int) -> Any:  # Any: as `plain`
    if isinstance(value, _AS_TEXT):
        return clean(str(value)) if isinstance(value, PurePath) else msgspec.to_builtins(value)
    members = _members(value)
    if members is None:
        _close(value)
        raise refused(value, path, _ADVICE.get(type(value), "give JSON values or data classes"))
    return plain(members, path, depth + 1)


_AS_TEXT = (datetime, date, time, timedelta, UUID, Decimal, PurePath)
_ADVICE: dict[type, str] = {
    set: "give a list",
    frozenset: "give a list",
    bytes: "give text, or an ImageBlock",
    bytearray: "give text, or an ImageBlock",
}


def _members(value: object) -> Mapping[str, object] | list[object] | None:
    """What a data class holds, by the names that msgspec gives its fields; None: it is none."""
    if isinstance(value, type):
        return None
    if isinstance(value, msgspec.Struct):
        return _struct_members(value)
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if attrs.has(type(value)):
        return {field.name: getattr(value, field.name) for field in _attrs_fields(type(value))}
    if is_pydantic(type(value)):
        dumped: dict[str, object] = value.model_dump(mode="json")  # type: ignore[attr-defined]
        return dumped
    return None


def _attrs_fields(kind: Any) -> tuple["attrs.Attribute[Any]", ...]:  # Any: known only as it runs
    found: tuple[attrs.Attribute[Any], ...] = attrs.fields(kind)
    return found


def _struct_members(value: msgspec.Struct) -> Mapping[str, object] | list[object]:
    config = value.__struct_config__
    pairs = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
    members = {wire: getattr(value, name) for wire, name in pairs}
    members = {wire: member for wire, member in members.items() if member is not msgspec.UNSET}
    if config.tag is not None and config.tag_field is not None:
        members = {config.tag_field: config.tag, **members}
    return list(members.values()) if config.array_like else members


def _key(key: object, path: str) -> str:
    if isinstance(key, Enum):
        key = key.value
    if not isinstance(key, str):
        raise refused(key, path, f"the key {key!r:.40} isn't text: turn it into text")
    return clean(key)


def _inside(path: str, key: object) -> str:
    name = str(key)
    return f"{path}.{name}" if name.isidentifier() else f"{path}[{name[:40]!r}]"


def _close(value: object) -> None:
    """End a coroutine or generator that nobody will run, so that it isn't reported as forgotten."""
    if isinstance(value, Coroutine | Generator):
        value.close()


def refused(value: object, path: str, why: str) -> EventEncodingError:
    """The error that refuses a value; it names its type, never its content."""
    kind = type(value)
    name = (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )
    where = path if len(path) <= _PATH_CHARACTERS else f"{path[:_PATH_CHARACTERS]}..."
    return EventEncodingError("the result", where, f"{name} has no JSON form here ({why})")


def _exact(value: object) -> tuple[bytes, Json] | None:
    """A value written in C, and the equal one that this reads as; None: it isn't plain JSON."""
    try:
        raw = msgspec.json.encode(value)
        copy: Json = msgspec.json.decode(raw)
        return (raw, copy) if bool(copy == value) else None
    except Exception:  # a value's own code may raise anything; the walk names what is wrong
        return None


def _encoded(value: object, path: str) -> bytes:
    try:
        return msgspec.json.encode(value)
    except Exception as error:  # such as a number of too many digits
        raise refused(value, path, str(error)) from None


def is_light(value: object) -> bool:
    """Whether a value has little to write. Looks at no more than 2,000 parts of it."""
    if type(value) in _SMALL:
        return True
    weight = 0
    waiting = [value]
    while waiting:
        part = waiting.pop()
        weight += 1
        if type(part) in _SMALL:
            continue
        if isinstance(part, str):
            weight += len(part) // 64
        elif isinstance(part, list | tuple):
            weight += len(part)
            waiting.extend(part if weight <= _LIGHT_WEIGHT else ())
        elif isinstance(part, dict | Mapping):  # the first is quick to tell
            weight += len(part)
            waiting.extend(part.values() if weight <= _LIGHT_WEIGHT else ())
        elif not isinstance(part, _AS_TEXT):
            waiting.extend(_shallow(part))
        if weight > _LIGHT_WEIGHT:
            return False
    return True


_SMALL = frozenset({type(None), bool, int, float})


def _shallow(value: object) -> Iterable[object]:
    if is_pydantic(type(value)):
        return list(vars(value).values())
    members = _members(value)
    return list(members.values()) if isinstance(members, Mapping) else members or ()


class _Writer:
    """Writes a heavy value in pieces; `changed` tells whether it wasn't plain JSON as it was."""

    def __init__(self) -> None:
        self.changed = False

    def pieces(self, value: object, path: str, depth: int) -> Iterator[bytes]:
        if depth > _DEPTH_MAX:
            raise refused(value, path, f"nested deeper than {_DEPTH_MAX} levels, or inside itself")
        if is_light(value):
            yield self._light(value, path, depth)
        elif isinstance(value, str):
            yield from self._text(value)
        elif isinstance(value, Mapping):
            yield from self._object(value, path, depth)
        elif isinstance(value, list | tuple):
            self.changed |= isinstance(value, tuple)
            yield from self._array(value, path, depth)
        else:
            self.changed = True
            members = _members(value)
            yield from self.pieces(
                plain(value, path) if members is None else members, path, depth + 1
            )

    def _light(self, value: object, path: str, depth: int) -> bytes:
        exact = _exact(value)
        if exact is None:
            self.changed = True
            return _encoded(plain(value, path, depth), path)
        return exact[0]

    def _text(self, text: str) -> Iterator[bytes]:
        yield b'"'
        for start in range(0, len(text), _TEXT_CHARACTERS):
            part = text[start : start + _TEXT_CHARACTERS]
            cleaned = clean(part)
            self.changed |= cleaned is not part
            yield msgspec.json.encode(cleaned)[1:-1]
        yield b'"'

    def _object(self, value: Mapping[Any, object], path: str, depth: int) -> Iterator[bytes]:
        separator = b"{"
        members = iter(value.items())
        while group := dict(islice(members, _GROUP)):
            if is_light(group):
                yield separator + self._light(group, path, depth)[1:-1]
            else:
                for key, item in group.items():
                    yield separator + _encoded(_key(key, path), path) + b":"
                    yield from self.pieces(item, _inside(path, key), depth + 1)
                    separator = b","
            separator = b","
        yield b"}"

    def _array(self, value: Sequence[object], path: str, depth: int) -> Iterator[bytes]:
        separator = b"["
        for start in range(0, len(value), _GROUP):
            group = value[start : start + _GROUP]
            if (exact := _exact(list(group)) if is_light(group) else None) is not None:
                yield separator + exact[0][1:-1]
            else:
                for index, item in enumerate(group, start):
                    yield separator
                    yield from self.pieces(item, f"{path}[{index}]", depth + 1)
                    separator = b","
            separator = b","
        yield b"]"
