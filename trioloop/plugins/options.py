"""What options may be. One that can't be used is refused where it is given, by name and value."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from trioloop import InvalidInputError, Tool

Check = Callable[[str, object], None]


def positive(name: str, value: object) -> None:
    """A number greater than 0."""
    if not _is_number(value, above=0):
        _refuse(name, "a number greater than 0", value)


def positive_or_none(name: str, value: object) -> None:
    """A number greater than 0, or None."""
    if value is not None:
        positive(name, value)


def from_0(name: str, value: object) -> None:
    """A finite number, 0 or more."""
    if not _is_number(value, least=0) or value == math.inf:
        _refuse(name, "a number, 0 or more", value)


def from_0_or_none(name: str, value: object) -> None:
    """A finite number, 0 or more, or None."""
    if value is not None:
        from_0(name, value)


def part_of_window(name: str, value: object) -> None:
    """A number from 0 to 1."""
    if not _is_number(value, least=0, most=1):
        _refuse(name, "a part of the window, 0 to 1", value)


def whole(name: str, value: object, *, least: int) -> None:
    """A whole number, not too small."""
    if not isinstance(value, int) or not _is_number(value, least=least):
        _refuse(name, f"a whole number, {least} or more", value)


def text(name: str, value: object) -> None:
    """Text that says something."""
    if not isinstance(value, str) or not value.strip():
        _refuse(name, "text", value)


def text_or_none(name: str, value: object) -> None:
    """Text that says something, or None."""
    if value is not None:
        text(name, value)


def function(name: str, value: object) -> None:
    """A function."""
    if not callable(value):
        _refuse(name, "a function", value)


def function_or_none(name: str, value: object) -> None:
    """A function, or None."""
    if value is not None:
        function(name, value)


def instance(name: str, value: object, *, of: type) -> None:
    """Something of a class of the plugin's own."""
    if not isinstance(value, of):
        _refuse(name, f"made with {of.__name__}(...)", value)


def tools(name: str, value: object) -> None:
    """A list of tools."""
    if not isinstance(value, Sequence) or not all(isinstance(one, Tool) for one in value):
        _refuse(name, "a list of tools, as @tool makes them", value)


def field(check: Check) -> Callable[[Any, "attrs.Attribute[Any]", Any], None]:
    """A check as the validator of a field of a class."""

    def validate(_: object, field: "attrs.Attribute[Any]", value: object) -> None:
        check(field.name, value)

    return validate


def _is_number(
    value: object, *, least: float = -math.inf, above: float = -math.inf, most: float = math.inf
) -> bool:
    """Whether it is a number within bounds; True and False are none, and neither is NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return least <= value <= most and (value > above or above == -math.inf)


def _refuse(name: str, what: str, value: object) -> None:
    raise InvalidInputError(f"{name} must be {what}, not {value!r}")
