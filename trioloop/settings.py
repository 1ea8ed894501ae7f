"""What the settings of a request may be, whichever provider takes them.

What one provider alone refuses is known to its adapter.
"""

import math
from collections.abc import Callable, Mapping

from msgspec import UNSET

from trioloop.errors import InvalidInputError


def check_settings(settings: object) -> None:
    """Check the members of a `CallConfig`.

    Raises:
        InvalidInputError: one of them is none that any provider takes.
    """
    for name, (is_fine, wanted) in _SETTINGS.items():
        value = getattr(settings, name)
        if not (is_fine(value) or (value is None and name not in _NEEDED)):
            raise InvalidInputError(f"the setting {name} must be {wanted}, not {value!r}")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_word(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_temperature(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= value < math.inf  # type: ignore[operator]  # a number by now


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _is_object(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(key, str) for key in value)


def _is_schema(value: object) -> bool:
    return value is UNSET or _is_object(value)


_NEEDED = frozenset({"provider", "model", "output_schema", "extra"})
_SETTINGS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "provider": (_is_text, "text"),
    "model": (_is_text, "text"),
    "max_tokens": (_is_count, "a whole number greater than 0"),
    "temperature": (_is_temperature, "a finite number from 0 on"),
    "tool_choice": (_is_word, "auto, required, none, or the name of a tool"),
    "parallel_tool_calls": (_is_bool, "True or False"),
    "reasoning_effort": (_is_word, "a word of the provider's"),
    "output_schema": (_is_schema, "a JSON Schema, as a dict with text as its keys"),
    "extra": (_is_object, "a dict with text as its keys"),
}
