"""Draw the lifecycle diagram of the docs from a recorded run.

    python docs/draw_lifecycle.py

Runs an agent with a scripted model under a virtual clock, folds its log event by event, and writes
what each state was after each event to `docs/concepts/lifecycle.svg`. A test compares the two, so
the picture can't say what the runtime doesn't do.
"""

from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import groupby
from pathlib import Path

import attrs
import trio
from trio.testing import MockClock

import trioloop
from trioloop.agent.notifications import Settled, StatusChanged
from trioloop.events import Event
from trioloop.ids import CallId, MessageId
from trioloop.log.fold import LogState
from trioloop.testing import ScriptedModel, Stall, Text, ToolCall

PICTURE = Path(__file__).parent / "concepts" / "lifecycle.svg"


# The run


@attrs.define
class Recording:
    """A run: its log, and what the log doesn't hold, each with the last seq before it."""

    events: list[Event] = attrs.field(factory=list)
    activity: dict[int, str] = attrs.field(factory=dict)
    settled: dict[int, str] = attrs.field(factory=dict)


@trioloop.tool(effects="read-only")
async def search(query: str) -> str:
    """Search the library.

    Args:
        query: what to look for.
    """
    await trio.sleep(len(query))
    return f"three books on {query}"


def _script() -> ScriptedModel:
    calls = [ToolCall("search", query="cancellation"), ToolCall("search", query="trio")]
    return ScriptedModel([calls, Text("Here is a short report."), ["Let me think", Stall()]])


async def record() -> Recording:
    """Ask, steer while tools run, ask again, cancel while the model answers."""
    recording = Recording()
    async with trioloop.open_runtime(model=_script(), tools=[search]) as runtime:
        agent = await runtime.create_agent("librarian")

        def note_status(changed: StatusChanged) -> None:
            recording.activity[agent.session.seq] = changed.status

        def note_settled(settled: Settled) -> None:
            recording.settled[agent.session.seq] = settled.reason

        agent.on("status", note_status)
        agent.on("settled", note_settled)
        agent.followup("Report on Trio.")
        await trio.sleep(1)
        agent.steer("Keep it short.")
        agent.followup("And what is missing?")
        await trio.sleep(60)
        agent.cancel("user")
        await agent.wait_idle()
        recording.events.extend(agent.session.events())
    return recording


# What each state was after each event


@attrs.frozen
class Column:
    """One event of the log, and the states after it."""

    event: Event
    activity: str
    turn: str | None
    step: str | None
    request: str | None
    calls: tuple[str | None, ...]
    messages: tuple[str | None, ...]
    settled: str | None


def columns(recording: Recording) -> list[Column]:
    """The log, folded event by event."""
    messages: list[MessageId] = []
    calls: list[CallId] = []
    found = []
    state = LogState()
    activity = "idle"
    for event in recording.events:
        state.apply(event)
        activity = recording.activity.get(event.seq, activity)
        messages += [message for message in state.fates if message not in messages]
        found.append(
            Column(
                event=event,
                activity=activity,
                turn=f"turn {state.turn.number}" if state.turn else None,
                step=_step(state),
                request="request" if _asks(state) else None,
                calls=_calls(state, calls),
                messages=tuple(state.fates[message].status for message in messages),
                settled=recording.settled.get(event.seq),
            )
        )
    return found


def _step(state: LogState) -> str | None:
    step = state.turn.step if state.turn else None
    return f"step {step.number}" if step else None


def _asks(state: LogState) -> bool:
    return bool(state.turn and state.turn.step and state.turn.step.admitted)


def _calls(state: LogState, seen: list[CallId]) -> tuple[str | None, ...]:
    step = state.turn.step if state.turn else None
    running = {
        call: open_call.block.name
        for call, open_call in (step.calls if step else {}).items()
        if open_call.call_seq is not None and open_call.result is None
    }
    seen += [call for call in running if call not in seen]
    return tuple(running.get(call) for call in seen)


# The picture

LEFT, COLUMN, ROW, TOP = 150, 30, 30, 150
COLORS = {
    "created": "#90a4ae",
    "running": "#26a69a",
    "idle": "#cfd8dc",
    "pending": "#ffca28",
    "claimed": "#ffa726",
    "admitted": "#66bb6a",
    "turn": "#5c6bc0",
    "step": "#7986cb",
    "request": "#ab47bc",
    "search": "#8d6e63",
    "completed": "#43a047",
    "aborted": "#e53935",
}
DARK_TEXT = {"idle", "pending", "claimed", "created"}

