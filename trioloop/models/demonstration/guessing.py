"""Arguments that a question only holds: members of enumerations, dates, numbers, names."""

from collections.abc import Callable, Iterator, Sequence

from trioloop.models.demonstration.declaration import Parameter, form_of
from trioloop.models.demonstration.question import Token, looks_like_path
from trioloop.models.demonstration.slots import Slots
from trioloop.models.demonstration.values import NOTHING
from trioloop.models.demonstration.words import (
    ARTICLES,
    LEADS_FROM,
    LEADS_TO,
    OPENING_WORDS,
    PREPOSITIONS,
    alike,
    is_content,
    meanings,
    stem,
)

_KIND_WORDS = {
    "url": frozenset({"url", "uri", "link", "page", "site", "website"}),
    "email": frozenset({"email", "mail", "recipient"}),
    "uuid": frozenset({"uuid", "id"}),
}
_FLAGS = frozenset({"true", "false", "yes", "no"})
_FROM = frozenset({"from", "source", "origin", "start", "begin", "since", "first", "min", "low"})
_TO = frozenset({"to", "target", "destination", "end", "stop", "until", "last", "max", "high"})


class Guessing:
    """Gives the parameters that a piece doesn't name the values that fit them, surest first."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._tokens = slots.tokens

    def read(self) -> None:
        """Give what can be given."""
        self._fill_members()
        self._fill_flags()
        self._fill_particular()
        self._fill_numbers()
        self._fill_texts()

    def _fill_flags(self) -> None:
        said = _FLAGS.__contains__
        flags = self._slots.open(lambda p: p.is_flag)
        self._fill_in_order(flags, lambda _: self._slots.spans(1, lambda t: said(t.lower)))

    def _fill_members(self) -> None:
        self._fill_in_order(self._slots.open(lambda p: bool(p.members)), self._member_spans)

    def _fill_particular(self) -> None:
        """Dates, addresses, identifiers, objects and lists written as JSON, paths."""
        for parameter in self._slots.open(lambda p: not p.members and not p.is_flag):
            self._fill_in_order([parameter], self._particular_spans)
        for parameter in self._slots.open(lambda p: p.is_file):
            self._fill_in_order([parameter], lambda _: self._slots.spans(1, looks_like_path))
        for parameter in self._slots.open(lambda p: p.is_list and p.required):
            self._fill_list(parameter)

    def _fill_numbers(self) -> None:
        numeric = self._slots.open(
            lambda p: form_of(p.forms[0]) in ("integer", "number") if p.forms else False
        )
        self._fill_in_order(
            numeric, lambda _: self._slots.spans(1, lambda t: isinstance(t.value, int | float))
        )

    def _fill_in_order(
        self,
        parameters: Sequence[Parameter],
        spans: Callable[[Parameter], Iterator[tuple[int, int]]],
    ) -> None:
        """Give each parameter the first free value, one with a fitting word before it first."""
        for parameter in sorted(parameters, key=lambda p: not (set(p.words) & (_FROM | _TO))):
            candidates = sorted(spans(parameter), key=lambda span: self._lead_rank(parameter, span))
            for start, end in candidates:
                value = self._slots.read(parameter, start, end)
                if value is not NOTHING and self._slots.is_free(start, end):
                    self._slots.give(parameter, value, range(start, end))
                    break

    def _lead_rank(self, parameter: Parameter, span: tuple[int, int]) -> tuple[int, int]:
        lead = self._lead(span[0])
        words = set(parameter.words)
        for wanted, leads in ((_FROM, LEADS_FROM), (_TO, LEADS_TO)):
            if words & wanted:
                return (0 if lead in leads else 1, span[0])
        return (0, span[0])

    def _lead(self, index: int) -> str:
        while index > 0 and self._tokens[index - 1].lower in ARTICLES | {"and"}:
            index -= 1
        if index == 0:
            return ""
        token = self._tokens[index - 1]
        return "#" if token.kind == "number" else token.lower

    def _member_spans(self, parameter: Parameter) -> Iterator[tuple[int, int]]:
        for width in (3, 2, 1):
            yield from self._slots.spans(
                width, lambda t: t.kind != "mark" and t.lower not in ARTICLES
            )

    def _particular_spans(self, parameter: Parameter) -> Iterator[tuple[int, int]]:
        formats = {form.get("format") for form in parameter.forms}
        if formats & {"date", "date-time", "duration", "time"}:
            for width in (4, 3, 2, 1):
                yield from self._slots.spans(width, lambda t: t.kind != "quoted")
        kinds = set() if parameter.is_text else {"url", "email", "uuid", "json"}
        kinds |= {kind for kind, words in _KIND_WORDS.items() if words & set(parameter.words)}
        if parameter.is_file:
            kinds.add("path")
        yield from self._slots.spans(1, lambda t: t.kind in kinds)

    def _fill_list(self, parameter: Parameter) -> None:
        """All free values that the list may hold, in order."""
        found: list[Token] = []
        for wanted in (lambda t: t.is_value, lambda t: t.is_name):
            spans = [
                (i, j)
                for i, j in self._slots.spans(1, wanted)
                if self._slots.read(parameter, i, j) is not NOTHING or not parameter.is_list
            ]
            found = [self._tokens[i] for i, _ in spans if i > 0 or not self._tokens[i].is_name]
            value = self._slots.read_tokens(parameter, _comma_joined(found))
            if value is not NOTHING:
                self._slots.give(parameter, value, [i for i, _ in spans])
                return

    def _fill_texts(self) -> None:
        for parameter in self._slots.open(lambda p: p.has_format):
            self._quoted(parameter)
        for parameter in self._slots.open(lambda p: p.is_text and not p.members):
            for find in (self._expression, self._quoted, self._named, self._rest):
                if parameter.name not in self._slots.values:
                    find(parameter)

    def _expression(self, parameter: Parameter) -> None:
        wants = {"expression", "formula", "expr", "sum", "calculation"} & set(parameter.words)
        expression = self._slots.piece.expression
        if wants and expression:
            inside = [i for i, t in enumerate(self._tokens) if t.text in expression]
            self._slots.give(parameter, expression, inside)

    def _quoted(self, parameter: Parameter) -> None:
        spans = self._slots.spans(1, lambda t: t.kind == "quoted")
        self._fill_in_order([parameter], lambda _: spans)

    def _named(self, parameter: Parameter) -> None:
        if parameter.required:
            self._fill_in_order([parameter], lambda _: self._name_spans())
        elif set(parameter.words) & (_FROM | _TO):
            led = [s for s in self._name_spans() if self._lead_rank(parameter, s)[0] == 0]
            self._fill_in_order([parameter], lambda _: iter(led))

    def _name_spans(self) -> Iterator[tuple[int, int]]:
        """Runs of capitalised words and single values; those after a preposition first."""
        runs = list(self._capitalised_runs())
        yield from (run for run in runs if self._lead(run[0]) in PREPOSITIONS)
        yield from (run for run in runs if self._lead(run[0]) not in PREPOSITIONS)
        yield from self._slots.spans(1, lambda t: t.is_value and t.kind != "number")

    def _capitalised_runs(self) -> Iterator[tuple[int, int]]:
        index = 0
        while index < len(self._tokens):
            end = index
            while end < len(self._tokens) and self._may_name(end):
                end += 1
            if end > index:
                yield index, end
            index = max(end, index + 1)

    def _may_name(self, index: int) -> bool:
        token = self._tokens[index]
        if not token.is_name or not self._slots.is_free(index, index + 1):
            return False
        return index > 0 or (not self._is_about_tool(token) and is_content(token.text))

    def _is_about_tool(self, token: Token) -> bool:
        said = stem(token.text)
        known = {
            *self._slots.tool.name_words,
            *self._slots.tool.core_words,
            *self._slots.tool.other_words,
        }
        return any(alike(meaning, word) for meaning in meanings(said) for word in known)

    def _rest(self, parameter: Parameter) -> None:
        """For a required text that nothing else fits: what follows the words that name the tool."""
        if not parameter.required:
            return
        free: list[int] = []
        for index in range(self._after_tool_words(), len(self._tokens)):
            if self._slots.is_free(index, index + 1):
                free.append(index)
            elif free:
                break
        while free and self._tokens[free[-1]].text in ".?!,;:":
            free.pop()
        words = [i for i in free if self._tokens[i].kind != "mark"]
        if words and any(is_content(self._tokens[i].text) for i in words):
            self._slots.give(parameter, self._slots.piece.between(free[0], free[-1]), free)

    def _after_tool_words(self) -> int:
        about = [
            i for i, t in enumerate(self._tokens) if t.kind == "word" and self._is_about_tool(t)
        ]
        if not about:
            return len(self._tokens)
        index = about[0]
        while index < len(self._tokens) and (
            index in about
            or self._tokens[index].text == ":"
            or self._tokens[index].lower in OPENING_WORDS
        ):
            index += 1
        return index


def _comma_joined(tokens: Sequence[Token]) -> list[Token]:
    joined: list[Token] = []
    for token in tokens:
        if joined:
            joined.append(Token("mark", ",", ",", token.start, token.start))
        joined.append(token)
    return joined
