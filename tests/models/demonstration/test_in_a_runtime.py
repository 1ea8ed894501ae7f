"""The demonstration model as an agent's model, with tools made by `@tool`."""

import enum
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any, Literal

import attrs

from trioloop.models import DemonstrationModel
from trioloop.testing import open_test_runtime
from trioloop.tools import tool


class Colour(enum.Enum):
    """Colours of paint."""

    RED = "red"
    DARK_BLUE = "dark blue"


@attrs.frozen
class Size:
    """Of a wall, in metres."""

    width: float
    height: float


CALLED: list[tuple[Any, ...]] = []


@tool(effects="read-only")
async def paint(colour: Colour, coats: int = 2) -> str:
    """Paint the wall.

    Args:
        colour: of the paint.
        coats: how many.
    """
    CALLED.append((colour, coats))
    return "painted"


@tool(effects="read-only")
async def measure(size: Size, unit: Literal["m", "ft"] = "m") -> float:
    """Measure the area of a wall."""
    CALLED.append((size, unit))
    return size.width * size.height


@tool(effects="read-only")
def archive(file: Path, labels: list[str], until: date | None = None) -> str:
    """Archive a document."""
    CALLED.append((file, labels, until))
    return "archived"


async def answers(*questions: str) -> Sequence[str]:
    """The last answer to each question, of one agent."""
    CALLED.clear()
    async with open_test_runtime(
        model=DemonstrationModel(pace_s=0), tools=[paint, measure, archive]
    ) as runtime:
        agent = await runtime.create_agent("demo")
        settled = [await agent.ask(question) for question in questions]
        assert [one.reason for one in settled] == ["completed"] * len(questions)
        return [one.text for one in settled]


async def test_arguments_arrive_as_the_annotated_types() -> None:
    told = await answers(
        "Paint the wall dark blue with coats 3",
        'Measure the wall with size {"width": 2, "height": 2.5}',
        "Archive ./deed.pdf with labels 'house', 'old' until 2031-05-01",
    )
    assert [
        (Colour.DARK_BLUE, 3),
        (Size(2, 2.5), "m"),
        (Path("deed.pdf"), ["house", "old"], date(2031, 5, 1)),
    ] == CALLED
    assert "gave painted" in told[0]
    assert "gave 5.0" in told[1]


async def test_a_question_for_none_of_them_is_answered_without_a_call() -> None:
    (told,) = await answers("What is the capital of France?")
    assert CALLED == []
    assert "No tool here fits" in told
