"""Parameters that are pydantic models, which the application brings."""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Annotated

import pytest
from pydantic import BaseModel, ConfigDict, Field

from trioloop.errors import ArgumentsError
from trioloop.schema import Signature


class Line(BaseModel):
    sku: str
    count: int = Field(gt=0, description="how many")


class Order(BaseModel):
    """An order."""

    title: str
    lines: list[Line]


class Node(BaseModel):
    value: int
    children: list["Node"] = []


class Even(BaseModel):
    n: Annotated[int, Field(multiple_of=2)]
    model_config = ConfigDict(extra="allow")


def test_model_is_declared_in_one_piece(parameter: Callable[..., Signature]) -> None:
    schema = parameter(Order).schema
    assert "$defs" not in schema
    order = schema["properties"]["value"]
    assert order["description"] == "An order."
    assert order["additionalProperties"] is False
    line = order["properties"]["lines"]["items"]
    assert line["properties"]["count"]["description"] == "how many"
    assert line["additionalProperties"] is False
    assert '"title": "' not in json.dumps(schema)


@pytest.mark.parametrize("kind", [Order, Order | None, list[Order]])
def test_value_is_an_instance(parameter: Callable[..., Signature], kind: object) -> None:
    value = {"title": "t", "lines": [{"sku": "a", "count": 2}]}
    raw = json.dumps({"value": [value] if kind == list[Order] else value})
    order = Order(title="t", lines=[Line(sku="a", count=2)])
    expected = [order] if kind == list[Order] else order
    assert parameter(kind).arguments.decode(raw) == {"value": expected}


def test_recursive_model_keeps_its_definition(parameter: Callable[..., Signature]) -> None:
    described = parameter(Node)
    (definition,) = described.schema["$defs"]
    assert described.schema["properties"]["value"] == {"$ref": f"#/$defs/{definition}"}
    raw = '{"value": {"value": 1, "children": [{"value": 2}]}}'
    assert described.arguments.decode(raw) == {"value": Node(value=1, children=[Node(value=2)])}


def test_every_fault_of_a_model_is_told(parameter: Callable[..., Signature]) -> None:
    with pytest.raises(ArgumentsError) as raised:
        parameter(Order).arguments.decode(
            '{"value": {"lines": [{"sku": "a", "count": 0}, {"sku": 1, "count": 1, "x": 2}]}}'
        )
    paths = [fault.partition(":")[0] for fault in raised.value.faults]
    assert paths == [
        "$.value.title",
        "$.value.lines[0].count",
        "$.value.lines[1].sku",
        "$.value.lines[1].x",
    ]


def test_fault_that_only_the_model_knows_is_told(parameter: Callable[..., Signature]) -> None:
    class Named(BaseModel):
        name: str

        def model_post_init(self, context: object) -> None:
            if self.name == "bad":
                raise ValueError("no such name")

    with pytest.raises(ArgumentsError, match=r"^\$\.value: expected.*no such name"):
        parameter(Named).arguments.decode('{"value": {"name": "bad"}}')


def test_model_that_takes_more_names_may_get_them(parameter: Callable[..., Signature]) -> None:
    decoded = parameter(Even).arguments.decode('{"value": {"n": 2, "more": 1}}')
    assert decoded == {"value": Even(n=2, more=1)}  # type: ignore[call-arg]


def test_pydantic_is_not_imported_by_us() -> None:
    program = "import trioloop.tools, sys; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
