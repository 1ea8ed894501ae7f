"""Planning: which calls a question asks for, in which order, and what of it nothing serves."""

from collections.abc import Sequence
from typing import TypeAlias

import attrs

from trioloop.models.demonstration.choosing import Choice, choose, is_named
from trioloop.models.demonstration.declaration import DeclaredTool
from trioloop.models.demonstration.filling import Filled, fill
from trioloop.models.demonstration.question import Piece, join, pieces_of
from trioloop.models.demonstration.values import NOTHING, Reader
from trioloop.models.demonstration.words import BACK_REFERENCES

_PIECES_MAX = 24
_RUN_MAX = 5


@attrs.frozen
class PlannedCall:
    """A call that the question asks for."""

    tool: str
    arguments: dict[str, object]


@attrs.frozen
class Waiting:
    """A piece that speaks of the result before it ("multiply that by 4")."""

    piece: Piece


@attrs.frozen
class Unserved:
    """A piece that no call answers: `tool` fits, but for the `missing` values; or no tool does."""

    text: str
    tool: str | None = None
    missing: tuple[str, ...] = ()


Step: TypeAlias = PlannedCall | Waiting | Unserved


def plan(question: str, tools: Sequence[DeclaredTool], reader: Reader) -> list[Step]:
    """What a question asks for, piece by piece, in order."""
    return _Planner(pieces_of(question)[:_PIECES_MAX], tools, reader).steps()


class _Planner:
    """Walks over the pieces of one question; a piece is chosen for once."""

    def __init__(
        self, pieces: Sequence[Piece], tools: Sequence[DeclaredTool], reader: Reader
    ) -> None:
        self._pieces = pieces
        self._tools = tools
        self._reader = reader
        self._chosen: dict[tuple[int, int], Choice | None] = {}
        self._steps: list[Step] = []

    def steps(self) -> list[Step]:
        """The steps of all pieces."""
        position = 0
        while position < len(self._pieces):
            position = self._go_on(position)
        return self._steps

    def _choose(self, start: int, end: int) -> Choice | None:
        if (start, end) not in self._chosen:
            piece = join(self._pieces[start:end])
            self._chosen[start, end] = choose(piece, self._tools, self._reader)
        return self._chosen[start, end]

    def _go_on(self, start: int) -> int:
        """Add the steps of the shortest run of pieces that gives a whole call; where it ends."""
        if self._steps and self._waits(start):
            self._steps.append(Waiting(self._pieces[start]))
            return start + 1
        for end in range(start + 1, min(start + _RUN_MAX, len(self._pieces)) + 1):
            choice = self._choose(start, end)
            if choice is not None and not choice.filled.missing:
                first = self._needed_from(start, end, choice)
                self._leave(start, first)
                return self._call(first, end, choice)
        return self._without_call(start)

    def _waits(self, start: int) -> bool:
        """Whether a piece fits a tool, lacks a value, and points back to a result."""
        if all(token.lower not in BACK_REFERENCES for token in self._pieces[start].tokens):
            return False
        choice = self._choose(start, start + 1)
        return choice is not None and bool(choice.filled.missing)

    def _needed_from(self, start: int, end: int, choice: Choice) -> int:
        """Where the run may begin as well: what stands before it is something else."""
        for first in range(end - 1, start, -1):
            later = self._choose(first, end)
            same = later is not None and later.tool is choice.tool
            if same and later is not None and later.filled.arguments == choice.filled.arguments:
                return first
        return start

    def _leave(self, start: int, end: int) -> None:
        for piece in self._pieces[start:end]:
            if not piece.is_idle_talk:
                self._steps.append(Unserved(piece.question))

    def _call(self, start: int, end: int, choice: Choice) -> int:
        """Add the call of a run, with those of the pieces after it that only add values to it."""
        calls = [choice.filled]
        while end < len(self._pieces) and self._choose(end, end + 1) is None:
            wider = fill(join(self._pieces[start : end + 1]), choice.tool, self._reader)
            again = self._again(self._pieces[end], choice)
            if again is not None:
                calls.append(again)
            elif len(calls) == 1 and _adds(wider, calls[0]):
                calls[0] = wider
            else:
                break
            end += 1
        self._steps += [PlannedCall(choice.tool.name, filled.arguments) for filled in calls]
        return end

    def _again(self, piece: Piece, choice: Choice) -> Filled | None:
        """The same call for another value ("... and Tokyo"), where one parameter is required."""
        required = [parameter for parameter in choice.tool.parameters if parameter.required]
        if len(required) != 1 or required[0].is_list:
            return None
        if not all(is_named(piece, word) for word in piece.words):
            return None
        value = fill(Piece.of(f"for {piece.text}"), choice.tool, self._reader)
        if value.missing:
            return None
        return attrs.evolve(value, arguments=choice.filled.arguments | value.arguments)

    def _without_call(self, start: int) -> int:
        choice = self._choose(start, start + 1)
        if choice is None:
            self._leave(start, start + 1)
            return start + 1
        last = self._steps[-1] if self._steps else None
        repeats = isinstance(last, PlannedCall) and last.tool == choice.tool.name
        if repeats and not choice.filled.used:
            return start + 1
        end, missing = self._closest(start, choice)
        said = join(self._pieces[start:end]).question
        self._steps.append(Unserved(said, choice.tool.name, missing))
        return end

    def _closest(self, start: int, choice: Choice) -> tuple[int, tuple[str, ...]]:
        """How far the pieces go on that give a call more of its values, and what still lacks."""
        end, missing = start + 1, choice.filled.missing
        while end < len(self._pieces) and self._choose(end, end + 1) is None:
            wider = fill(join(self._pieces[start : end + 1]), choice.tool, self._reader)
            if len(wider.missing) >= len(missing):
                break
            end, missing = end + 1, wider.missing
        return end, missing


def _adds(wider: Filled, narrow: Filled) -> bool:
    """Whether more text gave more: a parameter by its name, an argument, a longer list."""
    if wider.missing or wider.arguments == narrow.arguments:
        return False
    if wider.named > narrow.named:
        return True
    kept = all(
        name in wider.arguments and (wider.arguments[name] == value or isinstance(value, list))
        for name, value in narrow.arguments.items()
    )
    return kept and len(wider.used) > len(narrow.used)


def settle(waiting: Waiting, result: str, tools: Sequence[DeclaredTool], reader: Reader) -> Step:
    """The step of a piece that waited, now that the result before it is known."""
    piece = waiting.piece
    for token in piece.tokens:
        if token.lower in BACK_REFERENCES:
            before = piece.source[piece.tokens[0].start : token.start]
            after = piece.source[token.end : piece.tokens[-1].end]
            choice = choose(Piece.of(f"{before}{result}{after}"), tools, reader)
            if choice is not None and not choice.filled.missing:
                return PlannedCall(choice.tool.name, choice.filled.arguments)
    return Unserved(piece.question)


def forced_call(
    text: str, tool: DeclaredTool, reader: Reader, *, complete: bool = False
) -> PlannedCall | None:
    """A call of this very tool for a text, or None where the text hasn't the values.

    With `complete`, values that are valid and nothing more stand in for those that are missing.
    """
    filled = fill(Piece.of(text), tool, reader)
    arguments = dict(filled.arguments)
    for parameter in tool.parameters:
        if complete and parameter.name in filled.missing:
            arguments[parameter.name] = reader.stand_in(parameter.forms, text)
    lacking = any(name not in arguments or arguments[name] is NOTHING for name in filled.missing)
    return None if lacking else PlannedCall(tool.name, arguments)