Values = Sequence[str | None]


def _lanes(run: Sequence[Column]) -> Iterator[tuple[str, Values]]:
    yield "in the log", [column.turn for column in run]
    yield "", [column.step for column in run]
    yield "", [column.request for column in run]
    for number in range(max(len(column.calls) for column in run)):
        yield "", _nth(run, number, lambda column: column.calls)
    yield "S1 registration", ["created" for _ in run]
    yield "S2 activity", [column.activity for column in run]
    for number in range(max(len(column.messages) for column in run)):
        label = "" if number else "S3 messages"
        yield label, _nth(run, number, lambda column: column.messages)
    yield "S4 settlement", [column.settled for column in run]


def _nth(run: Sequence[Column], number: int, of: Callable[[Column], Values]) -> Values:
    return [of(column)[number] if number < len(of(column)) else None for column in run]


def _bars(values: Values) -> Iterator[tuple[int, int, str]]:
    """Runs of equal values: first column, number of columns, value."""
    place = 0
    for value, group in groupby(values):
        length = len(list(group))
        if value is not None:
            yield place, length, value
        place += length


def _bar(x: int, y: int, width: int, value: str) -> str:
    kind = value.split(maxsplit=1)[0]
    ink = "#263238" if kind in DARK_TEXT else "#ffffff"
    label = value if width >= 7 * len(value) else ""
    return (
        f'<rect x="{x + 1}" y="{y + 3}" width="{width - 2}" height="{ROW - 6}" rx="5" '
        f'fill="{COLORS[kind]}"><title>{escape(value)}</title></rect>'
        f'<text x="{x + width / 2:g}" y="{y + 19}" text-anchor="middle" fill="{ink}">{label}</text>'
    )


def _mark(x: int, y: int, value: str) -> str:
    return (
        f'<circle cx="{x + COLUMN // 2}" cy="{y + ROW // 2}" r="7" fill="{COLORS[value]}"/>'
        f'<text x="{x + COLUMN // 2 - 12}" y="{y + 19}" text-anchor="end" class="label">{value}'
        "</text>"
    )


def _heading(run: Sequence[Column]) -> Iterator[str]:
    for place, column in enumerate(run):
        x = LEFT + place * COLUMN + COLUMN // 2
        yield (
            f'<text class="event" transform="translate({x + 3} {TOP - 8}) rotate(-60)">'
            f"{column.event.seq} {escape(column.event.type)}</text>"
        )


def _body(lanes: Sequence[tuple[str, Values]]) -> Iterator[str]:
    for number, (label, values) in enumerate(lanes):
        y = TOP + number * ROW
        if label:
            right = LEFT + len(values) * COLUMN
            yield f'<path class="line" d="M10 {y}H{right}"/>'
            yield f'<text class="label" x="12" y="{y + 19}">{label}</text>'
        for place, length, value in _bars(values):
            x = LEFT + place * COLUMN
            if label == "S4 settlement":
                yield _mark(x, y, value)
            else:
                yield _bar(x, y, length * COLUMN, value)


STYLE = """
text { font: 12px system-ui, sans-serif; }
.event { font: 11px ui-monospace, monospace; fill: #37474f; }
.label { font-weight: 600; fill: #37474f; }
.line { stroke: #b0bec5; stroke-width: 1; }
"""


def draw(recording: Recording) -> str:
    """The picture of a run, as SVG."""
    run = columns(recording)
    lanes = list(_lanes(run))
    width, height = LEFT + len(run) * COLUMN + 70, TOP + len(lanes) * ROW + 12
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">',
            "<title>The states of an agent, event by event</title>",
            f"<style>{STYLE}</style>",
            f'<rect width="{width}" height="{height}" rx="8" fill="#fafafa"/>',
            *_heading(run),
            *_body(lanes),
            "</svg>\n",
        ]
    )


def lifecycle() -> str:
    """Run, record and draw."""
    return draw(trio.run(record, clock=MockClock(autojump_threshold=0)))


if __name__ == "__main__":
    PICTURE.write_text(lifecycle(), encoding="utf-8")
    print(f"wrote {PICTURE}")
