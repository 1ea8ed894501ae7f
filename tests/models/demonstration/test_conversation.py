"""How the demonstration model goes on: results, follow-ups, steps that wait, settings."""

from typing import Any

import pytest
from msgspec.structs import replace

NUMBER = {"type": "number"}
TEXT = {"type": "string"}


@pytest.fixture
def asked(conversation: Any, tool: Any) -> Any:
    unit = {"enum": ["C", "F"], "description": "degrees Celsius or Fahrenheit.", "default": "C"}
    return conversation(
        tool("temperature", "Current temperature of a city.", city=TEXT, unit=unit),
        tool("add", "Add two numbers.", a=NUMBER, b=NUMBER),
        tool("multiply", "Multiply two numbers.", a=NUMBER, b=NUMBER),
        tool("count_words", "Count the words of a text.", text=TEXT),
    )


async def test_the_answer_tells_the_result_and_what_gave_it(asked: Any) -> None:
    assert await asked.ask("How warm is Paris?") == [("temperature", {"city": "Paris"})]
    assert await asked.give("21.5") == []
    assert 'temperature(city="Paris") gave 21.5' in asked.text


async def test_it_introduces_itself_in_its_first_answer_only(asked: Any) -> None:
    await asked.ask("How warm is Paris?")
    await asked.give("21.5")
    assert "demonstration model" in asked.text
    await asked.ask("add 2 and 3")
    await asked.give("5")
    assert "demonstration model" not in asked.text


async def test_a_failed_call_is_told_as_a_failure(asked: Any) -> None:
    await asked.ask("How warm is Atlantis?")
    await asked.give("no such city", is_error=True)
    assert 'temperature(city="Atlantis") failed: no such city' in asked.text


async def test_what_only_adds_a_value_repeats_the_call(asked: Any) -> None:
    assert await asked.ask("What's the temperature in Paris and New York, in Fahrenheit?") == [
        ("temperature", {"city": "Paris"}),
        ("temperature", {"city": "New York", "unit": "F"}),
    ]


async def test_a_part_that_fits_no_tool_is_named_in_the_answer(asked: Any) -> None:
    assert await asked.ask("Tell me a joke and add 2 and 3") == [("add", {"a": 2, "b": 3})]
    await asked.give("5")
    assert "No tool here fits “Tell me a joke”" in asked.text
    assert "add(a=2, b=3) gave 5" in asked.text


async def test_a_step_that_speaks_of_the_result_waits_for_it(asked: Any) -> None:
    calls = await asked.ask("Add 2 and 3, then multiply the result by 4")
    assert calls == [("add", {"a": 2, "b": 3})]
    assert await asked.give("5") == [("multiply", {"a": 5, "b": 4})]
    assert await asked.give("20") == []
    assert "gave 20" in asked.text


async def test_a_short_follow_up_is_about_the_last_tool(asked: Any) -> None:
    await asked.ask("How warm is Paris?")
    await asked.give("21.5")
    assert await asked.ask("And in Tokyo?") == [("temperature", {"city": "Tokyo"})]
    await asked.give("18")
    assert await asked.ask("what about Rio de Janeiro") == [("temperature", {"city": "Rio"})]


async def test_a_message_that_steers_is_answered_in_the_same_turn(asked: Any) -> None:
    await asked.ask("How warm is Paris?")
    await asked.give("21.5")
    asked.history.pop()  # the answer, as if the message below had come before it
    assert await asked.ask("also add 2 and 3") == [("add", {"a": 2, "b": 3})]
    await asked.give("5")
    assert "gave 21.5" in asked.text
    assert "gave 5" in asked.text


async def test_a_message_after_a_cancelled_call_starts_afresh(asked: Any) -> None:
    await asked.ask("How warm is Paris?")
    await asked.give("cancelled", is_error=True)
    asked.history.pop()
    assert await asked.ask("add 2 and 3") == [("add", {"a": 2, "b": 3})]
    await asked.give("5")
    assert "Paris" not in asked.text


@pytest.mark.parametrize("choice", ["none", "add"])
async def test_tool_choice_is_obeyed(choice: str, asked: Any) -> None:
    asked.config = replace(asked.config, tool_choice=choice)
    calls = await asked.ask("How warm is 5 times 3?")
    assert calls == ([] if choice == "none" else [("add", {"a": 5, "b": 3})])


async def test_a_required_call_is_made_once_with_valid_stand_ins(asked: Any) -> None:
    asked.config = replace(asked.config, tool_choice="required")
    assert await asked.ask("hello there") == [("temperature", {"city": "hello there"})]
    assert await asked.give("21.5") == []


async def test_without_parallel_calls_they_come_one_by_one(asked: Any) -> None:
    asked.config = replace(asked.config, parallel_tool_calls=False)
    calls = await asked.ask("How warm is Paris and how warm is Oslo?")
    assert calls == [("temperature", {"city": "Paris"})]
    assert await asked.give("21.5") == [("temperature", {"city": "Oslo"})]


async def test_without_tools_it_says_so(conversation: Any) -> None:
    asked = conversation()
    assert await asked.ask("How warm is Paris?") == []
    assert "There is no tool here" in asked.text
    assert "demonstration model" in asked.text


async def test_a_greeting_is_answered_with_what_it_can_do(asked: Any) -> None:
    assert await asked.ask("Hello!") == []
    assert "temperature, add, multiply and count_words" in asked.text


async def test_equal_requests_give_equal_chunks(asked: Any) -> None:
    await asked.ask("How warm is Paris?")
    first = asked.batches
    asked.history.pop()
    await asked.answer()
    assert asked.batches == first
