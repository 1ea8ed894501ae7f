"""Finds every fault of a JSON value by a JSON Schema, each with its path.

It knows the keywords that tools use: type, enum, const, properties, required,
additionalProperties, items, prefixItems, anyOf, oneOf, allOf, local `$ref`, and the bounds of
numbers, strings and arrays. What it doesn't know it lets pass; a decoder or the tool judges that.
"""

import difflib
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from trioloop.schema.text import kind_of, shown

Schema: TypeAlias = Mapping[str, Any]  # Any: a JSON Schema document is free JSON


def faults(value: object, schema: Schema) -> list[str]:
    """One line for each fault of a value: its path, what was expected and what was got."""
    return list(_Check(schema).value(value, schema, "$"))


def resolve(root: Schema, reference: str) -> Schema | None:
    """What a local reference such as `#/$defs/Order` points to in a document."""
    found: object = root
    if not reference.startswith("#"):
        return None
    for part in reference[1:].split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else None


class _Check:
    def __init__(self, root: Schema) -> None:
        self._root = root

    def value(self, value: object, schema: object, path: str) -> Iterator[str]:
        if schema is False:
            yield f"{path}: expected nothing, got {shown(value)}"
        if not isinstance(schema, Mapping):
            return
        if isinstance(reference := schema.get("$ref"), str):
            yield from self.value(value, resolve(self._root, reference), path)
        kinds = schema.get("type")
        if kinds is not None and not _is_a(value, kinds):
            yield f"{path}: expected {_kinds(kinds)}, got {shown(value)}"
            return
        yield from _listed(value, schema, path)
        yield from _bounds(value, schema, path)
        for part in schema.get("allOf", ()):
            yield from self.value(value, part, path)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                yield from self._any(value, schema[keyword], path)
        if isinstance(value, dict):
            yield from self._members(value, schema, path)
        elif isinstance(value, list):
            yield from self._items(value, schema, path)

    def _any(self, value: object, branches: Sequence[object], path: str) -> Iterator[str]:
        near = [branch for branch in branches if self._fits(value, branch)]
        found = [list(self.value(value, branch, path)) for branch in near]
        if not all(found):
            return
        if len(found) == 1:
            yield from found[0]
        elif found:
            yield min(found, key=len)[0]
        else:
            wanted = " or ".join(dict.fromkeys(self._names(branch) for branch in branches))
            yield f"{path}: expected {wanted}, got {shown(value)}"

    def _fits(self, value: object, branch: object) -> bool:
        """Whether a value may be meant for a branch: of its type, and with its tags."""
        schema = self._target(branch)
        if not isinstance(schema, Mapping):
            return schema is not False
        if not _is_a(value, schema.get("type", kind_of(value))):
            return False
        if not isinstance(value, dict):
            return "enum" not in schema or value in schema["enum"] or "type" in schema
        tags = {
            name: member["enum"][0] if "enum" in member else member["const"]
            for name, member in schema.get("properties", {}).items()
            if isinstance(member, Mapping) and ("const" in member or len(_enum(member)) == 1)
        }
        return all(name not in value or value[name] == tag for name, tag in tags.items())

    def _target(self, schema: object) -> object:
        seen = 0
        while isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str) and seen < 16:
            schema, seen = resolve(self._root, schema["$ref"]), seen + 1
        return schema

    def _names(self, branch: object) -> str:
        schema = self._target(branch)
        if not isinstance(schema, Mapping):
            return "a value"
        return _one_of(_enum(schema)) if _enum(schema) else _kinds(schema.get("type", "a value"))

    def _members(self, value: dict[str, object], schema: Schema, path: str) -> Iterator[str]:
        known = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{path}.{name}: expected {self._names(known.get(name))}, got nothing"
        others = schema.get("additionalProperties", True)
        for name, member in value.items():
            if name in known:
                yield from self.value(member, known[name], f"{path}.{name}")
            elif others is False:
                yield f"{path}.{name}: {_unknown(name, known, value)}, got {shown(member)}"
            else:
                yield from self.value(member, others, f"{path}.{name}")

    def _items(self, value: list[object], schema: Schema, path: str) -> Iterator[str]:
        first = schema.get("prefixItems", ())
        for index, item in enumerate(value):
            expected = first[index] if index < len(first) else schema.get("items", True)
            yield from self.value(item, expected, f"{path}[{index}]")


def _unknown(name: str, known: Mapping[str, object], given: Mapping[str, object]) -> str:
    free = [other for other in known if other not in given]
    near = difflib.get_close_matches(name, free, n=3)
    if near:
        return f"expected no such name, perhaps {' or '.join(map(repr, near))}"
    return f"expected one of the names {', '.join(map(repr, known)) or '(none)'}"


def _is_a(value: object, kinds: object) -> bool:
    if isinstance(kinds, list):
        return any(_is_a(value, kind) for kind in kinds)
    kind = kind_of(value)
    if kinds == "number":
        return kind in ("integer", "number")
    if kinds == "integer" and isinstance(value, float):
        return value.is_integer()
    return kind == kinds


def _kinds(kinds: object) -> str:
    return " or ".join(map(str, kinds)) if isinstance(kinds, list) else str(kinds)


def _enum(schema: Schema) -> Sequence[object]:
    found = schema.get("enum", ())
    return found if isinstance(found, list | tuple) else ()


def _one_of(values: Sequence[object]) -> str:
    listed = ", ".join(msgspec.json.encode(value).decode() for value in values[:20])
    return listed if len(values) == 1 else f"one of {listed}"


def _listed(value: object, schema: Schema, path: str) -> Iterator[str]:
    allowed = [schema["const"]] if "const" in schema else _enum(schema)
    if ("const" in schema or "enum" in schema) and not any(_same(value, one) for one in allowed):
        yield f"{path}: expected {_one_of(allowed)}, got {shown(value)}"


def _same(one: object, other: object) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _bounds(value: object, schema: Schema, path: str) -> Iterator[str]:
    """Faults by the keywords that bound numbers, strings and arrays."""
    if isinstance(value, str):
        yield from _length(len(value), "Length", "characters", schema, path)
        pattern = schema.get("pattern")
        if isinstance(pattern, str) and re.search(pattern, value) is None:
            yield f"{path}: expected text that matches {pattern!r}, got {shown(value)}"
    elif isinstance(value, list):
        yield from _length(len(value), "Items", "items", schema, path)
    elif isinstance(value, dict):
        yield from _length(len(value), "Properties", "members", schema, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _magnitude(value, schema, path)


def _length(count: int, of: str, unit: str, schema: Schema, path: str) -> Iterator[str]:
    least, most = schema.get(f"min{of}", 0), schema.get(f"max{of}", float("inf"))
    if count < least:
        yield f"{path}: expected at least {least} {unit}, got {count}"
    if count > most:
        yield f"{path}: expected at most {most} {unit}, got {count}"


def _magnitude(value: float, schema: Schema, path: str) -> Iterator[str]:
    for keyword, (words, holds) in _MAGNITUDES.items():
        bound = schema.get(keyword)
        if isinstance(bound, int | float) and not holds(value, bound):
            yield f"{path}: expected a number {words} {bound}, got {value}"


def _is_multiple(value: float, of: float) -> bool:
    return of == 0 or value % of == 0


_MAGNITUDES: dict[str, tuple[str, Callable[[float, float], bool]]] = {
    "minimum": (">=", operator.ge),
    "maximum": ("<=", operator.le),
    "exclusiveMinimum": (">", operator.gt),
    "exclusiveMaximum": ("<", operator.lt),
    "multipleOf": ("that is a multiple of", _is_multiple),
}
