"""Arguments that a question names: "unit is F", `limit=5`, "3 copies", "without caching"."""

from collections.abc import Callable, Iterator, Sequence

import attrs

from trioloop.models.demonstration.declaration import Parameter
from trioloop.models.demonstration.question import Token
from trioloop.models.demonstration.slots import Slots
from trioloop.models.demonstration.values import NOTHING, is_valid
from trioloop.models.demonstration.words import (
    ARTICLES,
    CONNECTORS,
    NEGATIONS,
    PREPOSITIONS,
    STOPWORDS,
    stem,
)

_LEADING = ("to", "at", "as")
_SPAN_MAX = 6
_LIST_SPAN_MAX = 40


@attrs.frozen
class _Mention:
    parameter: Parameter
    first: int
    last: int


class Naming:
    """Finds where a piece names a tool's parameters, and the values beside their names."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._tokens = slots.tokens
        self._mentions = list(self._find_mentions())
        for mention in self._mentions:
            slots.reserved.update(range(mention.first, mention.last + 1))

    @property
    def named(self) -> frozenset[str]:
        """The parameters that the piece names."""
        return frozenset(mention.parameter.name for mention in self._mentions)

    def read(self, *, after_first: bool) -> None:
        """Read the values: those after a name first, or those before one."""
        self._read_objects()
        passes: list[Callable[[_Mention], None]] = [self._read_after, self._read_before]
        for read in passes if after_first else reversed(passes):
            for mention in self._mentions:
                if mention.parameter.name not in self._slots.values:
                    read(mention)
        for mention in self._mentions:
            self._read_flag(mention)

    def _read_objects(self) -> None:
        """Arguments written as one JSON object."""
        for index, token in enumerate(self._tokens):
            if not isinstance(token.value, dict):
                continue
            for parameter in self._slots.tool.parameters:
                value = token.value.get(parameter.name, NOTHING)
                if any(is_valid(value, form) for form in parameter.forms):
                    self._slots.give(parameter, value, [index])

    def _find_mentions(self) -> Iterator[_Mention]:
        taken: set[int] = set(self._name_tokens())
        found: list[_Mention] = []
        for parameter in sorted(self._slots.tool.parameters, key=lambda p: -len(p.words)):
            for mention in self._mentions_of(parameter):
                span = range(mention.first, mention.last + 1)
                if taken.isdisjoint(span):
                    taken.update(span)
                    found.append(mention)
        yield from sorted(found, key=lambda mention: mention.first)

    def _name_tokens(self) -> Iterator[int]:
        """Tokens that spell out the tool's whole name; they mention no parameter."""
        words = self._slots.tool.name.lower().replace("-", "_").split("_")
        if len(words) > 1:
            for first, last in _runs(self._tokens, words, lambda a, b: a == b):
                yield from range(first, last + 1)

    def _mentions_of(self, parameter: Parameter) -> Iterator[_Mention]:
        for index, token in enumerate(self._tokens):
            if token.kind == "word" and token.text == parameter.name:
                yield _Mention(parameter, index, index)
        exact = len("".join(parameter.words)) < 3
        same = (lambda a, b: a == b) if exact else (lambda a, b: stem(a) == stem(b))
        for first, last in _runs(self._tokens, parameter.words, same):
            yield _Mention(parameter, first, last)

    def _read_after(self, mention: _Mention) -> None:
        if self._follows_as(mention):
            return
        start, told = self._skip_connectors(mention.last + 1)
        if start >= len(self._tokens) or start in self._slots.reserved:
            return
        bare = mention.parameter.is_text and self._tokens[start].kind == "word" and not told
        if bare and self._tokens[start].lower in STOPWORDS and not self._tokens[start].is_name:
            return
        self._take(mention.parameter, start, self._end_of(mention.parameter, start))

    def _skip_connectors(self, index: int) -> tuple[int, bool]:
        told = False
        while index < len(self._tokens):
            lower = self._tokens[index].lower
            before = self._tokens[index - 1].lower
            joined = lower == "to" and before in ("set", "equal", "equals")
            if lower not in CONNECTORS | ARTICLES or (told and lower in _LEADING and not joined):
                break
            told = told or lower in CONNECTORS
            index += 1
        return index, told

    def _end_of(self, parameter: Parameter, start: int) -> int:
        """Where a value from `start` on must end: at the next name, comma or joining word."""
        limit = start + (_LIST_SPAN_MAX if parameter.is_list else _SPAN_MAX)
        for index in range(start, min(limit, len(self._tokens))):
            if index in self._slots.reserved or index in self._slots.used:
                return index
            if index > start and parameter.is_text and self._ends_value(index):
                return index
        return min(limit, len(self._tokens))

    def _ends_value(self, index: int) -> bool:
        token = self._tokens[index]
        if token.kind == "mark":
            return token.text in ",;:=()" or not self._is_glued(index)
        return token.is_value or token.lower in PREPOSITIONS | {"and", "or", "please", "then"}

    def _is_glued(self, index: int) -> bool:
        """Whether a mark stands inside a word, as in `R&D`."""
        token = self._tokens[index]
        following = self._tokens[index + 1 : index + 2]
        return token.start == self._tokens[index - 1].end and any(
            other.start == token.end for other in following
        )

    def _take(self, parameter: Parameter, start: int, end: int) -> bool:
        """Give a parameter the longest value that begins at `start`."""
        for last in range(end, start, -1):
            value = self._slots.read(parameter, start, last)
            if value is not NOTHING:
                self._slots.give(parameter, value, range(start, last))
                return True
        return False

    def _read_before(self, mention: _Mention) -> None:
        end, parameter = mention.first, mention.parameter
        widths: tuple[int, ...] = (3, 2, 1)
        if self._follows_as(mention):
            end -= 1
            widths = (1,) if parameter.is_text else widths
        elif self._is_assigned(mention) or (parameter.is_text and not parameter.members):
            return
        for width in widths:
            if end >= width and self._slots.take(parameter, end - width, end):
                return

    def _follows_as(self, mention: _Mention) -> bool:
        """Whether a value stands before the name: `5 as limit`."""
        before = self._tokens[max(0, mention.first - 2) : mention.first]
        return len(before) == 2 and before[1].lower == "as" and before[0].kind != "mark"

    def _is_assigned(self, mention: _Mention) -> bool:
        return any(t.text in "=:" for t in self._tokens[mention.last + 1 : mention.last + 2])

    def _read_flag(self, mention: _Mention) -> None:
        """A flag that is only named is meant; "no", "without" before its name mean the contrary."""
        if not mention.parameter.is_flag or mention.parameter.name in self._slots.values:
            return
        before = {token.lower for token in self._tokens[max(0, mention.first - 2) : mention.first]}
        self._slots.give(
            mention.parameter, not before & NEGATIONS, range(mention.first, mention.last + 1)
        )


def _runs(
    tokens: Sequence[Token], words: Sequence[str], same: Callable[[str, str], bool]
) -> Iterator[tuple[int, int]]:
    """Where `words` stand one after the other, outside values."""
    for first in range(len(tokens) - len(words) + 1):
        run = tokens[first : first + len(words)]
        if all(
            token.kind in ("word", "number") and same(token.lower, word)
            for token, word in zip(run, words, strict=True)
        ):
            yield first, first + len(words) - 1
