"""What types become in a schema, and what their JSON values are decoded to."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NewType, Required, TypedDict, Union
from uuid import UUID

import attrs
import pytest
from msgspec import Meta, Struct

from trioloop.schema import Signature

Probe = Callable[..., Signature]


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Unit(StrEnum):
    C = "C"


@dataclass
class Point:
    x: int
    y: int = 0
    tags: list[str] = field(default_factory=list)


@attrs.frozen
class Span:
    first: int
    last: int = 9


class Options(TypedDict, total=False):
    depth: Required[int]
    name: str


class Pair(NamedTuple):
    key: str
    weight: float = 1.0


class Circle(Struct, tag=True):
    radius: float


class Square(Struct, tag=True):
    side: float


@dataclass
class Tree:
    value: int
    children: list["Tree"] = field(default_factory=list)


UserName = NewType("UserName", str)

CASES: list[tuple[Any, Any, Any, dict[str, Any]]] = [
    (int, 3, 3, {"type": "integer"}),
    (float, 3, 3.0, {"type": "number"}),
    (str, "a", "a", {"type": "string"}),
    (bool, True, True, {"type": "boolean"}),
    (Any, {"a": [1]}, {"a": [1]}, {}),
    (object, [1], [1], {}),
    (int | None, None, None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    (int | str, "7", "7", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    (Literal["C", "F"], "F", "F", {"enum": ["C", "F"]}),
    (Color, "blue", Color.BLUE, {"enum": ["blue", "red"]}),
    (Level, 2, Level.HIGH, {"enum": [1, 2]}),
    (Unit, "C", Unit.C, {"enum": ["C"]}),
    (UserName, "ann", "ann", {"type": "string"}),
    (Path, "a/b", Path("a/b"), {"type": "string", "format": "path"}),
    (
        datetime,
        "2024-05-06T07:08:09",
        datetime(2024, 5, 6, 7, 8, 9),
        {"type": "string", "format": "date-time"},
    ),
    (date, "2024-05-06", date(2024, 5, 6), {"type": "string", "format": "date"}),
    (timedelta, "PT5S", timedelta(seconds=5), {"type": "string", "format": "duration"}),
    (Decimal, "1.50", Decimal("1.50"), {"type": "string", "format": "decimal"}),
    (
        UUID,
        "12345678-1234-5678-1234-567812345678",
        UUID("12345678-1234-5678-1234-567812345678"),
        {"type": "string", "format": "uuid"},
    ),
    (bytes, "aGk=", b"hi", {"type": "string", "contentEncoding": "base64"}),
    (list[int], [1, 2], [1, 2], {"type": "array", "items": {"type": "integer"}}),
    (set[str], ["a"], {"a"}, {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
    (tuple[int, ...], [1, 2], (1, 2), {"type": "array", "items": {"type": "integer"}}),
    (
        dict[str, float],
        {"a": 1},
        {"a": 1.0},
        {"type": "object", "additionalProperties": {"type": "number"}},
    ),
    (
        dict[int, str],  # a JSON object has text for keys
        {"7": "a"},
        {7: "a"},
        {"type": "object", "additionalProperties": {"type": "string"}},
    ),
    (
        Annotated[int, Meta(ge=1, le=9)],
        5,
        5,
        {"type": "integer", "minimum": 1, "maximum": 9},
    ),
    (Annotated[str, Meta(pattern="^a")], "ab", "ab", {"type": "string", "pattern": "^a"}),
    (
        Point,
        {"x": 1, "tags": ["t"]},
        Point(1, 0, ["t"]),
        {
            "type": "object",
            "properties": {
                "x": {"type": "integer"},
                "y": {"type": "integer", "default": 0},
                "tags": {"type": "array", "items": {"type": "string"}, "default": []},
            },
            "required": ["x"],
            "additionalProperties": False,
        },
    ),
    (
        Span,
        {"first": 1},
        Span(1, 9),
        {
            "type": "object",
            "properties": {"first": {"type": "integer"}, "last": {"type": "integer", "default": 9}},
            "required": ["first"],
            "additionalProperties": False,
        },
    ),
    (
        Options,
        {"depth": 1},
        {"depth": 1},
        {
            "type": "object",
            "properties": {"depth": {"type": "integer"}, "name": {"type": "string"}},
            "required": ["depth"],
            "additionalProperties": False,
        },
    ),
    (
        Pair,
        ["k"],
        Pair("k", 1.0),
        {
            "type": "array",
            "prefixItems": [{"type": "string"}, {"type": "number", "default": 1.0}],
            "minItems": 1,
            "maxItems": 2,
        },
    ),
    (
        Circle | Square,
        {"type": "Square", "side": 2},
        Square(2.0),
        {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {"type": {"enum": ["Circle"]}, "radius": {"type": "number"}},
                    "required": ["type", "radius"],
                    "additionalProperties": False,
                },
                {
                    "type": "object",
                    "properties": {"type": {"enum": ["Square"]}, "side": {"type": "number"}},
                    "required": ["type", "side"],
                    "additionalProperties": False,
                },
            ]
        },
    ),
]


@pytest.mark.parametrize(("kind", "given", "decoded", "schema"), CASES, ids=str)
def test_type_is_described_and_decoded(
    parameter: Probe, kind: object, given: object, decoded: object, schema: dict[str, Any]
) -> None:
    probe = parameter(kind)
    found = probe.arguments.decode(json.dumps({"value": given}))
    assert found == {"value": decoded}
    assert type(found["value"]) is type(decoded)
    assert probe.schema == {
        "type": "object",
        "properties": {"value": schema},
        "required": ["value"],
        "additionalProperties": False,
    }


def test_recursive_type_keeps_its_definition(parameter: Probe) -> None:
    probe = parameter(Tree)
    assert probe.schema["properties"]["value"] == {"$ref": "#/$defs/Tree"}
    assert probe.schema["$defs"]["Tree"]["properties"]["children"]["items"] == {
        "$ref": "#/$defs/Tree"
    }
    raw = '{"value": {"value": 1, "children": [{"value": 2}]}}'
    assert probe.arguments.decode(raw) == {"value": Tree(1, [Tree(2)])}


def test_definitions_shared_too_often_stay_shared(parameter: Probe) -> None:
    kind: Any = Point
    for level in range(12):
        kind = attrs.make_class(
            f"Level{level}", {"a": attrs.field(type=kind), "b": attrs.field(type=kind)}
        )
    schema = parameter(kind).schema
    assert len(json.dumps(schema)) < 10_000
    assert len(schema["$defs"]) == 13


def test_default_is_declared_and_filled_in(parameter: Probe) -> None:
    probe = parameter(Path, Path("here"))
    assert probe.schema["properties"]["value"]["default"] == "here"
    assert probe.schema["required"] == []
    assert probe.arguments.decode("") == {"value": Path("here")}


def test_default_without_a_json_form_is_not_declared(parameter: Probe) -> None:
    nothing = object()
    probe = parameter(str, nothing)
    assert probe.schema["properties"]["value"] == {"type": "string"}
    assert probe.arguments.decode("{}")["value"] is nothing


def test_default_none_makes_null_valid(parameter: Probe) -> None:
    probe = parameter(int, None)
    assert probe.arguments.decode('{"value": null}') == {"value": None}
    assert probe.arguments.decode('{"value": 3}') == {"value": 3}


def test_whole_float_is_an_integer(parameter: Probe) -> None:
    assert parameter(list[int]).arguments.decode('{"value": [2.0, 1e2]}') == {"value": [2, 100]}


def test_old_style_union_is_described(parameter: Probe) -> None:
    probe = parameter(Union[int, None])  # noqa: UP007 - it is what older code says
    assert probe.arguments.decode('{"value": null}') == {"value": None}


def test_keyword_only_parameters_are_declared(signature: Callable[..., Signature]) -> None:
    def probe(a: int, *, b: str = "x") -> None: ...

    assert signature(probe).arguments.decode('{"a": 1}') == {"a": 1, "b": "x"}


def test_unannotated_parameter_takes_any_value(signature: Callable[..., Signature]) -> None:
    def probe(a): ...  # type: ignore[no-untyped-def]

    described = signature(probe)
    assert described.schema["properties"] == {"a": {}}
    assert described.arguments.decode('{"a": [null]}') == {"a": [None]}


def test_function_without_parameters(signature: Callable[..., Signature]) -> None:
    def probe() -> None: ...

    described = signature(probe)
    assert described.schema["properties"] == {}
    assert described.arguments.decode("") == {}


def test_each_decoding_gives_values_of_its_own(parameter: Probe) -> None:
    arguments = parameter(dict[str, Any]).arguments
    one, other = (arguments.decode('{"value": {"a": []}}') for _ in range(2))
    one["value"]["a"].append(1)  # type: ignore[index]
    assert other == {"value": {"a": []}}


def test_attrs_validator_is_a_fault(parameter: Probe) -> None:
    ranged = attrs.make_class(
        "Ranged", {"n": attrs.field(type=int, validator=attrs.validators.ge(3))}
    )
    arguments = parameter(ranged).arguments
    assert arguments.decode('{"value": {"n": 3}}')
    with pytest.raises(ValueError, match="must be >= 3"):
        arguments.decode('{"value": {"n": 2}}')
