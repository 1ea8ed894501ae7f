"""One real model behind all three of its server's APIs: a loop, a cancel, a kept connection.

The model is too small to choose: the first step must call, and the last one may not.
"""

import json
from collections.abc import Callable

import pytest
import trio

from tests.local_model.asking import ADD, APIS, QUESTION, answer, model_of
from tests.models.asking import make_request
from trioloop.chunks import ArgumentsDelta, Finish, TextDelta
from trioloop.errors import ModelFailure
from trioloop.events import CallConfig
from trioloop.messages import (
    AssistantMessage,
    Message,
    TextBlock,
    ToolResultMessage,
    user_message,
)
from trioloop.models import Anthropic
from trioloop.models.http_model import HttpModel

each_api = pytest.mark.parametrize("api", APIS)


async def loop(model: HttpModel) -> tuple[Message, ...]:
    """The transcript of a question, a call, its result and an answer."""
    asked = user_message(QUESTION)
    first = await answer(model, "required", asked)
    assert first.finish is not None
    assert first.finish.reason == ("length" if isinstance(model, Anthropic) else "tool_calls")
    (call,) = first.message.calls
    assert (call.name, json.loads(call.arguments)) == ("add", {"a": 17, "b": 25})
    assert call.wire_id
    assert first.usage is not None
    assert first.usage.input_tokens
    result = ToolResultMessage(call.call, call.wire_id, (TextBlock("42"),))
    second = await answer(model, "none", asked, first.message, result)
    assert second.finish is not None
    assert second.finish.reason in {"stop", "length"}
    assert "42" in second.message.text
    return asked, first.message, result, second.message


async def test_the_three_apis_tell_the_same_story(local_model: str) -> None:
    called, said = {}, {}
    for api in APIS:
        model = model_of(api, local_model)
        _, first, _, second = await loop(model)
        assert isinstance(first, AssistantMessage)
        assert isinstance(second, AssistantMessage)
        called[api] = [(call.name, call.arguments) for call in first.calls]
        said[api] = second.text
        await model.aclose()
    assert called["chat"] == called["responses"] == called["messages"]
    assert said["chat"] == said["responses"]  # the third was shown no tools


@pytest.mark.parametrize(
    ("api", "other"), [("chat", "responses"), ("responses", "messages"), ("messages", "chat")]
)
async def test_a_loop_that_one_api_began_ends_with_another(
    local_model: str, api: str, other: str
) -> None:
    asked = user_message(QUESTION)
    beginner = model_of(api, local_model, provider="beginner")
    first = await answer(beginner, "required", asked)
    (call,) = first.message.calls
    result = ToolResultMessage(call.call, call.wire_id, (TextBlock("42"),))
    ender = model_of(other, local_model)
    second = await answer(ender, "none", asked, first.message, result)
    assert "42" in second.message.text
    await beginner.aclose()
    await ender.aclose()


@each_api
async def test_arguments_cut_by_the_token_limit_are_told_as_cut(local_model: str, api: str) -> None:
    model = model_of(api, local_model)
    config = CallConfig(
        provider=model.provider, model="local", tool_choice="required", max_tokens=14
    )
    call = await model.prepare(config)
    request = make_request(user_message(QUESTION), tools=[ADD], config=call.config)
    async with call.stream(request) as stream:
        chunks = [chunk async for batch in stream for chunk in batch]
    assert isinstance(chunks[-1], Finish)
    assert chunks[-1].reason == "length"
    assert any(isinstance(chunk, ArgumentsDelta) for chunk in chunks)
    await model.aclose()


@each_api
async def test_a_request_that_is_too_long_is_told_with_its_numbers(
    local_model: str, api: str
) -> None:
    model = model_of(api, local_model)
    with pytest.raises(ModelFailure, match=r"tokens: prompt \d+, limit \d+") as caught:
        await answer(model, "none", user_message("word " * 9_000))
    assert caught.value.code == "CONTEXT_WINDOW_EXCEEDED"
    await model.aclose()


async def test_an_answer_has_the_shape_that_was_asked_for(local_model: str) -> None:
    colour = {"enum": ["red", "green", "blue"]}
    shape = {
        "type": "object",
        "properties": {"colour": colour, "warm": {"type": "boolean"}},
        "required": ["colour", "warm"],
        "additionalProperties": False,
    }
    model = model_of("chat", local_model, output_schema=shape)  # its other routes ignore it
    said = await answer(model, "none", user_message("Name a colour."))
    await model.aclose()
    told = json.loads(said.message.text)
    assert told.keys() == {"colour", "warm"}
    assert told["colour"] in colour["enum"]


@each_api
async def test_fifty_requests_in_a_row_on_one_client_all_succeed(
    local_model: str, api: str
) -> None:
    model = model_of(api, local_model, max_tokens=1)
    for _ in range(50):
        told = await answer(model, "none", user_message("Hi."))
        assert told.finish is not None
    await model.aclose()


@each_api
@pytest.mark.parametrize("place", [TextDelta, ArgumentsDelta])
async def test_leaving_in_the_middle_frees_the_server_at_once(
    local_model: str, busy_slots: Callable[[], int], api: str, place: type
) -> None:
    model = model_of(api, local_model, max_tokens=2_000, extra={"ignore_eos": True})
    choice = "none" if place is TextDelta else "required"
    config = CallConfig(provider=model.provider, model="local", tool_choice=choice)
    call = await model.prepare(config)
    tools = [ADD] if place is ArgumentsDelta else []
    request = make_request(user_message(QUESTION), tools=tools, config=call.config)
    with trio.CancelScope() as scope:
        async with call.stream(request) as stream:
            async for batch in stream:
                if any(isinstance(chunk, place) for chunk in batch):
                    scope.cancel()
    assert scope.cancelled_caught
    with trio.fail_after(5):
        while await trio.to_thread.run_sync(busy_slots):  # noqa: ASYNC110 - it can only be asked
            await trio.sleep(0.02)
    await model.aclose()
