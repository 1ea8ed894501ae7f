"""Checks of what listeners answer: what the log couldn't hold is refused where it is made."""

from typing import Any

import attrs

from trioloop.codec import is_unicode
from trioloop.errors import InvalidInputError


def is_text(_: object, field: "attrs.Attribute[Any]", value: object) -> None:
    """Refuse what isn't Unicode text."""
    if not isinstance(value, str) or not is_unicode(value):
        raise InvalidInputError(f"{field.name} must be Unicode text, not {value!r}")


def is_word(_: object, field: "attrs.Attribute[Any]", value: object) -> None:
    """Refuse what isn't Unicode text, or is empty."""
    if not isinstance(value, str) or not value or not is_unicode(value):
        raise InvalidInputError(f"{field.name} must be a word, not {value!r}")


def is_place(_: object, field: "attrs.Attribute[Any]", value: object) -> None:
    """Refuse what isn't a whole number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidInputError(f"{field.name} must be a whole number, not {value!r}")
