"""`trioloop diff`: where two logs part, side by side."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
from rich.console import Console
from rich.text import Text

from trioloop.cli.exits import FAILED, OK, ExitCode
from trioloop.cli.readable import Readable, readable
from trioloop.cli.wording import cells, count, one_line, shortened
from trioloop.events import Event
from trioloop.log.explain import first_difference
from trioloop.log.meaning import Meaning

_SIDE_BY_SIDE_MIN = 64  # columns; where there are fewer, one stands under the other
_PIPE_WIDTH = 120
_FIELDS_MAX = 40
_DEPTH_MAX = 20  # values that lie deeper are compared, and shown, as one
_ABSENT = "(nothing)"


class _Side(NamedTuple):
    """One of two logs: what it is called here, and its event where the two part, if it has one."""

    label: str
    event: Event | None
    members: object  # of the event, as far as they are compared


class _Field(NamedTuple):
    """A part of an event in which the two differ, as each has it."""

    path: str
    one: str
    other: str


def compare(
    file: Path,
    name: str,
    file2: Path,
    name2: str,
    out: Console,
    *,
    times: bool = True,
    ids: bool = True,
) -> ExitCode:
    """Show the first event that two sessions don't share; FAILED where there is one."""
    one, other = readable(file, name), readable(file2, name2)
    seq = first_difference(one.events, other.events, times=times, ids=ids)
    if seq is None:
        shared = count(len(one.events), "event")
        out.print(Text.assemble(("= ", "green"), f"{shared}, equal in both"), soft_wrap=True)
    elif not _hidden_by_fault(seq, one, other):
        sides = [
            _side(path, read, seq, Meaning(times=times, ids=ids))
            for path, read in ((file, one), (file2, other))
        ]
        _show(out, seq, *sides)
    one.complain()
    other.complain()
    return OK if seq is None else FAILED


def _hidden_by_fault(seq: int, one: Readable, other: Readable) -> bool:
    """Whether it only seems so, because one of them can't be read any further."""
    return any(read.fault is not None and seq == len(read.events) for read in (one, other))


def _side(file: Path, read: Readable, seq: int, meaning: Meaning) -> _Side:
    label = one_line(f"{file} {read.session}")
    if seq >= len(read.events):
        return _Side(label, None, {})
    members = [meaning.of(event) for event in read.events[: seq + 1]]
    return _Side(label, read.events[seq], members[-1])


def _show(out: Console, seq: int, one: _Side, other: _Side) -> None:
    before = f"{count(seq, 'event')} equal" if seq else "nothing equal"
    out.print(
        Text.assemble(("≠ ", "red"), f"{before}, then {_how(seq, one, other)}"), soft_wrap=True
    )
    paper = _Paper(out, out.width if out.is_terminal else _PIPE_WIDTH)
    paper.pair(one.label, other.label, ("dim", "dim"))
    fields = list(_fields(one.members, other.members))
    for field in fields[:_FIELDS_MAX]:
        paper.heading(field.path)
        paper.pair(field.one, field.other, ("red", "green"))
    if len(fields) > _FIELDS_MAX:
        out.print(Text(f"and {count(len(fields) - _FIELDS_MAX, 'more field')}", style="dim"))


def _how(seq: int, one: _Side, other: _Side) -> str:
    if one.event is None or other.event is None:
        longer = one if other.event is None else other
        return f"only {longer.label} goes on"
    if one.event.type == other.event.type:
        return f"event {seq} differs, {one_line(one.event.type)} in both"
    return f"event {seq} differs"


class _Paper(NamedTuple):
    """Where values are printed in pairs: side by side, or one below the other."""

    out: Console
    width: int

    def heading(self, text: str) -> None:
        self.out.print(Text(shortened(text, self.width), style="bold"), soft_wrap=True)

    def pair(self, one: str, other: str, styles: tuple[str, str]) -> None:
        if self.width < _SIDE_BY_SIDE_MIN:
            for mark, value, style in zip(
                "<>", _cut(one, other, self.width - 4), styles, strict=True
            ):
                self.out.print(Text.assemble(f"  {mark} ", (value, style)), soft_wrap=True)
            return
        half = (self.width - 5) // 2
        left, right = _cut(one, other, half)
        padded = left + " " * (half - cells(left))
        line = Text.assemble("  ", (padded, styles[0]), (" │ ", "dim"), (right, styles[1]))
        self.out.print(line, soft_wrap=True)


def _cut(one: str, other: str, width: int) -> tuple[str, str]:
    """Both on a line of that width, from shortly before the place where they part."""
    width = max(width, 8)
    pairs = enumerate(zip(one, other, strict=False))
    shared = next((at for at, (mine, theirs) in pairs if mine != theirs), min(len(one), len(other)))
    start = shared - width // 3
    if start <= 0 or max(cells(one), cells(other)) <= width:
        return shortened(one, width), shortened(other, width)
    return shortened(f"…{one[start:]}", width), shortened(f"…{other[start:]}", width)


# The fields of two events


def _fields(one: object, other: object) -> Iterator[_Field]:
    mine, theirs = _leaves_of(one), _leaves_of(other)
    for path in dict.fromkeys((*mine, *theirs)):
        pair = mine.get(path, _ABSENT), theirs.get(path, _ABSENT)
        if pair[0] != pair[1]:
            yield _Field(one_line(path), *map(one_line, pair))


def _leaves_of(members: object) -> dict[str, str]:
    if not members:
        return {}
    return {path: msgspec.json.encode(value).decode() for path, value in _leaves(members, "", 0)}


def _leaves(value: object, path: str, depth: int) -> Iterator[tuple[str, object]]:
    """The parts of a JSON value that have no parts of their own; a list of such is one."""
    if isinstance(value, dict) and value and depth < _DEPTH_MAX:
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else key, depth + 1)
    elif isinstance(value, list) and _is_nested(value) and depth < _DEPTH_MAX:
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]", depth + 1)
    else:
        yield path, value


def _is_nested(values: list[object]) -> bool:
    return any(isinstance(value, dict | list) for value in values)
