"""Functions of modules whose annotations are text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import pytest
from msgspec import Meta

from trioloop.errors import ToolSchemaError
from trioloop.schema import Signature, describe

if TYPE_CHECKING:
    from fractions import Fraction

    from tests.schema.conftest import Given  # as an application imports ToolContext


@dataclass
class Point:
    x: int


def test_text_annotations_are_evaluated(signature: Callable[..., Signature]) -> None:
    def probe(
        at: Point, many: list[Point], unit: Literal["C"] = "C", n: Annotated[int, Meta(ge=1)] = 1
    ) -> NoSuchType: ...  # type: ignore[name-defined] # noqa: F821 - never looked at

    decoded = signature(probe).arguments.decode('{"at": {"x": 1}, "many": [{"x": 2}]}')
    assert decoded == {"at": Point(1), "many": [Point(2)], "unit": "C", "n": 1}


def test_given_parameter_is_known_even_if_imported_for_type_checkers(given_type: type) -> None:
    def probe(a: int, context: Given) -> None: ...

    described = describe(probe, name="probe", given=given_type)
    assert described.given == "context"
    assert list(described.schema["properties"]) == ["a"]


def test_type_of_an_enclosing_function_is_found_where_the_body_uses_it(
    signature: Callable[..., Signature],
) -> None:
    @dataclass
    class Local:
        n: int

    def probe(value: Local) -> object:
        return Local

    assert signature(probe).arguments.decode('{"value": {"n": 1}}') == {"value": Local(1)}


def test_type_that_does_not_exist_at_run_time_is_named(
    signature: Callable[..., Signature],
) -> None:
    def probe(ratio: Fraction) -> None: ...

    with pytest.raises(ToolSchemaError, match=r"'Fraction'.*'ratio'.*'probe'.*TYPE_CHECKING"):
        signature(probe)
