"""Where descriptions come from: docstrings in several styles, and `Annotated`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from msgspec import Meta

from trioloop.schema import Signature

Describe = Callable[..., Signature]

GOOGLE = """Current temperature of a city.

    Asked of the nearest station.

    Args:
        city: its name
            in English.
        unit (str): degrees.

    Returns:
        Degrees.
    """
NUMPY = """Current temperature of a city.

    Asked of the nearest station.

    Parameters
    ----------
    city : str
        its name
        in English.
    unit : str, optional
        degrees.

    Returns
    -------
    float
        Degrees.
    """
REST = """Current temperature of a city.

    Asked of the nearest station.

    :param city: its name in English.
    :param unit: degrees.
    :returns: degrees.
    """


def told(described: Signature) -> dict[str, Any]:
    """The descriptions of the parameters."""
    return {
        name: schema.get("description") for name, schema in described.schema["properties"].items()
    }


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, REST])
def test_docstring_describes_tool_and_parameters(signature: Describe, docstring: str) -> None:
    def probe(city: str, unit: str = "C") -> None: ...

    probe.__doc__ = docstring
    described = signature(probe)
    assert (
        described.description == "Current temperature of a city.\n\nAsked of the nearest station."
    )
    assert told(described) == {"city": "its name in English.", "unit": "degrees."}


@pytest.mark.parametrize(
    "docstring", ["Only words: no sections.", "One.\n\n- a list\n- of things", "Args\n====\nodd"]
)
def test_plain_docstring_is_the_description(signature: Describe, docstring: str) -> None:
    def probe(city: str) -> None: ...

    probe.__doc__ = docstring
    assert signature(probe).description == docstring


def test_no_docstring_is_no_description(signature: Describe) -> None:
    def probe(city: str) -> None: ...

    assert signature(probe).description == ""
    assert told(signature(probe)) == {"city": None}


def test_annotated_describes_and_outranks_the_docstring(signature: Describe) -> None:
    def probe(
        a: Annotated[int, Meta(description="by meta", ge=1)],
        b: Annotated[str, "by text"],
        c: Annotated[int, "one", Meta(le=5)],
    ) -> None:
        """Do it.

        Args:
            a: by docstring.
        """

    described = signature(probe)
    assert told(described) == {"a": "by meta", "b": "by text", "c": "one"}
    assert described.schema["properties"]["a"]["minimum"] == 1
    assert described.schema["properties"]["c"]["maximum"] == 5


def test_docstring_of_a_data_class_describes_its_fields(signature: Describe) -> None:
    @dataclass
    class Filter:
        """What to keep.

        Attributes:
            field: the column.
        """

        field: str

    def probe(keep: Filter) -> None: ...

    probe.__annotations__["keep"] = Filter
    schema = signature(probe).schema["properties"]["keep"]
    assert schema["description"] == "What to keep."
    assert schema["properties"]["field"]["description"] == "the column."
