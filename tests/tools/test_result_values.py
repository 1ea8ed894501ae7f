"""What a body's return value means, and what is refused: faults 10 and 12."""

import inspect
import json
import math
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from pydantic import BaseModel

from trioloop.errors import EventEncodingError
from trioloop.messages import ImageBlock, TextBlock, ToolCallBlock, text_of
from trioloop.ports import ToolOutcome
from trioloop.tools.result import bounded, is_heavy, outcome_of


@dataclass
class Point:
    x: int
    tags: tuple[str, ...] = ()


@attrs.frozen
class Span:
    first: float


class Shape(Struct, tag="shape"):
    sides: int


class Row(Struct, array_like=True):
    a: int
    b: int


class Pair(NamedTuple):
    key: str
    value: int


class Color(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 2


class Model(BaseModel):
    when: date


IMAGE = ImageBlock("image/png", "aGk=")


@pytest.mark.parametrize("text", ["hello", "naïve \U0001f600", " padded ", "a\0b"])
def test_text_is_taken_as_it_is(text: str) -> None:
    assert outcome_of(text) == ToolOutcome(content=(TextBlock(text),), value=text)


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_blank_text_has_no_content(blank: str) -> None:
    assert outcome_of(blank) == ToolOutcome(content=(), value=blank)


def test_nothing_has_no_content() -> None:
    assert outcome_of(None) == ToolOutcome(content=())


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (3, 3),
        (True, True),
        (-0.5, -0.5),
        (2**80, 2**80),
        ([], []),
        ({}, {}),
        ({"a": [1, None, "x"]}, {"a": [1, None, "x"]}),
        ((1, (2,)), [1, [2]]),
        (Point(1, ("a",)), {"x": 1, "tags": ["a"]}),
        ([Span(1.5)], [{"first": 1.5}]),
        (Shape(3), {"type": "shape", "sides": 3}),
        (Row(1, 2), [1, 2]),
        (Pair("k", 1), ["k", 1]),
        ({"c": Color.RED, "l": Level.HIGH}, {"c": "red", "l": 2}),
        (Model(when=date(2024, 5, 6)), {"when": "2024-05-06"}),
        ([date(2024, 5, 6), Decimal("1.50"), Path("a/b")], ["2024-05-06", "1.50", "a/b"]),
        (OrderedDict(a=1), {"a": 1}),
        (MappingProxyType({"a": Point(1)}), {"a": {"x": 1, "tags": []}}),
        (["\ud800", {"\udcff": 1}], ["\\ud800", {"\\udcff": 1}]),
    ],
    ids=str,
)
def test_json_values_and_data_classes_become_json_text(value: object, plain: object) -> None:
    outcome = outcome_of(value)
    assert json.loads(text_of(outcome.content)) == plain
    assert outcome.value == plain


def test_value_is_a_copy() -> None:
    value = {"a": [1]}
    outcome = outcome_of(value)
    value["a"].append(2)
    assert outcome.value == {"a": [1]}


def test_lone_surrogates_in_text_are_cleaned() -> None:
    outcome = outcome_of("a\ud800b\udcff")
    assert text_of(outcome.content) == outcome.value == "a\\ud800b\\udcff"


def test_blocks_are_content() -> None:
    assert outcome_of(IMAGE).content == (IMAGE,)
    assert outcome_of(["see", IMAGE, TextBlock("b\ud800")]).content == (
        TextBlock("see"),
        IMAGE,
        TextBlock("b\\ud800"),
    )


def test_outcome_is_taken_with_copies_of_its_values() -> None:
    meta = {"rows": [1]}
    given_ = ToolOutcome(content="seen", value=Point(1), meta=meta, is_error=True, code="ODD")  # type: ignore[arg-type]
    outcome = outcome_of(given_)
    meta["rows"].append(2)
    assert outcome == ToolOutcome(
        content="seen", value={"x": 1, "tags": []}, meta={"rows": [1]}, is_error=True, code="ODD"
    )


def endless() -> object:
    """A list that holds itself."""
    found: list[object] = []
    found.append({"again": found})
    return found


def deep() -> object:
    """A list nested 3,000 levels."""
    found: list[object] = []
    for _ in range(3_000):
        found = [found]
    return found


