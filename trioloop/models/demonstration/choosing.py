"""Choosing the tool that a piece of a question speaks of, or none.

A tool fits when enough of its own words and enough of the piece's are the same; among those that
fit, rare words, a word of the name, and arguments that could be found count most.
"""

from collections.abc import Sequence

import attrs

from trioloop.models.demonstration.declaration import DeclaredTool
from trioloop.models.demonstration.filling import Filled, fill
from trioloop.models.demonstration.question import Piece
from trioloop.models.demonstration.values import Reader
from trioloop.models.demonstration.words import alike, meanings, stem

_NAMED_WHOLE = 50.0
_NAME, _CORE, _OTHER = 5.0, 3.0, 1.5
_PER_ARGUMENT, _PER_MISSING = 1.0, 2.0


@attrs.frozen
class Choice:
    """A tool that fits a piece, with what the piece says for it."""

    tool: DeclaredTool
    filled: Filled
    score: float


def choose(piece: Piece, tools: Sequence[DeclaredTool], reader: Reader) -> Choice | None:
    """The tool that fits a piece best, or None where none fits."""
    rarity = _rarity(piece, tools)
    choices = [
        Choice(tool, filled, _score(piece, tool, filled, rarity))
        for tool in tools
        if _fits(piece, tool)
        for filled in [fill(piece, tool, reader)]
    ]
    return max(choices, key=lambda choice: choice.score, default=None)


def _fits(piece: Piece, tool: DeclaredTool) -> bool:
    """Whether a piece speaks of a tool, by enough of the tool's words and of its own."""
    if _names_whole(piece, tool):
        return True
    topics = [word for word in piece.words if not is_named(piece, word)] or list(piece.words)
    if not topics:
        return False
    known = tool.core_words | tool.other_words | set(tool.name_words)
    coverage = sum(_knows(known, word) for word in topics) / len(topics)
    named = _share(tool.name_words, piece)
    core = any(_knows(tool.core_words, word) for word in topics)
    if named and named + coverage > 1:
        return True
    return core and coverage >= 0.5 and (coverage == 1 or len(topics) > 2)


def is_named(piece: Piece, word: str) -> bool:
    """Whether a word of a piece is written like a name there."""
    return any(alike(word, stem(token.text)) for token in piece.tokens if token.is_name)


def _share(name_words: Sequence[str], piece: Piece) -> float:
    if not name_words:
        return 0.0
    return sum(_knows(piece.words, word) for word in name_words) / len(name_words)


def _knows(known: Sequence[str] | frozenset[str] | set[str], word: str) -> bool:
    return any(alike(meaning, other) for meaning in meanings(word) for other in known)


def _names_whole(piece: Piece, tool: DeclaredTool) -> bool:
    said = {token.lower for token in piece.tokens if token.kind in ("word", "path")}
    spelled = f" {' '.join(token.lower for token in piece.tokens if token.kind == 'word')} "
    name = tool.name.lower()
    words = name.replace("_", " ").replace("-", " ")
    return name in said or (" " in words and f" {words} " in spelled)


def _rarity(piece: Piece, tools: Sequence[DeclaredTool]) -> dict[str, float]:
    """How telling each word of a piece is: less, the more tools know it."""
    return {
        word: 1 / max(1, sum(_knows(_all_words(tool), word) for tool in tools))
        for word in piece.words
    }


def _all_words(tool: DeclaredTool) -> frozenset[str]:
    return tool.core_words | tool.other_words | frozenset(tool.name_words)


def _score(piece: Piece, tool: DeclaredTool, filled: Filled, rarity: dict[str, float]) -> float:
    score = _NAMED_WHOLE if _names_whole(piece, tool) else 0.0
    for word, weight in rarity.items():
        if _knows(tool.name_words, word):
            score += _NAME * weight
        elif _knows(tool.core_words, word):
            score += _CORE * weight
        elif _knows(tool.other_words, word):
            score += _OTHER * weight
    return score + _PER_ARGUMENT * len(filled.arguments) - _PER_MISSING * len(filled.missing)
