"""Builders shared by the tests of schemas and decoders."""

from collections.abc import Callable
from typing import Any, Protocol

import pytest

from trioloop.schema import Signature, describe


class Given:
    """Stands for the type of the parameter that the runtime gives."""


class Describe(Protocol):
    """Describes a function, or one parameter of a type."""

    def __call__(self, function: Callable[..., object]) -> Signature:
        """The signature of a function."""
        ...


@pytest.fixture
def given_type() -> type:
    """The type of the parameter that is given, not declared."""
    return Given


@pytest.fixture
def signature() -> Describe:
    """Describes a function as a tool called `probe`."""
    return lambda function: describe(function, name="probe", given=Given)


@pytest.fixture
def parameter(signature: Describe) -> Callable[..., Signature]:
    """Describes a function with the one parameter `value`, of a type and perhaps with a default."""

    def of(kind: object, *default: Any) -> Signature:  # Any: a default may be of any sort
        def probe(value: object) -> None: ...

        probe.__annotations__["value"] = kind
        probe.__defaults__ = default or None
        return signature(probe)

    return of
