"""Makes the JSON Schema document that a model is shown: plain, closed, without references.

Models follow a schema best where it stands in one piece: definitions are put where they are used,
unless they are recursive or used so often that the document would explode; objects are closed.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from trioloop.schema.docstring import described

Document: TypeAlias = dict[str, Any]  # Any: a JSON Schema document is free JSON

_USES_MAX = 200  # beyond so many inlined uses, shared definitions stay shared
_PREFIX = "#/$defs/"


def object_schema(
    properties: Mapping[str, Document], required: list[str], definitions: Mapping[str, Document]
) -> Document:
    """The document of an object with some properties, whose `$ref`s point into `definitions`."""
    root: Document = {
        "type": "object",
        "properties": dict(properties),
        "required": required,
        "additionalProperties": False,
    }
    tidy = {name: _tidied(schema) for name, schema in definitions.items()}
    kept = _recursive(tidy)
    if _uses(root, tidy, kept) > _USES_MAX:
        kept = set(tidy)
    document = _inlined({**root, "properties": _each(root["properties"], _tidied)}, tidy, kept)
    needed = _reachable(document, tidy) & kept
    if needed:
        document["$defs"] = {
            name: _inlined(tidy[name], tidy, kept) for name in tidy if name in needed
        }
    return document


def is_closed_inside(document: Document) -> bool:
    """Whether something below the top level refuses unknown names."""
    below = [*document["properties"].values(), *document.get("$defs", {}).values()]
    return any(node.get("additionalProperties") is False for part in below for node in _nodes(part))


_SCHEMAS = ("properties", "$defs", "patternProperties", "dependentSchemas")  # name -> schema
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "not", "contains")


def _mapped(schema: Document, change: Callable[[Document], Document]) -> Document:
    """A schema with its sub-schemas changed; data in it, such as defaults, is left alone."""
    changed = dict(schema)
    for key, value in schema.items():
        if key in _SCHEMAS and isinstance(value, Mapping):
            changed[key] = _each(value, change)
        elif key in _LISTS and isinstance(value, list | tuple):
            changed[key] = [change(part) if isinstance(part, dict) else part for part in value]
        elif key in _SINGLE and isinstance(value, dict):
            changed[key] = change(value)
    return changed


def _each(
    schemas: Mapping[str, Any],  # Any: a sub-schema may be True or False
    change: Callable[[Document], Document],
) -> Document:
    return {
        name: change(part) if isinstance(part, dict) else part for name, part in schemas.items()
    }


def _children(schema: Document) -> Iterator[Document]:
    found: list[Document] = []

    def note(part: Document) -> Document:
        found.append(part)
        return part

    _mapped(schema, note)
    yield from found


def _nodes(schema: object) -> Iterator[Document]:
    if isinstance(schema, dict):
        yield schema
        for part in _children(schema):
            yield from _nodes(part)


def _tidied(schema: Document) -> Document:
    """Closed objects, descriptions of fields from their class's docstring, no titles."""
    tidy = _mapped(schema, _tidied)
    tidy.pop("title", None)
    tidy.pop("discriminator", None)  # its mapping names definitions, and the tags say it all
    if "properties" in tidy:
        tidy.setdefault("additionalProperties", False)
        _describe_fields(tidy)
    return tidy


def _describe_fields(schema: Document) -> None:
    if "description" not in schema:
        return
    told = described(schema["description"])
    schema["description"] = told.summary
    for name, field in schema["properties"].items():
        if name in told.parameters and isinstance(field, dict):
            field.setdefault("description", told.parameters[name])


def _references(schema: Document) -> Iterator[str]:
    for node in _nodes(schema):
        reference = node.get("$ref")
        if isinstance(reference, str) and reference.startswith(_PREFIX):
            yield reference[len(_PREFIX) :]


def _reachable(schema: Document, definitions: Mapping[str, Document]) -> set[str]:
    found: set[str] = set()
    waiting = [name for name in _references(schema) if name in definitions]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(other for other in _references(definitions[name]))
    return found & set(definitions)


def _recursive(definitions: Mapping[str, Document]) -> set[str]:
    return {name for name, schema in definitions.items() if name in _reachable(schema, definitions)}


def _uses(root: Document, definitions: Mapping[str, Document], kept: set[str]) -> int:
    """How many definitions would be put into the document, each counted as often as it is used."""
    known: dict[str, int] = {}

    def inside(schema: Document) -> int:
        return sum(1 + of(name) for name in _references(schema) if name not in kept)

    def of(name: str) -> int:
        if name not in known:
            known[name] = inside(definitions[name]) if name in definitions else 0
        return known[name]

    return inside(root)


def _inlined(schema: Document, definitions: Mapping[str, Document], kept: set[str]) -> Document:
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith(_PREFIX):
        name = reference[len(_PREFIX) :]
        if name in definitions and name not in kept:
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            return {**_inlined(definitions[name], definitions, kept), **beside}
    return _mapped(schema, lambda part: _inlined(part, definitions, kept))
