"""The raw text of a call's arguments: SCH-21, SCH-22, and what JSON readers make the best of."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from trioloop.errors import ArgumentsError
from trioloop.schema import Signature, parse_object


@pytest.mark.parametrize("raw", ["", " ", "\n\t", "{}", " { } "])
def test_empty_text_is_an_empty_object(raw: str) -> None:
    assert parse_object(raw) == {}


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ('{"text": "a', "Unterminated string starting at at line 1, column 10"),
        ('{"a": 1} x', "Extra data"),
        ("{'a': 1}", "line 1, column 2"),
        ("not json", "isn't JSON"),
        ("\ufeff{}", "BOM"),
        ("[1, 2]", "expected a JSON object, got array [1,2]"),
        ('"text"', 'got string "text"'),
        ("null", "got null"),
        ("12", "got integer 12"),
        ('{"a": NaN}', "got NaN"),
        ('{"a": -Infinity}', "got -Infinity"),
        ('{"a": 1e999}', "out of range"),
        ('{"a": 1, "a": 2}', "expected each key once, got 'a' twice"),
        ('{"a": 1, "a": "\\u003a"}', "expected each key once, got 'a' twice"),
        ('{"a": ":", "a": ""}', "expected each key once, got 'a' twice"),
        ('{"a": {"b": 1, "b": 1}}', "expected each key once, got 'b' twice"),
        ('{"a": "\\ud800"}', "surrogate"),
        ('{"a": "\ud800"}', "surrogate"),
        ('{"a": ' * 5_000 + "1" + "}" * 5_000, "nested too deeply"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_text_that_is_no_plain_object_is_refused(raw: str, told: str) -> None:
    with pytest.raises(ArgumentsError) as raised:
        parse_object(raw)
    assert told in str(raised.value)
    assert raised.value.faults[0].startswith("$: expected ")
    str(raised.value).encode()


@pytest.mark.parametrize("depth", range(100, 1_500, 70))
def test_depth_raises_nothing_else(depth: int, parameter: Callable[..., Signature]) -> None:
    arguments = parameter(Any).arguments
    for opening, closing in [("[", "]"), ('{"a": ', "}")]:
        nested = opening * depth + "1" + closing * depth
        for raw in (nested, f'{{"value": {nested}}}', f'{{"other": {nested}}}'):
            with suppress(ArgumentsError):
                arguments.decode(raw)


def test_colons_in_text_are_no_duplicates() -> None:
    assert parse_object('{"a": "x:y:z", "b": {"a": ":"}}') == {"a": "x:y:z", "b": {"a": ":"}}


def test_surrogate_pairs_and_large_numbers_are_read_exactly() -> None:
    assert parse_object('{"a": "\\ud83d\\ude00", "n": 123456789012345678901234567890}') == {
        "a": "\U0001f600",
        "n": 123456789012345678901234567890,
    }


def test_long_text_is_shown_in_part() -> None:
    with pytest.raises(ArgumentsError) as raised:
        parse_object('"' + "x" * 1_000_000 + '"')
    assert len(str(raised.value)) < 200
