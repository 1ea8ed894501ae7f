"""What options may be. One that can't be used is refused where it is given, by name and value."""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import attrs

from trioloop import InvalidInputError, Tool

Check = Callable[[str, object], None]


def or_none(check: Check) -> Check:
    """What a check lets pass, or None."""

    def check_or_none(name: str, value: object) -> None:
        if value is not None:
            check(name, value)

    return check_or_none


def positive(name: str, value: object) -> None:
    """A number greater than 0."""
    if not (_is_number(value) and value > 0):
        _refuse(name, "a number greater than 0", value)


def from_0(name: str, value: object) -> None:
    """A finite number, 0 or more."""
    if not (_is_number(value) and 0 <= value < math.inf):
        _refuse(name, "a number, 0 or more", value)


def part_of_window(name: str, value: object) -> None:
    """A number from 0 to 1."""
    if not (_is_number(value) and 0 <= value <= 1):
        _refuse(name, "a part of the window, 0 to 1", value)


def whole(name: str, value: object, *, least: int) -> None:
    """A whole number, not too small."""
    if not (_is_number(value) and isinstance(value, int) and value >= least):
        _refuse(name, f"a whole number, {least} or more", value)


def text(name: str, value: object) -> None:
    """Text that says something."""
    if not isinstance(value, str) or not value.strip():
        _refuse(name, "text", value)


def function(name: str, value: object) -> None:
    """A function."""
    if not callable(value):
        _refuse(name, "a function", value)


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


def _is_number(value: object) -> TypeGuard[int | float]:
    """Whether it is one: True and False are none, and NaN is in no range that is asked for."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _refuse(name: str, what: str, value: object) -> None:
    raise InvalidInputError(f"{name} must be {what}, not {value!r}")
