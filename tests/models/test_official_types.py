"""Requests of a long mixed transcript are what the official packages' types say, on the three APIs.

The official types drop a key that they don't know without a word, so the keys are compared, too.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter

from tests.models.transcripts import CALLS, MIXED, mixed_request
from trioloop.events import CallConfig
from trioloop.messages import ToolResultMessage
from trioloop.models.anthropic_request import AnthropicEncoder
from trioloop.models.chat_request import ChatEncoder
from trioloop.models.responses_request import ResponsesEncoder
from trioloop.models.sent_calls import MIDDLE_IDS
from trioloop.models.services import SERVICES, Dialect

ADAPTERS = {
    "chat": (CompletionCreateParamsStreaming, "openai"),
    "mistral": (CompletionCreateParamsStreaming, "mistral"),
    "responses": (ResponseCreateParamsStreaming, "openai"),
    "messages": (MessageCreateParamsStreaming, "anthropic"),
}
CONFIGS = {
    "few settings": CallConfig(provider="p", model="m", max_tokens=100),
    "many settings": CallConfig(
        provider="p",
        model="m",
        max_tokens=100,
        tool_choice="required",
        parallel_tool_calls=False,
        reasoning_effort="low",
    ),
    "an answer of a shape": CallConfig(
        provider="p",
        model="m",
        max_tokens=9,
        reasoning_effort="low",
        output_schema={"type": "object", "properties": {"city": {"type": "string"}}},
    ),
    "a named tool": CallConfig(provider="p", model="m", max_tokens=9, tool_choice="temperature"),
}
each_api = pytest.mark.parametrize("api", ADAPTERS)


def encoded(api: str, config: CallConfig) -> dict[str, Any]:
    provider = ADAPTERS[api][1]
    encoder: ChatEncoder | ResponsesEncoder | AnthropicEncoder
    if api == "responses":
        encoder = ResponsesEncoder(
            f"{provider}/responses",
            images=True,
            call_ids=MIDDLE_IDS,
            prompt_cache_key=True,
            encrypted_reasoning=True,
        )
    elif api == "messages":
        encoder = AnthropicEncoder(
            f"{provider}/messages", images=True, system_in_history=False, cache_ttl="5m"
        )
    else:
        encoder = ChatEncoder(provider, SERVICES[provider].dialect, images=True)
    body = json.loads(bytes(encoder.body(mixed_request(config))))
    assert isinstance(body, dict)
    return body


def listed(value: object) -> object:
    """A validated value with its lazy lists read, which validates them, too."""
    if isinstance(value, dict):
        return {name: listed(member) for name, member in value.items()}
    if isinstance(value, str | bytes | int | float | bool | None):
        return value
    return [listed(item) for item in value]  # type: ignore[attr-defined]  # what is left


@each_api
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_a_request_is_what_the_official_type_says(api: str, config: CallConfig) -> None:
    body = encoded(api, config)
    assert listed(official(ADAPTERS[api][0]).validate_python(body)) == body


@cache
def official(form: Any) -> TypeAdapter[object]:  # Any: one of three types
    """What judges a request; making one takes seconds."""
    return TypeAdapter(form)


def calls_and_results(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The calls and results of a body, in order: what it is, and its id."""
    for item in body.get("messages") or body["input"]:
        for call in item.get("tool_calls") or ():
            yield "call", call["id"]
        if item.get("role") == "tool":
            yield "result", item["tool_call_id"]
        if item.get("type") in {"function_call", "function_call_output"}:
            yield ("call" if item["type"] == "function_call" else "result"), item["call_id"]
        for block in item["content"] if isinstance(item.get("content"), list) else ():
            if block["type"] == "tool_use":
                yield "call", block["id"]
            if block["type"] == "tool_result":
                yield "result", block["tool_use_id"]


@each_api
def test_no_call_and_no_result_is_lost_on_the_way_to_another_provider(api: str) -> None:
    found = list(calls_and_results(encoded(api, CONFIGS["few settings"])))
    calls = [wire_id for kind, wire_id in found if kind == "call"]
    results = [wire_id for kind, wire_id in found if kind == "result"]
    assert calls == results
    assert len(set(calls)) == len(CALLS)
    assert len(results) == sum(isinstance(message, ToolResultMessage) for message in MIXED)
    for place, (kind, wire_id) in enumerate(found):
        if kind == "result":
            assert ("call", wire_id) in found[:place]


@pytest.mark.parametrize(
    ("api", "form"),
    [("mistral", r"[A-Za-z0-9]{9}"), ("messages", r"[A-Za-z0-9_-]{1,64}"), ("chat", r".{1,40}")],
)
def test_each_id_has_the_form_that_its_provider_takes(api: str, form: str) -> None:
    for _, wire_id in calls_and_results(encoded(api, CONFIGS["few settings"])):
        assert re.fullmatch(form, wire_id)


def test_an_id_that_its_provider_takes_stays_as_it_is() -> None:
    assert Dialect().call_ids.sent("resp_x:call_0") == "resp_x:call_0"
    assert SERVICES["mistral"].dialect.call_ids.sent("gSIMJiOkT") == "gSIMJiOkT"
