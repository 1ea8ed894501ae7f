"""Tools for the demonstration model, so that `trioloop run` shows something by itself."""

import ast
import math
import operator
from collections.abc import Callable
from datetime import date
from typing import Any, Literal, TypeAlias

import trio

from trioloop.errors import ToolError
from trioloop.tools import Tool, ToolContext, tool

Unit: TypeAlias = Literal["km", "m", "cm", "mi", "ft", "in", "kg", "g", "lb", "oz", "C", "F", "K"]
Number: TypeAlias = int | float

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {  # Any: of one or two numbers
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_METRES = {"km": 1000.0, "m": 1.0, "cm": 0.01, "mi": 1609.344, "ft": 0.3048, "in": 0.0254}
_GRAMS = {"kg": 1000.0, "g": 1.0, "lb": 453.59237, "oz": 28.349523125}
_EXPONENT_MAX = 1_000
_EXPRESSION_LENGTH_MAX = 500


@tool(effects="read-only")
def calculate(expression: str) -> str:
    """Calculate an arithmetic expression.

    Args:
        expression: numbers with + - * / // % ** and parentheses, such as (2 + 3) * 4.
    """
    try:
        if len(expression) > _EXPRESSION_LENGTH_MAX:
            raise ToolError(f"{expression[:20]}... is too long to be worked out here")
        number = _worked_out(ast.parse(expression.replace("^", "**"), mode="eval").body)
        return f"{number:.12g}" if isinstance(number, float) else str(number)
    except (SyntaxError, ZeroDivisionError, OverflowError, RecursionError, ValueError) as error:
        raise ToolError(f"{expression!r} can't be worked out: {error}") from None


def _worked_out(node: ast.AST) -> Number:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _OPERATORS:
            return _applied(sign, _worked_out(operand))
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_worked_out(left), _worked_out(right))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _applied(sign, _worked_out(left), _worked_out(right))
    raise ToolError("only numbers, + - * / // % ** and parentheses can be worked out")


def _applied(sign: ast.AST, *numbers: Number) -> Number:
    result: Number = _OPERATORS[type(sign)](*numbers)
    return result


def _power(base: Number, exponent: Number) -> Number:
    if abs(exponent) > _EXPONENT_MAX or abs(base) > 10**100:
        raise ToolError("that power is too large to be worked out here")
    power = base**exponent
    if not isinstance(power, int | float):
        raise ToolError("that power is no real number")
    return power


@tool(effects="read-only")
def count_words(text: str) -> int:
    """Count the words of a text.

    Args:
        text: any text.
    """
    return len(text.split())


@tool(effects="read-only")
def convert_units(value: float, from_unit: Unit, to_unit: Unit) -> str:
    """Convert a length, a weight or a temperature from one unit to another.

    Args:
        value: how much of the first unit.
        from_unit: km, m, cm, mi, ft, in, kg, g, lb, oz, or C, F, K for Celsius, Fahrenheit, Kelvin.
        to_unit: of the same kind.
    """
    for table in (_METRES, _GRAMS):
        if from_unit in table and to_unit in table:
            return _amount(value * table[from_unit] / table[to_unit], to_unit)
    if {from_unit, to_unit} <= {"C", "F", "K"}:
        return _amount(_from_celsius(_to_celsius(value, from_unit), to_unit), to_unit)
    raise ToolError(f"{from_unit} and {to_unit} don't measure the same thing")


def _to_celsius(value: float, unit: str) -> float:
    return {"C": value, "F": (value - 32) / 1.8, "K": value - 273.15}[unit]


def _from_celsius(value: float, unit: str) -> float:
    return {"C": value, "F": value * 1.8 + 32, "K": value + 273.15}[unit]


def _amount(number: float, unit: str) -> str:
    digits = 3 if math.isfinite(number) and abs(number) < 1e6 else 0
    return f"{number:,.{digits}f}".rstrip("0").rstrip(".") + f" {unit}"


@tool(effects="read-only")
def today() -> str:
    """Today's date, with the day of the week."""
    return f"{date.today():%A, %d %B %Y}"


@tool(effects="read-only")
async def wait(seconds: float, context: ToolContext) -> str:
    """Wait for some seconds, and report progress.

    Args:
        seconds: how long, at most 600.
    """
    if not 0 <= seconds <= 600:
        raise ToolError(f"seconds must be from 0 to 600, not {seconds!r}")
    started = trio.current_time()
    while (waited := trio.current_time() - started) < seconds:
        context.report_progress(done=waited, total=seconds)
        await trio.sleep(min(0.5, seconds - waited))
    return f"waited {seconds:g} s"


def demonstration_tools() -> list[Tool]:
    """The tools that the demonstration model is given where it has none of the user's."""
    return [calculate, count_words, convert_units, today, wait]
