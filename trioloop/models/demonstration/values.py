"""Turning tokens into arguments: a value for one form of a JSON Schema, or none.

Whatever leaves this file is valid for the schema that it was made for.
"""

import math
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

from trioloop.models.demonstration.declaration import (
    Schema,
    form_of,
    members_of,
    parameters_of,
    resolve,
)
from trioloop.models.demonstration.question import Token
from trioloop.models.demonstration.words import MONTHS, NO, UNITS, YES, stem


class _Nothing:
    """The answer where tokens make no value; None is a value."""


NOTHING = _Nothing()
_DAYS = {"today": 0, "tomorrow": 1, "yesterday": -1}
_DEPTH_MAX = 8
_BLANKS = re.compile(r"[\s_-]+")


class Reader:
    """Makes arguments of tokens.

    Args:
        today: the date that "today" means.
    """

    def __init__(self, today: date) -> None:
        self._today = today
        self._readers: dict[str, Callable[[Sequence[Token], Schema], object]] = {
            "const": self._member,
            "enum": self._member,
            "boolean": self._flag,
            "integer": self._number,
            "number": self._number,
            "string": self._text,
        }

    def read(self, tokens: Sequence[Token], forms: Sequence[Schema]) -> object:
        """The value that all of `tokens` make for one of the forms, or NOTHING."""
        return self._read(tokens, forms, 0)

    def _read(self, tokens: Sequence[Token], forms: Sequence[Schema], depth: int) -> object:
        for form in forms if tokens and depth < _DEPTH_MAX else ():
            kind = form_of(form)
            if kind == "array":
                value = self._list(tokens, form, depth)
            elif kind == "object":
                value = self._object(tokens, form, depth)
            else:
                read = self._readers.get(kind)
                value = read(tokens, form) if read is not None else NOTHING
            if value is not NOTHING and is_valid(value, form):
                return value
        return NOTHING

    def stand_in(self, forms: Sequence[Schema], text: str) -> object:
        """A valid value where the question has none, or NOTHING."""
        today = self._today.isoformat()
        for form in forms:
            low = math.ceil(form.get("minimum", form.get("exclusiveMinimum", -1) + 1))
            guesses = [*members_of(form)[:1], False, low, float(low), text, text[:1], today, [], {}]
            for guess in [*guesses, f"{today}T00:00:00", "00:00:00", "."]:
                if is_valid(guess, form) and (isinstance(guess, str) <= _spells(guess, form)):
                    return guess
        return NOTHING

    def _member(self, tokens: Sequence[Token], form: Schema) -> object:
        said = _folded(" ".join(plain(token) for token in tokens))
        members = members_of(form)
        for member in members:
            if _folded(str(member)) == said:
                return member
        short = UNITS.get(stem(said))
        for member in members:
            if short is not None and UNITS.get(stem(str(member)), "") == short:
                return member
        return NOTHING

    def _flag(self, tokens: Sequence[Token], form: Schema) -> object:
        if len(tokens) != 1:
            return NOTHING
        word = plain(tokens[0]).lower()
        return True if word in YES else False if word in NO else NOTHING

    def _number(self, tokens: Sequence[Token], form: Schema) -> object:
        if len(tokens) != 1:
            return NOTHING
        value = tokens[0].value
        if isinstance(value, bool) or not isinstance(value, int | float):
            return NOTHING
        if form_of(form) == "integer":
            return int(value) if float(value).is_integer() else NOTHING
        return value if math.isfinite(value) else NOTHING

    def _list(self, tokens: Sequence[Token], form: Schema, depth: int) -> object:
        if len(tokens) == 1 and isinstance(tokens[0].value, list):
            return tokens[0].value
        groups = _groups(tokens)
        places = form.get("prefixItems") or [form.get("items", {})] * len(groups)
        if not groups or len(places) != len(groups):
            return NOTHING
        values = [
            self._read(group, forms_of(place, form), depth + 1)
            for group, place in zip(groups, places, strict=True)
        ]
        return NOTHING if NOTHING in values else values

    def _object(self, tokens: Sequence[Token], form: Schema, depth: int) -> object:
        if len(tokens) == 1 and isinstance(tokens[0].value, dict):
            return tokens[0].value
        found: dict[str, object] = {}
        for group in _groups(tokens):
            if len(group) < 3 or group[1].text not in ("=", ":"):
                return NOTHING
            schema = form.get("properties", {}).get(
                plain(group[0]), form.get("additionalProperties", {})
            )
            found[plain(group[0])] = self._read(group[2:], forms_of(schema, form), depth + 1)
        return NOTHING if NOTHING in found.values() or not found else found

    def _text(self, tokens: Sequence[Token], form: Schema) -> object:
        kind = form.get("format")
        if kind == "date":
            return self._date(tokens)
        if kind == "date-time":
            return self._moment(tokens)
        if kind == "duration":
            return _duration(tokens)
        if kind in _FORMATS:
            return _typed(tokens, _FORMATS[kind])
        return plain_text(tokens)

    def _date(self, tokens: Sequence[Token]) -> object:
        if len(tokens) == 1:
            token = tokens[0]
            if token.lower in _DAYS:
                return (self._today + timedelta(days=_DAYS[token.lower])).isoformat()
            return _iso_date(plain(token)[:10])
        return _spelled_date([token for token in tokens if token.text not in (",", "of", "the")])

    def _moment(self, tokens: Sequence[Token]) -> object:
        if len(tokens) == 1 and tokens[0].kind == "datetime":
            return tokens[0].text.replace(" ", "T")
        if len(tokens) > 1 and tokens[-1].kind == "time":
            day, clock = self._date([t for t in tokens[:-1] if t.lower != "at"]), tokens[-1].text
            clock = clock if clock.count(":") > 1 else f"{clock}:00"
            return f"{day}T{clock.zfill(8)}" if isinstance(day, str) else NOTHING
        day = self._date(tokens)
        return f"{day}T00:00:00" if isinstance(day, str) else NOTHING


