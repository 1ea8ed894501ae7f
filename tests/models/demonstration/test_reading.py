"""How the demonstration model reads plain questions: which tool, and which values in which form."""

from typing import Any

import msgspec
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from trioloop.events import ToolDeclaration

TEXT, NUMBER, WHOLE, FLAG = ({"type": t} for t in ("string", "number", "integer", "boolean"))
OPTIONAL = {"default": None}
LENGTHS = {"enum": ["km", "mi", "m", "ft", "kg", "lb"]}
DAY = {"type": "string", "format": "date"}
MOMENT = {"type": "string", "format": "date-time"}


@pytest.fixture(scope="module")
def tools(tool: Any) -> list[ToolDeclaration]:
    return [
        tool("temperature", "Current temperature of a city.", city=TEXT, unit=LENGTHS | OPTIONAL),
        tool("count_words", "Count the words of a text.", text=TEXT),
        tool(
            "convert_units",
            "Convert a length or weight.",
            value=NUMBER,
            from_unit=LENGTHS,
            to_unit=LENGTHS,
        ),
        tool("today", "Today's date."),
        tool("average", "The average of numbers.", numbers={"type": "array", "items": NUMBER}),
        tool(
            "write_file",
            "Write a text to a file.",
            path=TEXT,
            text=TEXT,
            overwrite=FLAG | OPTIONAL,
        ),
        tool(
            "append_line",
            "Append a line to a file.",
            line=TEXT | {"description": "what is added to the file."},
            name=TEXT | {"description": "the file's name, such as notes.txt."},
        ),
        tool("search", "Search the web.", query=TEXT, max_results=WHOLE | OPTIONAL),
        tool("book_flight", "Book a flight.", origin=TEXT, destination=TEXT, day=DAY),
        tool("remind", "Set a reminder.", at=MOMENT, message=TEXT),
        tool("calculate", "Work out an expression.", expression=TEXT),
        tool("roll_dice", "Roll some dice.", count=WHOLE | {"minimum": 1, "maximum": 6}),
        tool(
            "tag",
            "Tag a picture.",
            labels={"type": "array", "items": TEXT},
            size={"$ref": "#/properties/size_of"},
            size_of={"enum": ["small", "very large"]},
        ),
    ]


@pytest.mark.parametrize(
    ("question", "name", "arguments"),
    [
        ("How warm is it in Paris right now?", "temperature", {"city": "Paris"}),
        ("weather for San Francisco please", "temperature", {"city": "San Francisco"}),
        ("temperature of 'paris'", "temperature", {"city": "paris"}),
        ("How many words are in hello there world?", "count_words", {"text": "hello there world"}),
        ('count the words of "a and b. And c"', "count_words", {"text": "a and b. And c"}),
        (
            "How many miles are 5 km?",
            "convert_units",
            {"value": 5, "from_unit": "km", "to_unit": "mi"},
        ),
        (
            "convert 10.5 kilograms to pounds",
            "convert_units",
            {"value": 10.5, "from_unit": "kg", "to_unit": "lb"},
        ),
        ("What day is it today?", "today", {}),
        ("average of 3, 5 and 8", "average", {"numbers": [3, 5, 8]}),
        ("the average of [1, 2.5]", "average", {"numbers": [1, 2.5]}),
        (
            "Write 'hello world' to notes/a.txt with overwrite",
            "write_file",
            {"path": "notes/a.txt", "text": "hello world", "overwrite": True},
        ),
        (
            "Write 'x' to a.txt without overwrite",
            "write_file",
            {"path": "a.txt", "text": "x", "overwrite": False},
        ),
        (
            "Append 'buy tea' to todo.txt",
            "append_line",
            {"line": "buy tea", "name": "todo.txt"},
        ),
        (
            "search for trio nurseries, max results 5",
            "search",
            {"query": "trio nurseries", "max_results": 5},
        ),
        (
            "Book a flight from Berlin to New York on 5 March 2027",
            "book_flight",
            {"origin": "Berlin", "destination": "New York", "day": "2027-03-05"},
        ),
        (
            "Book a flight to Rome from Oslo tomorrow",
            "book_flight",
            {"origin": "Oslo", "destination": "Rome", "day": "2026-12-01"},
        ),
        (
            "remind me at 2027-01-02 10:30 of 'tea'",
            "remind",
            {"at": "2027-01-02T10:30", "message": "tea"},
        ),
        ("What is (2+3) * 4?", "calculate", {"expression": "(2+3) * 4"}),
        ("roll four dice", "roll_dice", {"count": 4}),
        (
            "tag the picture with labels 'cat', 'red' and size of very large and size small",
            "tag",
            {"labels": ["cat", "red"], "size": "small", "size_of": "very large"},
        ),
    ],
)
async def test_a_question_gives_the_call_that_a_person_would_make(
    question: str, name: str, arguments: dict[str, object], tools: Any, conversation: Any
) -> None:
    assert await conversation(*tools).ask(question) == [(name, arguments)]


@pytest.mark.parametrize(
    "question",
    [
        "What is the capital of France?",
        "write a poem",
        "Tell me a joke",
        "Who are you?",
        "roll 7 dice",
        "Remove the walls",
        "5",
        "'quoted'",
        "¿Qué hora es?",
        "你好吗",
    ],
)
async def test_a_question_that_no_tool_serves_calls_none(
    question: str, tools: Any, conversation: Any
) -> None:
    asked = conversation(*tools)
    assert await asked.ask(question) == []
    assert "demonstration model" in asked.text


@given(question=st.text(max_size=300) | st.text("()[]{}'\"1 +,.and=:", max_size=300))
@settings(max_examples=200, deadline=None)
def test_no_question_makes_it_fail(question: str, tools: Any, conversation: Any) -> None:
    if question.strip():
        trio.run(conversation(*tools).ask, question)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
schemas = (
    st.recursive(
        st.fixed_dictionaries(
            {},
            optional={
                "type": st.sampled_from(["string", "integer", "array", "object", "null", "odd"]),
                "enum": st.lists(json_values, max_size=3),
                "format": st.text(max_size=5),
                "$ref": st.sampled_from(["#/properties/a", "#", "elsewhere"]),
                "pattern": st.sampled_from(["^a", "b$", "(", r"\p{L}"]),
                "minimum": st.integers(),
            },
        ),
        lambda inner: st.fixed_dictionaries(
            {"type": st.sampled_from(["array", "object", "string"])},
            optional={
                "items": inner,
                "properties": st.dictionaries(st.sampled_from("abc"), inner),
                "anyOf": st.lists(inner, max_size=3),
            },
        ),
        max_leaves=6,
    )
    | st.booleans()
)


@given(properties=st.dictionaries(st.sampled_from("abc"), schemas), required=st.booleans())
@settings(max_examples=200, deadline=None)
def test_no_schema_makes_it_fail(
    properties: dict[str, Any], required: bool, conversation: Any
) -> None:
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required else [],
    }
    odd = ToolDeclaration("odd_tool", "Does it.", msgspec.Raw(msgspec.json.encode(schema)))
    trio.run(conversation(odd).ask, "Use odd_tool with a 'x', b 5 and c [1, 2]")


async def test_a_very_long_question_is_read_in_bounded_time(tools: Any, conversation: Any) -> None:
    with trio.fail_after(10):
        await conversation(*tools).ask("Paris and [ ' 1 + 2 is a/b/c. " * 20_000)
