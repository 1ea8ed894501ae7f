"""TP-32: each fault of a call's arguments is told, with path, expected and got."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

import pytest
from msgspec import Meta

from trioloop.errors import ArgumentsError
from trioloop.schema import Arguments, Signature


@dataclass
class Line:
    sku: str
    count: Annotated[int, Meta(gt=0)] = 1


@pytest.fixture
def faults(signature: Callable[..., Signature]) -> Callable[[str], list[str]]:
    """The faults that a sample tool finds in a raw text."""

    def order(
        city: str,
        lines: list[Line],
        *,
        unit: Literal["C", "F"] = "C",
        when: datetime | None = None,
        width: Annotated[int, Meta(ge=1)] | None = None,
        names: dict[str, int] = {},  # noqa: B006 - never changed
    ) -> None: ...

    arguments = signature(order).arguments

    def found(raw: str) -> list[str]:
        with pytest.raises(ArgumentsError) as raised:
            arguments.decode(raw)
        return list(raised.value.faults)

    return found


def test_every_fault_is_told(faults: Callable[[str], list[str]]) -> None:
    raw = '{"citi": "x", "lines": [{"sku": 1, "cuont": 2}, {"count": 0}], "unit": "K", "width": 0}'
    assert faults(raw) == [
        "$.city: expected string, got nothing",
        "$.citi: expected no such name, perhaps 'city', got string \"x\"",
        "$.lines[0].sku: expected string, got integer 1",
        "$.lines[0].cuont: expected no such name, perhaps 'count', got integer 2",
        "$.lines[1].sku: expected string, got nothing",
        "$.lines[1].count: expected a number > 0, got 0",
        '$.unit: expected one of "C", "F", got string "K"',
        "$.width: expected a number >= 1, got 0",
    ]


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        ("", "$.city: expected string, got nothing"),
        ('{"city": "x"}', "$.lines: expected array, got nothing"),
        ('{"city": null, "lines": []}', "$.city: expected string, got null"),
        ('{"city": "x", "lines": {}}', "$.lines: expected array, got object {}"),
        ('{"city": "x", "lines": [], "x": 1}', "$.x: expected one of the names 'city', 'lines'"),
        (
            '{"city": "x", "lines": [], "width": "wide"}',
            '$.width: expected integer or null, got string "wide"',
        ),
        (
            '{"city": "x", "lines": [], "width": 1.5}',
            "$.width: expected integer or null, got number 1.5",
        ),
        ('{"city": "x", "lines": [], "names": {"a": "b"}}', "$.names.a: expected integer"),
        (
            '{"city": "x", "lines": [], "when": "tomorrow"}',
            '$.when: expected a fitting value: Invalid RFC3339 encoded datetime, got string "tom',
        ),
    ],
)
def test_fault_has_path_expected_and_got(
    faults: Callable[[str], list[str]], raw: str, fault: str
) -> None:
    assert any(line.startswith(fault) for line in faults(raw)), faults(raw)


def test_error_of_a_types_own_code_is_a_fault(parameter: Callable[..., Signature]) -> None:
    class Odd:
        a: int

        def __init__(self, a: int) -> None:
            self.a = a

    def fail(self: object) -> None:
        raise KeyError("no such sku")

    odd: type = dataclass(type("Odd", (), {"__annotations__": {"a": int}, "__post_init__": fail}))
    with pytest.raises(ArgumentsError, match="no such sku"):
        parameter(odd).arguments.decode('{"value": {"a": 1}}')


def test_a_given_schema_is_checked_too() -> None:
    arguments = Arguments.of_schema(
        {
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 2, "maxLength": 3, "pattern": "^a"},
                "sort": {"$ref": "#/$defs/sort"},
                "many": {"type": ["array", "null"], "items": {"const": 1}, "maxItems": 1},
                "step": {"type": "number", "multipleOf": 2, "exclusiveMaximum": 10},
                "both": {"allOf": [{"required": ["a"]}, {"minProperties": 2}]},
                "free": {},
                "never": False,
            },
            "required": ["query"],
            "additionalProperties": False,
            "$defs": {"sort": {"oneOf": [{"enum": ["up"]}, {"type": "integer"}]}},
        }
    )
    good = '{"query": "ab", "sort": 3, "many": [1], "step": 4, "both": {"a": 1, "b": 2}, "free": 1}'
    assert arguments.decode(good)["sort"] == 3
    bad = (
        '{"query": "x", "sort": "down", "many": [2, 1], "step": 11, "both": {}, "never": 1, "q": 1}'
    )
    with pytest.raises(ArgumentsError) as raised:
        arguments.decode(bad)
    assert list(raised.value.faults) == [
        "$.query: expected at least 2 characters, got 1",
        "$.query: expected text that matches '^a', got string \"x\"",
        '$.sort: expected "up" or integer, got string "down"',
        "$.many: expected at most 1 items, got 2",
        "$.many[0]: expected 1, got integer 2",
        "$.step: expected a number < 10, got 11",
        "$.step: expected a number that is a multiple of 2, got 11",
        "$.both.a: expected a value, got nothing",
        "$.both: expected at least 2 members, got 0",
        "$.never: expected nothing, got integer 1",
        "$.q: expected one of the names 'query', 'sort', 'many', 'step', 'both', 'free', 'never', "
        "got integer 1",
    ]
