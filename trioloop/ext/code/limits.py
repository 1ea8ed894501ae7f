"""What a program may use up."""

from typing import Any

import attrs

from trioloop.errors import InvalidInputError


def _positive(_: object, field: "attrs.Attribute[Any]", value: float) -> None:
    if not value > 0:
        raise InvalidInputError(f"the limit {field.name} must be greater than 0, not {value!r}")


@attrs.frozen(kw_only=True)
class ProgramLimits:
    """The limits of one program.

    Attributes:
        run_s: seconds of its own work; waiting for calls doesn't count.
        memory_bytes_max: size of its objects.
        recursion_max: how deep its functions may call each other.
        calls_max: how many calls of tools it may make.
        printed_bytes_max: how much of what it prints is kept, head and tail.

    Raises:
        InvalidInputError: a value isn't greater than 0.
    """

    run_s: float = attrs.field(default=30.0, converter=float, validator=_positive)
    memory_bytes_max: int = attrs.field(default=256 * 1024 * 1024, validator=_positive)
    recursion_max: int = attrs.field(default=1_000, validator=_positive)
    calls_max: int = attrs.field(default=1_000, validator=_positive)
    printed_bytes_max: int = attrs.field(default=32 * 1024, validator=_positive)