_FORMATS = {
    "uuid": ("uuid", "quoted"),
    "email": ("email", "quoted"),
    "uri": ("url", "quoted"),
    "url": ("url", "quoted"),
    "time": ("time", "quoted"),
    "decimal": ("number",),
    "path": ("path", "quoted", "word"),
    "file-path": ("path", "quoted", "word"),
}


def plain(token: Token) -> str:
    """What a token says, as text: without quotes."""
    return str(token.value) if token.kind == "quoted" else token.text


def plain_text(tokens: Sequence[Token]) -> str:
    """What several tokens say, with the blanks that stood between them."""
    text = ""
    for index, token in enumerate(tokens):
        gap = token.start - tokens[index - 1].end if index else 0
        text += " " * gap + plain(token)
    return text


def forms_of(schema: Schema, within: Schema) -> tuple[Schema, ...]:
    """The forms of a schema that stands inside another."""
    return tuple(resolve(schema if isinstance(schema, dict) else {}, within.get("$root", within)))


def _folded(text: str) -> str:
    return _BLANKS.sub(" ", text).strip().lower()


def _typed(tokens: Sequence[Token], kinds: Sequence[str]) -> object:
    return plain(tokens[0]) if len(tokens) == 1 and tokens[0].kind in kinds else NOTHING


def _groups(tokens: Sequence[Token]) -> list[list[Token]]:
    groups: list[list[Token]] = [[]]
    for token in tokens:
        if token.text == "," or (token.kind == "word" and token.lower in ("and", "or")):
            groups.append([])
        else:
            groups[-1].append(token)
    return [group for group in groups if group]


def _iso_date(text: str) -> object:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        return NOTHING


