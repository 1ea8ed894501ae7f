"""The tools that the demonstration model is given by the command line."""

import pytest

from trioloop.cli.demonstration import calculate, convert_units, count_words, demonstration_tools
from trioloop.errors import ToolError


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("17 * 23", "391"),
        ("(2 + 3) * 4 - -1", "21"),
        ("2 ^ 10", "1024"),
        ("0.1 + 0.2", "0.3"),
        ("7 // 2 + 7 % 2", "4"),
    ],
)
def test_an_expression_is_worked_out(expression: str, result: str) -> None:
    assert calculate(expression) == result


@pytest.mark.parametrize(
    "expression",
    [
        "1 / 0",
        "2 **",
        "__import__('os')",
        "9 ** 9 ** 9",
        "(-1) ** 0.5",
        "'a' * 5",
        "1 if 2 else 3",
        "(" * 400,
        "1 + " * 200 + "1",
    ],
)
def test_what_can_t_be_worked_out_is_said_to_the_model(expression: str) -> None:
    with pytest.raises(ToolError):
        calculate(expression)


@pytest.mark.parametrize(
    ("amount", "result"),
    [
        ((5, "km", "mi"), "3.107 mi"),
        ((10, "kg", "lb"), "22.046 lb"),
        ((100, "C", "F"), "212 F"),
        ((0, "K", "C"), "-273.15 C"),
    ],
)
def test_units_are_converted(amount: tuple[float, str, str], result: str) -> None:
    assert convert_units(*amount) == result


def test_units_of_different_kinds_are_refused() -> None:
    with pytest.raises(ToolError, match="km and kg don't measure the same thing"):
        convert_units(1, "km", "kg")


def test_words_are_counted() -> None:
    assert count_words("to be  or\nnot") == 4


def test_all_of_them_only_read() -> None:
    assert {tool.effects for tool in demonstration_tools()} == {"read-only"}
