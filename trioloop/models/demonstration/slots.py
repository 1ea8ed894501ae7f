"""The tokens of a piece and the parameters of a tool, while values go from one to the other."""

from collections.abc import Callable, Iterator, Sequence

from trioloop.models.demonstration.declaration import DeclaredTool, Parameter
from trioloop.models.demonstration.question import Piece, Token
from trioloop.models.demonstration.values import NOTHING, Reader


class Slots:
    """What is filled so far. A token gives one value at most.

    Attributes:
        values: by parameter name.
        used: indices of the tokens that gave values.
        reserved: indices of the tokens that name parameters.
    """

    def __init__(self, piece: Piece, tool: DeclaredTool, reader: Reader) -> None:
        self.piece = piece
        self.tokens = piece.tokens
        self.tool = tool
        self.values: dict[str, object] = {}
        self.used: set[int] = set()
        self.reserved: set[int] = set()
        self._reader = reader

    def is_free(self, start: int, end: int) -> bool:
        """Whether the tokens from `start` to before `end` may give a value."""
        return all(i not in self.used and i not in self.reserved for i in range(start, end))

    def read(self, parameter: Parameter, start: int, end: int) -> object:
        """The value that the tokens make for a parameter, or NOTHING."""
        return self._reader.read(self.tokens[start:end], parameter.forms)

    def read_tokens(self, parameter: Parameter, tokens: Sequence[Token]) -> object:
        """The value that some tokens make for a parameter, or NOTHING."""
        return self._reader.read(tokens, parameter.forms)

    def give(self, parameter: Parameter, value: object, span: Sequence[int]) -> None:
        """Give a parameter its value, from these tokens."""
        self.values[parameter.name] = value
        self.used.update(span)

    def take(self, parameter: Parameter, start: int, end: int) -> bool:
        """Give a parameter what the free tokens from `start` to before `end` make, if anything."""
        if not self.is_free(start, end):
            return False
        value = self.read(parameter, start, end)
        if value is NOTHING:
            return False
        self.give(parameter, value, range(start, end))
        return True

    def open(self, wanted: Callable[[Parameter], bool]) -> list[Parameter]:
        """Parameters without a value, the required ones first."""
        parameters = self.tool.parameters
        found = [p for p in parameters if p.name not in self.values and wanted(p)]
        return sorted(found, key=lambda p: not p.required)

    def spans(self, width: int, wanted: Callable[[Token], bool]) -> Iterator[tuple[int, int]]:
        """Free runs of `width` tokens whose first is wanted."""
        for index in range(len(self.tokens) - width + 1):
            if wanted(self.tokens[index]) and self.is_free(index, index + width):
                yield index, index + width
