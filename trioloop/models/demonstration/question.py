"""Reading a question: its tokens with their values, and the pieces that "and" and stops part."""

import json
import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from typing import Literal, TypeAlias

import attrs

from trioloop.models.demonstration.words import NUMBERS, UNITS, is_content, stem

Kind: TypeAlias = Literal[
    "quoted", "json", "url", "email", "uuid", "datetime", "date", "time", "path", "number",
    "word", "mark",
]  # fmt: skip

_PATTERNS: tuple[tuple[Kind, str], ...] = (
    (
        "quoted",
        r'"(?:[^"\\]|\\.)*"|“[^”]*”|«[^»]*»|`[^`]+`'
        r"|(?<!\w)'(?:[^'\\]|\\.|'(?=\w))*'(?!\w)"
        r"|(?<!\w)\u2018(?:[^\u2019]|\u2019(?=\w))*\u2019(?!\w)",
    ),
    ("url", r"\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s<>\"']*[^\s<>\"'.,;:!?)]"),
    ("email", r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b"),
    ("uuid", r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"),
    (
        "datetime",
        r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?(?!\w)",
    ),
    ("date", r"\b\d{4}-\d\d-\d\d\b"),
    ("time", r"\b\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?(?!\w)"),
    (
        "path",
        r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\][\w.@+-]+(?:[/\\][\w.@+-]*)*(?<![.,])"
        r"|\b[\w@+-]+(?:[/\\][\w.@+-]+)+(?<![.,])|\b[\w-]+(?:\.[\w-]+)*\.[A-Za-z][A-Za-z0-9]{0,4}\b"
        r"(?!\()",
    ),
    (
        "number",
        r"(?<![\w.)\]])[-+\u2212]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.]*\d[A-Za-z])"
        r"|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|[-+]?\.\d+",
    ),
    ("word", r"[^\W\d]\w*(?:['\u2019-]\w+)*|[°$€£%]\w*"),
    ("mark", r"->|=>|[^\w\s]"),
)
_TOKEN = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _PATTERNS))
_DECODER = json.JSONDecoder()
_LENGTH_MAX = 20_000
_TOKENS_MAX = 400
_EXPRESSION = re.compile(r"[-+( ]*\d[\d .()]*(?:(?:\*\*|//|[-+*/^%])[-+( ]*\d[\d .()]*)+")


@attrs.frozen
class Token:
    """One word, value or mark of a question.

    Attributes:
        kind: what it looks like.
        text: as it stands in the question.
        value: what it says: the number, the unquoted text, the decoded JSON.
        start: where it begins.
        end: where it ends.
    """

    kind: Kind
    text: str
    value: object
    start: int
    end: int

    @property
    def lower(self) -> str:
        """The text in lower case."""
        return self.text.lower()

    @property
    def is_name(self) -> bool:
        """Whether it is written like a name."""
        return self.kind == "word" and self.text[:1].isupper()

    @property
    def is_value(self) -> bool:
        """Whether it can only be a value."""
        return self.kind not in ("word", "mark")


@lru_cache(maxsize=64)
def tokens_of(text: str) -> tuple[Token, ...]:
    """The first tokens of a question, in order; what is longer than a question isn't read on."""
    return tuple(islice(_tokens(text[:_LENGTH_MAX]), _TOKENS_MAX))


def _tokens(text: str) -> Iterator[Token]:
    position = 0
    while position < len(text):
        token = _json_token(text, position) or _pattern_token(text, position)
        if token is None:
            position += 1
        else:
            yield token
            position = token.end


def _json_token(text: str, start: int) -> Token | None:
    closing = {"[": "]", "{": "}"}.get(text[start])
    if closing is None or text.find(closing, start) < 0:
        return None
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return Token("json", text[start:end], value, start, end)


def _pattern_token(text: str, start: int) -> Token | None:
    found = _TOKEN.match(text, start)
    if found is None:
        return None
    kind: Kind = found.lastgroup  # type: ignore[assignment]  # the groups are named after the kinds
    return Token(kind, found.group(), _value(kind, found.group()), start, found.end())


def _value(kind: Kind, text: str) -> object:
    if kind == "quoted":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    if kind == "number":
        return _number(text.replace(",", "").replace("\u2212", "-"))
    if kind == "word":
        return NUMBERS.get(text.lower(), text)
    return text


