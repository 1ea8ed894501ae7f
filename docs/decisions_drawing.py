"""Draws a turn's decisions, from what the deciding functions answer."""

from collections.abc import Iterator, Sequence

import attrs

from docs.turn_cases import (
    NEXT_STEP,
    NEXT_TURN,
    NOTHING,
    REASONS,
    Left,
    opens_turn,
    step_asked_for,
)
from trioloop.events import TurnReason

WIDTH, BOX, ROW, TOP = 980, 30, 42, 64
COLUMNS = (16, 250, 520, 800)
WIDTHS = (150, 170, 150, 164)
NAMES = ("owed at a boundary", "asks for", "the turn ends", "then")

OTHER_ENDS: dict[TurnReason, str] = {
    "blocked": "rejected",
    "aborted": "cancelled",
    "error": "failed",
    "interrupted": "process died",
}
"""What ends a turn otherwise than by owing nothing."""


@attrs.frozen
class _Box:
    """A box of the diagram: its words, its column, and the middle of it downwards."""

    words: str
    column: int
    y: int

    @property
    def left(self) -> int:
        return COLUMNS[self.column]

    @property
    def right(self) -> int:
        return self.left + WIDTHS[self.column]


def _column(number: int, words: Sequence[str], tops: Sequence[int]) -> dict[str, _Box]:
    return {one: _Box(one, number, top) for one, top in zip(words, tops, strict=True)}


def _rows(count: int) -> list[int]:
    return [TOP + ROW * number + BOX // 2 for number in range(count)]


def _owed_answers() -> list[str]:
    """What `owed` can answer, in the order in which a turn meets it."""
    boundaries: tuple[tuple[int, Left], ...] = (
        (1, None),
        (0, "retry"),
        (1, "results"),
        (1, "pause"),
    )
    answers = [
        step_asked_for(steps, left, filled=filled)
        for steps, left in boundaries
        for filled in (False, True)
    ]
    return list(dict.fromkeys(answers))


def _way_on(reason: TurnReason) -> str | None:
    """Which pending messages open a further turn behind a reason: any, some, or none."""
    opening = {
        (one, two)
        for one in NEXT_TURN
        for two in NEXT_STEP
        if opens_turn(reason, one, two) != NOTHING
    }
    if not opening:
        return None
    return "any" if ("a follow-up", "nothing") in opening else "some"


def _boxes() -> dict[str, _Box]:
    owed = _owed_answers()
    rows = _rows(len(REASONS))
    return {
        **_column(0, owed, _rows(len(owed))),
        **_column(1, ("agent.turn_stopping", "a further step"), (rows[0], rows[3])),
        **_column(2, REASONS, rows),
        **_column(3, ("a further turn", "idle"), (rows[1], rows[4])),
    }


def _edges(boxes: dict[str, _Box]) -> Iterator[str]:
    for answer in _owed_answers():
        target = "agent.turn_stopping" if answer == NOTHING else "a further step"
        yield _edge(boxes[answer], boxes[target])
    yield _down(boxes["agent.turn_stopping"], boxes["a further step"], "somebody steers")
    for reason in ("completed", "max-tokens"):
        yield _edge(boxes["agent.turn_stopping"], boxes[reason])
    for reason, words in OTHER_ENDS.items():
        box = boxes[reason]
        yield (
            f'<text class="label" x="{box.left - 10}" y="{box.y + 4}" text-anchor="end">'
            f"{words}</text>"
        )
    for reason in REASONS:
        way = _way_on(reason)
        if way is not None:
            yield _edge(
                boxes[reason], boxes["a further turn"], "call" if way == "any" else "answer"
            )
        yield _edge(boxes[reason], boxes["idle"], "faint")


def _edge(source: _Box, target: _Box, kind: str = "call") -> str:
    start, end = source.right, target.left
    middle = (start + end) // 2
    return (
        f'<path class="{kind}" d="M{start} {source.y}C{middle} {source.y} {middle} {target.y} '
        f'{end - 7} {target.y}"/><path class="head" d="M{end} {target.y}l-8 -4v8z"/>'
    )


def _down(source: _Box, target: _Box, words: str) -> str:
    x = (source.left + source.right) // 2
    top = target.y - BOX // 2
    return (
        f'<path class="call" d="M{x} {source.y + BOX // 2}V{top - 7}"/>'
        f'<path class="head" d="M{x} {top}l-4 -8h8z"/>'
        f'<text class="label" x="{x + 8}" y="{(source.y + target.y) // 2 + 4}">{words}</text>'
    )


def _drawn(box: _Box) -> str:
    words = "nothing" if box.words == NOTHING else box.words
    width = box.right - box.left
    return (
        f'<rect class="box" x="{box.left}" y="{box.y - BOX // 2}" width="{width}" height="{BOX}" '
        f'rx="5"/><text x="{box.left + width // 2}" y="{box.y + 4}" text-anchor="middle">'
        f"{words}</text>"
    )


def decisions_diagram() -> str:
    """The diagram, as SVG."""
    boxes = _boxes()
    height = TOP + ROW * len(REASONS) + 34
    headings = [
        f'<text class="name" x="{left + width // 2}" y="40" text-anchor="middle">{words}</text>'
        for words, left, width in zip(NAMES, COLUMNS, WIDTHS, strict=True)
    ]
    return "\n".join(
        [
            f'<svg class="drawing" xmlns="http://www.w3.org/2000/svg" '
            f'viewBox="0 0 {WIDTH} {height}" role="img">',
            "<title>What a turn does next</title>",
            *headings,
            *_edges(boxes),
            *map(_drawn, boxes.values()),
            f'<text class="time" x="{WIDTH - 16}" y="{height - 12}" text-anchor="end">dashed: only '
            "for what was sent after the cancel; faint: where nothing asks for a turn</text>",
            "</svg>\n",
        ]
    )
