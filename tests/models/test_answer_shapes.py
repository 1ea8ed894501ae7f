"""One setting asks for an answer of a shape, in the words of each API."""

import json
from typing import Any

import httpx  # noqa: ASYNC127 - as in trioloop/models/transport.py
import pytest
from msgspec import UNSET

from tests.models.asking import failure_of
from tests.models.serving import Mock
from trioloop.models import Anthropic, OpenAIChat, OpenAIResponses
from trioloop.models.http_model import HttpModel

CITY = {"city": {"type": "string"}}
OPEN = {"type": "object", "properties": CITY}
CLOSED = OPEN | {"required": ["city"], "additionalProperties": False}


async def body_with(adapter: type[HttpModel], schema: object, **settings: Any) -> dict[str, Any]:
    """The body that an adapter sends where that schema is its setting."""
    mock = Mock([httpx.Response(500)])
    model: Any = adapter
    await failure_of(
        model(
            "m",
            base_url="https://api.test/v1",
            http=httpx.MockTransport(mock),
            output_schema=schema,
            **settings,
        )
    )
    (request,) = mock.requests
    body = json.loads(request.content)
    assert isinstance(body, dict)
    return body


async def test_each_api_is_told_the_schema() -> None:
    shape = {"name": "answer", "schema": CLOSED, "strict": True}
    chat = await body_with(OpenAIChat, CLOSED)
    assert chat["response_format"] == {"type": "json_schema", "json_schema": shape}
    responses = await body_with(OpenAIResponses, CLOSED)
    assert responses["text"] == {"format": {"type": "json_schema"} | shape}
    messages = await body_with(Anthropic, CLOSED, reasoning_effort="low")
    assert messages["output_config"] == {
        "effort": "low",
        "format": {"type": "json_schema", "schema": CLOSED},
    }


async def test_without_a_schema_nothing_is_told() -> None:
    assert "response_format" not in await body_with(OpenAIChat, UNSET)
    assert "text" not in await body_with(OpenAIResponses, UNSET)
    assert "output_config" not in await body_with(Anthropic, UNSET)


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (CLOSED, True),
        (OPEN, False),
        (CLOSED | {"required": []}, False),
        (CLOSED | {"properties": {"city": OPEN}}, False),
        (CLOSED | {"properties": {"city": CLOSED}}, True),
        (CLOSED | {"properties": {"city": {"anyOf": [CLOSED, {"type": "null"}]}}}, True),
        (CLOSED | {"properties": {"city": {"anyOf": [OPEN, {"type": "null"}]}}}, False),
        (CLOSED | {"properties": {"city": {"type": "array", "items": OPEN}}}, False),
        (CLOSED | {"$defs": {"place": OPEN}}, False),
        ({"type": "object"}, False),
        (CLOSED | {"required": "city"}, False),
    ],
)
async def test_it_is_held_strictly_where_the_provider_can(schema: object, strict: bool) -> None:
    chat = await body_with(OpenAIChat, schema)
    assert chat["response_format"]["json_schema"]["strict"] is strict


async def test_what_extra_adds_is_joined_with_it() -> None:
    more = {"text": {"verbosity": "low"}}
    responses = await body_with(OpenAIResponses, CLOSED, extra=more)
    assert responses["text"].keys() == {"format", "verbosity"}