def _spelled_date(tokens: Sequence[Token]) -> object:
    if len(tokens) == 4 and tokens[1].lower in ("st", "nd", "rd", "th"):
        tokens = [tokens[0], *tokens[2:]]
    months = [MONTHS.get(token.lower.strip(".")) for token in tokens]
    numbers = [token.value for token in tokens if token.kind == "number"]
    month = next((number for number in months if number), None)
    if len(tokens) != 3 or month is None or len(numbers) != 2:
        return NOTHING
    day, year = numbers
    return _iso_date(f"{year}-{month:02}-{int(day):02}") if isinstance(day, int) else NOTHING


def _duration(tokens: Sequence[Token]) -> object:
    if len(tokens) != 2 or not isinstance(tokens[0].value, int):
        return NOTHING
    letters = {"s": "T{}S", "min": "T{}M", "h": "T{}H", "d": "{}D"}
    form = letters.get(UNITS.get(stem(tokens[1].text), ""))
    return "P" + form.format(tokens[0].value) if form else NOTHING


_PARSERS: dict[str, Callable[[str], object]] = {
    "date": date.fromisoformat,
    "date-time": datetime.fromisoformat,
    "time": time.fromisoformat,
}


def _spells(text: object, form: Schema) -> bool:
    """Whether a text keeps the format that a schema asks for, as far as it is known here."""
    parse = _PARSERS.get(form.get("format", ""))
    if parse is None:
        return form.get("format") in (None, "path", "file-path")
    try:
        parse(str(text))
    except ValueError:
        return False
    return True


# Validity


def is_valid(value: object, schema: Schema) -> bool:
    """Whether a value keeps the keywords of a schema that Python's types can ask for."""
    form = form_of(schema)
    if form in ("const", "enum"):
        return value in members_of(schema)
    check = _CHECKS.get(form)
    return check is not None and check(value, schema)


def _in_bounds(value: Any, schema: Schema) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if schema.get("type") == "integer" and not isinstance(value, int):
        return False
    step = schema.get("multipleOf")
    return (
        value >= schema.get("minimum", -math.inf)
        and value <= schema.get("maximum", math.inf)
        and value > schema.get("exclusiveMinimum", -math.inf)
        and value < schema.get("exclusiveMaximum", math.inf)
        and (step is None or math.isclose(value / step, round(value / step), abs_tol=1e-9))
    )


def _text_fits(value: Any, schema: Schema) -> bool:
    if not isinstance(value, str):
        return False
    fits = schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", math.inf)
    return fits and _matches(schema.get("pattern", ""), value)


def _matches(pattern: str, value: str) -> bool:
    try:
        return re.search(pattern, value) is not None
    except re.error:  # JSON Schema's dialect is another one; the tool itself will tell
        return True


def _list_fits(value: Any, schema: Schema) -> bool:
    if not isinstance(value, list):
        return False
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", math.inf):
        return False
    if schema.get("uniqueItems") and any(value.count(item) > 1 for item in value):
        return False
    places = schema.get("prefixItems") or [schema.get("items") or {}] * len(value)
    return len(places) == len(value) and all(
        _fits_some(item, place, schema) for item, place in zip(value, places, strict=True)
    )


def _object_fits(value: Any, schema: Schema) -> bool:
    if not isinstance(value, dict):
        return False
    declared = {p.name: p for p in parameters_of(schema, schema.get("$root", schema))}
    others = schema.get("additionalProperties", {})
    return all(name in value for name in schema.get("required", ())) and all(
        any(is_valid(item, form) for form in declared[name].forms)
        if name in declared
        else others is not False and _fits_some(item, others, schema)
        for name, item in value.items()
    )


def _fits_some(value: object, schema: Schema | bool, within: Schema) -> bool:
    if not isinstance(schema, dict) or not schema:
        return True
    return any(is_valid(value, form) for form in forms_of(schema, within))


_CHECKS: dict[str, Callable[[Any, Schema], bool]] = {
    "boolean": lambda value, _: isinstance(value, bool),
    "integer": _in_bounds,
    "number": _in_bounds,
    "string": _text_fits,
    "array": _list_fits,
    "object": _object_fits,
}
