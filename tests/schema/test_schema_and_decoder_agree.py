"""What a schema calls valid is decoded, and what is decoded is valid by the schema.

jsonschema's validator is the judge, so that our own checker is judged too.
"""

import json
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import jsonschema
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec import Meta, Struct

from trioloop.errors import ArgumentsError
from trioloop.schema import Arguments, Signature, describe


@dataclass
class Point:
    x: int
    label: str | None = None
    inner: list["Point"] = field(default_factory=list)


class Options(TypedDict, total=False):
    depth: int
    ratio: float


class Pair(NamedTuple):
    key: str
    flags: tuple[bool, ...] = ()


class Circle(Struct, tag=True):
    radius: float


class Square(Struct, tag=True):
    side: Annotated[int, Meta(ge=0)]


SCALARS: list[Any] = [
    int,
    float,
    str,
    bool,
    int | str | None,
    Literal["a", "b", "c"],
    Literal[1, 2],
    Annotated[int, Meta(ge=-2, lt=7)],
    Annotated[int, Meta(multiple_of=3)],
    Annotated[str, Meta(min_length=1, max_length=3)],
    Annotated[str, Meta(pattern="^a+$")],
    Point,
    Point | None,
    Options,
    Pair,
    Circle | Square,
    Circle | Square | str | None,
]
kinds = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: st.one_of(
        inner.map(lambda kind: list[kind]),  # type: ignore[valid-type]
        inner.map(lambda kind: dict[str, kind]),  # type: ignore[valid-type]
        st.tuples(inner, inner).map(lambda two: tuple[two]),  # type: ignore[valid-type]
        inner.map(lambda kind: Annotated[list[kind], Meta(min_length=1, max_length=2)]),  # type: ignore[valid-type]
    ),
    max_leaves=3,
)
names = st.sampled_from(
    ["x", "label", "inner", "depth", "ratio", "type", "radius", "side", "key", "value", "other"]
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-9, 9),
    st.sampled_from([0.5, 2.0, -1e3]),
    st.sampled_from(["a", "aa", "b", "", "Circle", "Square", "long text"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


def described(kind: object) -> Signature:
    """The signature of a tool with a required and an optional parameter of a type."""

    def probe(value: object, other: object = None) -> None: ...

    probe.__annotations__.update(value=kind, other=kind)
    return describe(probe, name="probe", given=Arguments)


def is_decoded(arguments: Arguments, raw: str) -> bool:
    """Whether a decoder takes a text; where not, it must tell why."""
    try:
        arguments.decode(raw)
    except ArgumentsError as error:
        told = error.faults
    else:
        return True
    assert told
    assert all(fault.startswith("$") and "expected" in fault for fault in told)
    return False


Schema = dict[str, Any]
Values = st.SearchStrategy[Any]


def examples(schema: Schema, root: Schema, depth: int = 0) -> Values:
    """Values that are mostly valid by a schema."""
    if "$ref" in schema:
        target = root["$defs"][schema["$ref"].rpartition("/")[2]]
        return st.deferred(lambda: examples(target, root, depth + 1))
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.one_of([examples(part, root, depth) for part in schema["anyOf"]])
    if schema["type"] in LEAVES:
        return LEAVES[schema["type"]]
    return (arrays if schema["type"] == "array" else objects)(schema, root, depth + 1)


LEAVES: dict[str, Values] = {
    "integer": st.integers(-9, 9) | st.just(2.0),
    "number": st.integers(-9, 9) | st.just(0.5),
    "string": st.sampled_from(["a", "aa", "", "b"]),
    "boolean": st.booleans(),
    "null": st.none(),
}


def arrays(schema: Schema, root: Schema, depth: int) -> Values:
    """Arrays by a schema; empty ones where it has become deep."""
    if depth > 4:
        return st.just([])
    if "prefixItems" in schema:
        parts = [examples(part, root, depth) for part in schema["prefixItems"]]
        return st.tuples(*parts).map(list)
    return st.lists(examples(schema["items"], root, depth), max_size=3)


def objects(schema: Schema, root: Schema, depth: int) -> Values:
    """Objects by a schema."""
    if "properties" not in schema:
        members = examples(schema["additionalProperties"], root, depth)
        return st.dictionaries(names, members, max_size=2)
    known = {name: examples(part, root, depth) for name, part in schema["properties"].items()}
    needed = {name: known[name] for name in schema["required"]}
    free = {name: member for name, member in known.items() if name not in needed}
    return st.fixed_dictionaries(needed, optional=free)


def agree(signature: Signature, given_: object) -> None:
    """Both judges say the same."""
    valid = jsonschema.Draft202012Validator(signature.schema).is_valid(given_)
    event("valid" if valid else "invalid")
    assert is_decoded(signature.arguments, json.dumps(given_)) is valid
    by_schema = Arguments.of_schema(signature.schema)
    assert is_decoded(by_schema, json.dumps(given_)) is valid


@settings(deadline=None)
@given(kinds, st.data())
def test_likely_arguments_are_judged_alike(kind: object, data: st.DataObject) -> None:
    signature = described(kind)
    agree(signature, data.draw(examples(signature.schema, signature.schema)))


@settings(deadline=None)
@given(kinds, values, st.booleans())
def test_any_arguments_are_judged_alike(kind: object, value: object, both: bool) -> None:
    agree(described(kind), {"value": value, "other": value} if both else {"value": value})


@settings(deadline=None)
@given(kinds)
def test_every_schema_is_a_schema(kind: object) -> None:
    jsonschema.Draft202012Validator.check_schema(described(kind).schema)


@settings(deadline=None)
@given(st.text(max_size=60) | st.text('{}[]":,0a\\u \n', max_size=40))
def test_no_text_raises_anything_but_arguments_error(raw: str) -> None:
    def probe(a: int = 0) -> None: ...

    is_decoded(describe(probe, name="probe", given=Arguments).arguments, raw)
