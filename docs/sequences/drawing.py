"""Draws recorded messages between lanes as a sequence diagram, as SVG.

The pages hold the picture inline, so that it takes the page's colours, light or dark, and its
events are links into the catalogue.
"""

from collections.abc import Iterator, Sequence
from html import escape

import attrs

from docs.sequences.recording import LANES, Appended, Lane, Row, Told
from trioloop.events import (
    AssistantAttemptLogged,
    AssistantMessageLogged,
    Event,
    Failure,
    InboxSpliced,
    ToolResultLogged,
    TurnEnded,
)

WIDTH, TOP, ROW, LINE, PAUSE = 980, 56, 30, 19, 24
BOX_LEFT, BOX_WIDTH = 726, 246
PLACES: dict[Lane, int] = dict(zip(LANES, (44, 190, 432, 540, 640, BOX_LEFT), strict=True))
CATALOGUE = "../../reference/catalogues/events/"


@attrs.define
class _Work:
    """From where to where a lane works, and which of its works side by side this is."""

    top: int
    bottom: int
    number: int


@attrs.define
class _Drawing:
    """A picture that grows downwards. `works`: the latest of each lane, by key."""

    y: int = TOP
    at: float = 0.0
    parts: list[str] = attrs.field(factory=list)
    bars: list[str] = attrs.field(factory=list)
    works: dict[tuple[Lane, str], _Work] = attrs.field(factory=dict)


def draw(title: str, rows: Sequence[Row]) -> str:
    """The diagram of what was recorded."""
    drawing = _Drawing()
    place = 0
    while place < len(rows):
        row = rows[place]
        _pass_time(drawing, row.at)
        following = rows[place + 1] if place + 1 < len(rows) else None
        if isinstance(row, Appended):
            _draw_append(drawing, row)
        elif isinstance(following, Told) and _answers(following, row):
            _draw_exchange(drawing, row, following)
            place += 1
        else:
            _draw_message(drawing, row)
        place += 1
    for work in tuple(drawing.works):
        _finish(drawing, work)
    return _framed(title, drawing)


def _answers(answer: Told, asked: Told) -> bool:
    turned = (answer.source, answer.target) == (asked.target, asked.source)
    return turned and answer.answer and not asked.answer and asked.target != "model"


def _pass_time(drawing: _Drawing, at: float) -> None:
    passed, drawing.at = at - drawing.at, at
    if passed < 0.1:
        return
    drawing.y += PAUSE
    x = PLACES["agent"]
    drawing.parts.append(
        f'<text class="time" x="{x - 12}" y="{drawing.y - 7}" text-anchor="end">'
        f"{round(passed, 1):g} s pass</text>"
    )


# Messages


def _draw_message(drawing: _Drawing, row: Told) -> None:
    drawing.y += ROW
    source, target = PLACES[row.source], PLACES[row.target]
    kind = "answer" if row.answer else "call"
    drawing.parts += [
        f'<path class="{kind}" d="M{source} {drawing.y}H{_tip(source, target)}"/>',
        _head(source, target, drawing.y),
        _label(min(source, target), drawing.y, row.text),
    ]
    _note_work(drawing, row)


def _draw_exchange(drawing: _Drawing, asked: Told, answer: Told) -> None:
    drawing.y += ROW
    left, right = PLACES[asked.source], PLACES[asked.target]
    drawing.parts += [
        f'<path class="call" d="M{_tip(right, left)} {drawing.y}H{_tip(left, right)}"/>',
        _head(left, right, drawing.y),
        _head(right, left, drawing.y),
        _label(left, drawing.y, f"{asked.text} → {answer.text}"),
    ]
    drawing.bars.append(_bar(asked.target, drawing.y - 8, drawing.y + 8, 0))


def _tip(source: int, target: int) -> int:
    return target - 7 if target > source else target + 7


def _head(source: int, target: int, y: int) -> str:
    back = -8 if target > source else 8
    return f'<path class="head" d="M{target} {y}l{back} -4v8z"/>'