def _number(text: str) -> int | float:
    return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)


def looks_like_path(token: Token) -> bool:
    """Whether a token is a path, in quotes or not."""
    if token.kind != "quoted":
        return token.kind == "path"
    inside = tokens_of(str(token.value))
    return len(inside) == 1 and inside[0].kind == "path"


# Pieces


@attrs.frozen
class Piece:
    """A part of a question that may be one request of its own: some tokens of its source."""

    source: str
    tokens: tuple[Token, ...]

    @classmethod
    def of(cls, source: str) -> "Piece":
        """The whole of a text as one piece."""
        return cls(source, tokens_of(source))

    @property
    def text(self) -> str:
        """Its words, as they stand."""
        return self.between(0, len(self.tokens) - 1) if self.tokens else ""

    @property
    def question(self) -> str:
        """Its words without the mark that ends them."""
        return self.text.rstrip(" .!?;:")

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The stems of what it is about, with those that its values imply."""
        told = [stem(token.text) for token in self.tokens if _tells(token)]
        return tuple(dict.fromkeys([*told, *self._implied()]))

    def _implied(self) -> Iterator[str]:
        if self.expression is not None:
            yield stem("calculate")
            yield from (mark for mark in "+-*/" if mark in self.expression)
        if len(self._units) > 1:
            yield stem("convert")
        elif "how many" in self.text.lower():
            yield stem("count")
        if any(token.kind == "path" for token in self.tokens):
            yield stem("file")

    @property
    def _units(self) -> set[str]:
        told = (stem(token.text) for token in self.tokens if _tells(token))
        return {UNITS[word] for word in told if word in UNITS}

    @cached_property
    def expression(self) -> str | None:
        """The first arithmetic expression, such as `2 + 3`."""
        bare = self._between_values()
        found = _EXPRESSION.search(bare)
        return found.group().strip(" .") if found else None

    def _between_values(self) -> str:
        """The text with single blanks, and a bar for each value that is no number."""
        counted = ("number", "mark", "word")
        text, end = "", 0
        for token in self.tokens:
            text += " " * (token.start > end) + (token.text if token.kind in counted else "|")
            end = token.end
        return text

    @property
    def is_idle_talk(self) -> bool:
        """Whether nothing in it could be asked of a tool: a greeting, a thank-you."""
        return not self.words and not any(token.is_value for token in self.tokens)

    def between(self, first: int, last: int) -> str:
        """The text from token `first` up to and with token `last`."""
        return self.source[self.tokens[first].start : self.tokens[last].end]


def _tells(token: Token) -> bool:
    return token.kind == "word" and is_content(token.text)


def pieces_of(text: str) -> list[Piece]:
    """A question, parted where "and", "then" and full stops stand; never inside a value."""
    tokens = tokens_of(text)
    parts: list[list[Token]] = [[]]
    for index, token in enumerate(tokens):
        if not _parts(tokens, index):
            parts[-1].append(token)
            continue
        if token.text in ".!?":
            parts[-1].append(token)
        parts.append([])
    return [
        Piece(text, tuple(_without_commas(part)))
        for part in parts
        if any(token.kind != "mark" for token in part)
    ]


def _without_commas(tokens: Sequence[Token]) -> Sequence[Token]:
    start = 1 if tokens[0].text == "," else 0
    return tokens[start : len(tokens) - (tokens[-1].text == ",")]


def _parts(tokens: Sequence[Token], index: int) -> bool:
    token = tokens[index]
    if token.kind == "word":
        return token.lower in ("and", "then")
    if token.kind != "mark":
        return False
    ends = index + 1 == len(tokens) or tokens[index + 1].start > token.end
    return token.text == ";" or (token.text in ".!?" and ends)


def join(pieces: Sequence[Piece]) -> Piece:
    """Neighbouring pieces of one text as one, with what parts them."""
    if len(pieces) == 1:
        return pieces[0]
    source, start, end = pieces[0].source, pieces[0].tokens[0].start, pieces[-1].tokens[-1].end
    return Piece(source, tuple(t for t in tokens_of(source) if start <= t.start and t.end <= end))