@pytest.mark.parametrize(
    ("value", "path", "why"),
    [
        ({"items": [1, 2, math.nan]}, "$.items[2]", "NaN"),
        ([math.inf], "$[0]", "infinities"),
        ({"a": {1, 2}}, "$.a", "give a list"),
        ({"a b": b"raw"}, "$['a b']", "give text"),
        ({1: "a"}, "$", "isn't text"),
        ({"a": {None: 1}}, "$.a", "isn't text"),
        (Point(1, (math.nan,)), "$.tags[0]", "NaN"),  # type: ignore[arg-type]
        ({"f": print}, "$.f", "builtin_function_or_method"),
        ([object()], "$[0]", "object"),
        (Point, "$", "type"),
        (deque([1]), "$", "deque"),
        (endless(), "$[0].again[0].again", "inside itself"),
        (deep(), "$[0][0]", "deeper than"),
        ([IMAGE, 3], "$[1]", "content blocks"),
        (ToolCallBlock("c", "w", "n", "{}"), "$[0]", "content blocks"),  # type: ignore[arg-type]
        (ToolOutcome(content="x", value={1}), "$.value", "give a list"),  # type: ignore[arg-type]
        (ToolOutcome(content="x", meta={"a": math.nan}), "$.meta.a", "NaN"),
        (ToolOutcome(content="x", meta=[1]), "$.meta", "an object"),  # type: ignore[arg-type]
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_path(value: object, path: str, why: str) -> None:
    with pytest.raises(EventEncodingError) as raised:
        outcome_of(value)
    assert raised.value.path.startswith(path)
    assert why in str(raised.value)
    assert len(str(raised.value)) < 400


def test_refused_value_is_not_shown() -> None:
    class Secret:
        def __repr__(self) -> str:
            return "hunter2"

    with pytest.raises(EventEncodingError) as raised:
        outcome_of({"password": Secret()})
    assert "hunter2" not in str(raised.value)


def test_forgotten_coroutine_is_closed() -> None:
    async def work() -> None: ...

    coroutine = work()
    with pytest.raises(EventEncodingError, match="coroutine"):
        outcome_of({"later": coroutine})
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED


def test_generator_is_closed() -> None:
    closed: list[bool] = []

    def numbers() -> Any:
        try:
            yield 1
        finally:
            closed.append(True)

    generator = numbers()
    next(generator)
    with pytest.raises(EventEncodingError, match="generator"):
        outcome_of(generator)
    assert closed == [True]


def test_value_whose_own_code_fails_is_refused() -> None:
    class Odd(dict[str, object]):
        def __eq__(self, other: object) -> bool:
            raise RuntimeError("odd")

        __hash__ = None

    assert text_of(outcome_of(Odd(a=1)).content) == '{"a":1}'
    with pytest.raises(EventEncodingError):
        outcome_of({"n": 10**5_000})


strict = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@settings(deadline=None)
@given(strict.filter(lambda value: value is not None and not isinstance(value, str)))
def test_json_values_are_written_exactly(value: object) -> None:
    outcome = outcome_of(value)
    assert json.loads(text_of(outcome.content)) == value
    assert outcome.value == value


@settings(deadline=None)
@given(strict, st.integers(1, 3_000), st.sampled_from([list, dict, "nested"]))
def test_large_values_are_written_exactly_in_pieces(item: object, count: int, form: Any) -> None:
    value: object = [item] * count
    if form is dict:
        value = {str(index): item for index in range(count)}
    elif form == "nested":
        value = {"rows": value, "more": [value, {}]}
    outcome = outcome_of(value, bytes_max=10**9)
    assert json.loads(text_of(outcome.content)) == value


@pytest.mark.parametrize(
    ("make", "path"),
    [
        (lambda bad: [*range(5_000), bad], "$[5000]"),
        (lambda bad: {**{f"k{i}": i for i in range(5_000)}, "last": [bad]}, "$.last[0]"),
        (lambda bad: Point(1, ("x",) * 5_000 + (bad,)), "$.tags[5000]"),
        (lambda bad: {"deep": {"rows": [{"n": i} for i in range(5_000)] + [{"n": bad}]}}, None),
    ],
)
def test_fault_in_a_large_value_has_its_path(
    make: Callable[[object], object], path: str | None
) -> None:
    with pytest.raises(EventEncodingError) as raised:
        outcome_of(make(math.nan))
    assert raised.value.path == (path or "$.deep.rows[5000].n")


def test_large_value_of_data_classes_is_made_plain() -> None:
    outcome = outcome_of([Point(i) for i in range(3_000)], bytes_max=10**9)
    assert json.loads(text_of(outcome.content)) == outcome.value
    assert outcome.value == [{"x": i, "tags": []} for i in range(3_000)]


@pytest.mark.parametrize(
    ("value", "heavy"),
    [
        ("x" * 10**8, False),
        (IMAGE, False),
        ([1, 2], False),
        ([0] * 10**6, True),
        ({"a": "x" * 10**6}, True),
        ([[[list(range(1_000))] * 3]], True),
        (ToolOutcome(content="x", value=[0] * 10**6), True),
        (ToolOutcome(content="x" * 10**7), False),
    ],
)
def test_heavy_values_are_told_apart(value: object, heavy: bool) -> None:
    assert is_heavy(value) is heavy


def test_bounding_what_fits_changes_nothing() -> None:
    outcome = outcome_of({"a": 1})
    assert bounded(outcome, 1_000) is outcome