def _label(x: int, y: int, text: str) -> str:
    return f'<text class="label" x="{x + 12}" y="{y - 6}">{escape(text)}</text>'


def _note_work(drawing: _Drawing, row: Told) -> None:
    """Remember from where to where a lane works; the agent does so from first to last."""
    if row.answer:
        work = drawing.works.get((row.source, row.key))
        if work is not None:
            work.bottom = drawing.y
        return
    began = (row.target, row.key)
    if row.target == "agent" and began in drawing.works:
        return
    _finish(drawing, began)
    number = sum(lane == row.target for lane, _ in drawing.works)
    drawing.works[began] = _Work(drawing.y, drawing.y, number)


def _finish(drawing: _Drawing, which: tuple[Lane, str]) -> None:
    """Draw a work as a bar over its lifeline; those that overlap stand side by side."""
    work = drawing.works.pop(which, None)
    if work is not None:
        drawing.bars.append(_bar(which[0], work.top, work.bottom, work.number))


def _bar(lane: Lane, top: int, bottom: int, number: int) -> str:
    x = PLACES[lane] - 4 + 9 * number
    return f'<rect class="work" x="{x}" y="{top}" width="8" height="{bottom - top}" rx="2"/>'


# Events


def _draw_append(drawing: _Drawing, row: Appended) -> None:
    height = LINE * len(row.events) + 8
    top = drawing.y + 12
    middle = top + height / 2
    agent = PLACES["agent"]
    drawing.parts += [
        f'<path class="append" d="M{agent} {middle:g}H{BOX_LEFT - 7}"/>',
        _head(agent, BOX_LEFT, round(middle)),
        f'<rect class="box" x="{BOX_LEFT}" y="{top}" width="{BOX_WIDTH}" '
        f'height="{height}" rx="5"/>',
    ]
    for number, event in enumerate(row.events):
        drawing.parts.append(_event(event, top + LINE * (number + 1) - 2))
    drawing.y = top + height


def _event(event: Event, y: int) -> str:
    anchor = event.type.replace("/", "-")
    detail = f'<tspan class="detail" dx="6">{escape(_detail(event))}</tspan>'
    return (
        f'<a href="{CATALOGUE}#{anchor}"><text class="event" x="{BOX_LEFT + 10}" y="{y}">'
        f'<tspan class="seq">{event.seq}</tspan><tspan dx="6">{escape(event.type)}</tspan>'
        f"{detail}</text></a>"
    )


def _detail(event: Event) -> str:
    """What is worth telling of an event beside its type, in a word or two."""
    match event.data:
        case TurnEnded(reason=word) | ToolResultLogged(code=str(word)):
            return word
        case InboxSpliced() as splice:
            back = any(one.restored for one in splice.inserted)
            return "claimed" if splice.removed else "put back" if back else "inserted"
        case AssistantMessageLogged(message=message) if message.calls:
            return f"{len(message.calls)} calls"
        case AssistantAttemptLogged(failure=Failure(code=code)):
            return code
        case _:
            return ""


# The frame


def _framed(title: str, drawing: _Drawing) -> str:
    bottom = drawing.y + 24
    return "\n".join(
        [
            f'<svg class="drawing sequence" xmlns="http://www.w3.org/2000/svg" '
            f'viewBox="0 0 {WIDTH} {bottom}" role="img">',
            f"<title>{escape(title)}</title>",
            *_lanes(bottom),
            *drawing.bars,
            *drawing.parts,
            "</svg>\n",
        ]
    )


def _lanes(bottom: int) -> Iterator[str]:
    for lane, line in PLACES.items():
        x = BOX_LEFT + BOX_WIDTH // 2 if lane == "log" else line
        yield f'<path class="lifeline" d="M{x} {TOP - 16}V{bottom - 12}"/>'
        yield f'<rect class="lane" x="{x - 36}" y="12" width="72" height="28" rx="6"/>'
        yield f'<text class="name" x="{x}" y="31" text-anchor="middle">{lane}</text>'
