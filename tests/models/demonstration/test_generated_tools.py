"""Tools that nobody has seen before: the right one is called, with the values that were named."""

import json
import random
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any, Literal, NamedTuple

import msgspec
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from trioloop.events import ToolDeclaration

_SYLLABLES = (
    *("bra", "cho", "dwe", "fli", "gnu", "hep", "jor", "kla", "lum", "mip"),
    *("nof", "pru", "quo", "ras", "sti", "tov", "urz", "vek", "wix", "zal"),
)
_CITIES = ["Paris", "Tokyo", "Oslo", "Lima", "Cairo", "Delhi"]
_COLOURS = ("red", "green", "dark blue")


class Value(NamedTuple):
    """An argument and how a person may write it."""

    argument: object
    spelled: tuple[str, ...]


class Field(NamedTuple):
    """A parameter's type, and what draws values of it."""

    type: Any  # anything that msgspec can describe
    draw: Callable[[random.Random], Value]


def _integer(dice: random.Random) -> Value:
    number = dice.randint(-50, 5000)
    return Value(number, (str(number),))


def _number(dice: random.Random) -> Value:
    number = round(dice.uniform(-10, 1000), dice.randint(1, 4))
    return Value(number, (str(number),))


def _text(dice: random.Random) -> Value:
    text = " ".join(
        dice.choice(["and", "with", "5", "hi", "it's", "is", "x=1", "Paris"]) for _ in "123"
    )
    return Value(text, (json.dumps(text), f"“{text}”"))


def _name(dice: random.Random) -> Value:
    city = dice.choice(_CITIES)
    return Value(city, (city, f"'{city}'"))


def _flag(dice: random.Random) -> Value:
    flag = dice.random() < 0.5
    return Value(flag, (str(flag).lower(), "yes" if flag else "no"))


def _member(dice: random.Random) -> Value:
    colour = dice.choice(_COLOURS)
    return Value(colour, (colour, f'"{colour}"', colour.title()))


def _day(dice: random.Random) -> Value:
    day = date(dice.randint(1990, 2040), dice.randint(1, 12), dice.randint(1, 28))
    return Value(day.isoformat(), (day.isoformat(), day.strftime("%d %B %Y")))


def _numbers(dice: random.Random) -> Value:
    numbers = [dice.randint(0, 99) for _ in range(dice.randint(2, 4))]
    return Value(numbers, (json.dumps(numbers),))


def _file(dice: random.Random) -> Value:
    path = dice.choice(["notes.txt", "src/main.py", "/tmp/a-b.csv", "./x.md"])
    return Value(path, (path, f"'{path}'"))


FIELDS = (
    Field(int, _integer),
    Field(float, _number),
    Field(str, _text),
    Field(str, _name),
    Field(bool, _flag),
    Field(Literal[_COLOURS], _member),
    Field(date, _day),
    Field(list[int], _numbers),
    Field(str, _file),
)


APART = (  # one of each can be told apart without a name
    (FIELDS[0], FIELDS[1]),
    (FIELDS[2], FIELDS[3]),
    (FIELDS[4],),
    (FIELDS[5],),
    (FIELDS[6],),
    (FIELDS[7],),
)


class GeneratedTool(NamedTuple):
    """A tool with random names, types and docstring."""

    name: str
    description: str
    fields: dict[str, Field]
    struct: type[msgspec.Struct]

    @property
    def declaration(self) -> ToolDeclaration:
        """As a model is told of it."""
        schema = msgspec.json.schema(self.struct)
        (parameters,) = schema["$defs"].values()
        return ToolDeclaration(
            self.name, self.description, msgspec.Raw(msgspec.json.encode(parameters))
        )


