"""Finding a tool's arguments in a piece of a question: what it names, then what it only holds."""

import attrs

from trioloop.models.demonstration.declaration import DeclaredTool
from trioloop.models.demonstration.guessing import Guessing
from trioloop.models.demonstration.naming import Naming
from trioloop.models.demonstration.question import Piece
from trioloop.models.demonstration.slots import Slots
from trioloop.models.demonstration.values import Reader


@attrs.frozen
class Filled:
    """What a piece says for a tool.

    Attributes:
        arguments: by parameter name, in declared order.
        missing: required parameters that it has no value for.
        used: indices of the tokens that gave values.
        named: parameters that the piece names, with values.
    """

    arguments: dict[str, object]
    missing: tuple[str, ...]
    used: frozenset[int]
    named: frozenset[str]


def fill(piece: Piece, tool: DeclaredTool, reader: Reader) -> Filled:
    """The arguments that a piece gives a tool, read in the way that finds most of them."""
    ways = (_fill(piece, tool, reader, after_first) for after_first in (True, False))
    return max(ways, key=lambda filled: len(filled.arguments))


def _fill(piece: Piece, tool: DeclaredTool, reader: Reader, after_first: bool) -> Filled:
    slots = Slots(piece, tool, reader)
    naming = Naming(slots)
    naming.read(after_first=after_first)
    Guessing(slots).read()
    arguments = {p.name: slots.values[p.name] for p in tool.parameters if p.name in slots.values}
    missing = tuple(p.name for p in tool.parameters if p.required and p.name not in arguments)
    return Filled(arguments, missing, frozenset(slots.used), naming.named & arguments.keys())
