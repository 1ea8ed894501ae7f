"""Signatures that can't be declared to a model are refused where the tool is made, by name."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

import attrs
import pytest

from trioloop.errors import ToolSchemaError
from trioloop.schema import Signature


@dataclass
class One:
    a: int


@attrs.define
class Other:
    b: int


class Mixed(Enum):
    A = 1
    B = "b"


class Handle:
    def __init__(self, number: int) -> None:
        self.number = number


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        (One | Other, "msgspec.Struct classes with tag=True"),
        (datetime | str, "Leave one of them"),
        (list[int] | set[int], "Leave one of them"),
        (Mixed, "all whole numbers"),
        (Handle, "Use types with a JSON form"),
        (Iterable[int], "Use types with a JSON form"),
        (Callable[[], None], "Use types with a JSON form"),
        (complex, "Use types with a JSON form"),
    ],
)
def test_type_without_a_schema_names_the_parameter(
    parameter: Callable[..., Signature], kind: Any, advice: str
) -> None:
    with pytest.raises(ToolSchemaError, match=r"parameter 'value' of the tool 'probe'") as raised:
        parameter(kind)
    assert advice in str(raised.value)
    assert "schema_hook" not in str(raised.value)


def test_parameters_without_a_name_are_refused(signature: Callable[..., Signature]) -> None:
    def positional(a: int, /) -> None: ...

    def starred(*many: int) -> None: ...

    def keywords(**named: int) -> None: ...

    for function in (positional, starred, keywords):
        with pytest.raises(ToolSchemaError, match="can't be given by name"):
            signature(function)


def test_method_without_its_object_is_refused(signature: Callable[..., Signature]) -> None:
    class Service:
        def search(self, query: str) -> None: ...

    with pytest.raises(ToolSchemaError, match="bound method"):
        signature(Service.search)
    assert list(signature(Service().search).schema["properties"]) == ["query"]


def test_function_without_a_signature_is_refused(signature: Callable[..., Signature]) -> None:
    with pytest.raises(ToolSchemaError, match="from_schema"):
        signature(dict)