class Lexicon:
    """Invents words, each once."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._known: set[str] = set()

    def word(self) -> str:
        """A word that wasn't there before, and that doesn't begin or end another."""
        while True:
            word = "".join(self._dice.choice(_SYLLABLES) for _ in range(3))
            if word[:6] not in self._known:
                self._known.add(word[:6])
                return word


def invent(dice: random.Random, lexicon: Lexicon, *, apart: bool = False) -> GeneratedTool:
    """A tool with one to four parameters; `apart`: of types that values alone tell apart."""
    chosen = [dice.choice(group) for group in dice.sample(APART, dice.randint(1, 4))]
    verb, noun = lexicon.word(), lexicon.word()
    name = dice.choice([f"{verb}_{noun}", f"{verb}{noun.title()}", noun])
    fields = {
        dice.choice([f"{lexicon.word()}_{lexicon.word()}", lexicon.word()]): (
            field if apart else dice.choice(FIELDS)
        )
        for field in chosen
    }
    struct = msgspec.defstruct("Arguments", [(key, field.type) for key, field in fields.items()])
    return GeneratedTool(name, f"{verb.title()} the {noun} of a {lexicon.word()}.", fields, struct)


def ask_for(dice: random.Random, tool: GeneratedTool, values: dict[str, Value]) -> str:
    """A question that asks for a tool and names its values."""
    spelled = {key: dice.choice(value.spelled) for key, value in values.items()}
    shown = {key: dice.choice([key, key.replace("_", " ")]) for key in spelled}
    named = [f"{shown[key]} {text}" for key, text in spelled.items()]
    told = [f"{shown[key]} is {text}" for key, text in spelled.items()]
    assigned = [f"{key}={text}" for key, text in spelled.items()]
    pairs = spelled.items()
    opening = tool.description.rstrip(".").lower()
    return dice.choice(
        [
            f"Use {tool.name} with {_listed(named)}.",
            f"Please call {tool.name} where {_listed(told)}",
            f"{tool.name} {' '.join(assigned)}",
            f"{tool.name}({', '.join(assigned)})",
            f"Please {opening} with {_listed(named)}.",
            f"Could you {opening}? {'; '.join(assigned)}",
            f"{opening.capitalize()}, {_listed(told)}!",
            f"Call the {tool.name} tool with {_listed([f'{k} set to {v}' for k, v in pairs])}",
            f"I want you to {opening} using {_listed([f'{v} as {k}' for k, v in pairs])}",
            f"{tool.name} with {json.dumps({k: v.argument for k, v in values.items()})}",
            f"{tool.name} --{' --'.join(named)}",
        ]
    )


def _listed(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_the_tool_that_a_question_names_is_called_with_its_values(
    seed: int, conversation: Any
) -> None:
    dice = random.Random(seed)
    lexicon = Lexicon(dice)
    tools = [invent(dice, lexicon) for _ in range(5)]
    wanted = dice.choice(tools)
    values = {key: field.draw(dice) for key, field in wanted.fields.items()}
    question = ask_for(dice, wanted, values)
    asked = conversation(*(tool.declaration for tool in tools))

    calls = trio.run(asked.ask, question)

    assert [name for name, _ in calls] == [wanted.name], question
    arguments = calls[0][1]
    msgspec.convert(arguments, wanted.struct, strict=True)
    assert arguments == {key: value.argument for key, value in values.items()}, question


@given(seed=st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_values_without_names_go_where_their_types_fit(seed: int, conversation: Any) -> None:
    dice = random.Random(seed)
    lexicon = Lexicon(dice)
    tools = [invent(dice, lexicon, apart=True) for _ in range(5)]
    wanted = dice.choice(tools)
    values = {key: field.draw(dice) for key, field in wanted.fields.items()}
    spelled = [dice.choice(value.spelled) for value in values.values()]
    opening = wanted.description.rstrip(".").lower()
    question = dice.choice(
        [
            f"Use {wanted.name} with {_listed(spelled)}.",
            f"Please {opening} with {_listed(spelled)}",
            f"{wanted.name}({', '.join(spelled)})",
        ]
    )
    asked = conversation(*(tool.declaration for tool in tools))

    calls = trio.run(asked.ask, question)

    expected = {key: value.argument for key, value in values.items()}
    assert calls == [(wanted.name, expected)], question


@given(seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_two_requests_joined_by_and_give_two_calls(seed: int, conversation: Any) -> None:
    dice = random.Random(seed)
    lexicon = Lexicon(dice)
    tools = [invent(dice, lexicon) for _ in range(5)]
    wanted = dice.sample(tools, 2)
    values = [{key: field.draw(dice) for key, field in tool.fields.items()} for tool in wanted]
    parts = [
        f"use {tool.name} with {', '.join(f'{key} {v.spelled[0]}' for key, v in drawn.items())}"
        for tool, drawn in zip(wanted, values, strict=True)
    ]
    asked = conversation(*(tool.declaration for tool in tools))

    calls = trio.run(asked.ask, " and ".join(parts))

    assert calls == [
        (tool.name, {key: value.argument for key, value in drawn.items()})
        for tool, drawn in zip(wanted, values, strict=True)
    ], parts


@given(seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_a_question_for_something_else_calls_nothing_and_is_told_so(
    seed: int, conversation: Any
) -> None:
    dice = random.Random(seed)
    lexicon = Lexicon(dice)
    tools = [invent(dice, lexicon) for _ in range(5)]
    asked = conversation(*(tool.declaration for tool in tools))
    question = dice.choice(
        [
            f"What is the {lexicon.word()} of the {lexicon.word()}?",
            f"Please {lexicon.word()} 5 of my {lexicon.word()} in Paris.",
            "Tell me a joke about cats.",
            f"Use {lexicon.word()} with {lexicon.word()} 3.",
        ]
    )

    calls = trio.run(asked.ask, question)

    assert calls == [], question
    assert "No tool here fits" in asked.text
    assert "demonstration model" in asked.text
    assert all(tool.name in asked.text for tool in tools)


@pytest.mark.parametrize("missing", range(3))
async def test_a_value_that_the_question_leaves_out_is_asked_for(
    missing: int, conversation: Any, tool: Any
) -> None:
    names = ["width", "height", "depth"]
    box = tool("box_volume", "Volume of a box.", **{name: {"type": "number"} for name in names})
    asked = conversation(box)
    given_names = [name for name in names if name != names[missing]]

    calls = await asked.ask(f"Use box_volume with {given_names[0]} 2 and {given_names[1]} 3")

    assert calls == []
    assert f"I found no value for {names[missing]}" in asked.text
