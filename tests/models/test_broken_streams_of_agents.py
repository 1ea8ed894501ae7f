"""What an agent makes of answers that break off, are cut or are refused, on each of the three APIs.

Each API's own words come over a mocked server, through its adapter, to a whole agent.
"""

import json
from collections.abc import Callable
from typing import Any

import httpx  # noqa: ASYNC127 - as in trioloop/models/transport.py
import pytest
import trio
import trio.testing

from tests.models.recordings import OURS, recording
from tests.models.serving import SSE, Mock, Pieces
from trioloop import Agent, tool
from trioloop.chunks import TextDelta, expand
from trioloop.events import AssistantAttemptLogged, AssistantMessageLogged, ToolResultLogged
from trioloop.models import Anthropic, OpenAIChat, OpenAIResponses
from trioloop.models.http_model import HttpModel
from trioloop.plugins import retry
from trioloop.testing import open_test_runtime

APIS: dict[str, Callable[..., HttpModel]] = {
    "chat": OpenAIChat,
    "responses": OpenAIResponses,
    "messages": Anthropic,
}
WHOLE = {
    "chat": "chat-azure-filter-first",
    "responses": "local-llamacpp-responses-text",
    "messages": "anthropic-text",
}
each_api = pytest.mark.parametrize("api", APIS)
SILENCE = 1e6


def events(*payloads: dict[str, Any]) -> bytes:
    """Server-sent events, named by their types as Messages and Responses servers do."""
    lines = [
        f"event: {payload.get('type', 'message')}\ndata: {json.dumps(payload)}\n\n"
        for payload in payloads
    ]
    return "".join(lines).encode()


def chat_choice(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


TEXT = {
    "chat": events(chat_choice({"content": "par"})),
    "responses": events(
        {"type": "response.output_text.delta", "item_id": "i", "output_index": 0, "delta": "par"}
    ),
    "messages": events(
        {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "par"},
        },
    ),
}
OVERLOADED = {
    "chat": events({"error": {"message": "Overloaded", "type": "overloaded", "code": 503}}),
    "responses": events(
        {"type": "error", "error": {"type": "overloaded", "message": "Overloaded", "code": None}}
    ),
    "messages": events({"type": "error", "error": {"type": "overloaded_error", "message": "Over"}}),
}
HALF_A_CALL = {
    "chat": events(
        chat_choice(
            {"tool_calls": [{"index": 0, "id": "w", "function": {"name": "buy", "arguments": ""}}]}
        ),
        chat_choice({"tool_calls": [{"index": 0, "function": {"arguments": '{"what": "sh'}}]}),
    ),
    "responses": events(
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {"type": "function_call", "id": "i", "call_id": "w", "name": "buy"},
        },
        {
            "type": "response.function_call_arguments.delta",
            "item_id": "i",
            "output_index": 0,
            "delta": '{"what": "sh',
        },
    ),
    "messages": events(
        {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1}}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "id": "w", "name": "buy", "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": '{"what": "sh'},
        },
    ),
}
CUT_BY_THE_LIMIT = {
    "chat": events(chat_choice({}, "length")) + b"data: [DONE]\n\n",
    "responses": events(
        {
            "type": "response.incomplete",
            "response": {
                "id": "r",
                "status": "incomplete",
                "incomplete_details": {"reason": "max_output_tokens"},
                "output": [],
            },
        }
    ),
    "messages": events(
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {}},
        {"type": "message_stop"},
    ),
}
bought: list[str] = []


@tool(effects="once")
async def buy(what: str) -> str:
    """Buy it."""
    bought.append(what)
    return "bought"


def whole(api: str) -> bytes:
    """A recorded answer of some text."""
    return str(recording(OURS / f"{WHOLE[api]}.json")["sse_text"]).encode()


def streamed(*pieces: bytes | float) -> httpx.Response:
    return httpx.Response(200, headers=SSE, stream=Pieces(pieces))


def model_of(api: str, *replies: httpx.Response) -> tuple[HttpModel, Mock]:
    mock = Mock(list(replies))
    http = httpx.MockTransport(mock)
    return APIS[api]("m", base_url="https://api.test/v1", http=http), mock


def logged(agent: Agent, kind: type) -> list[Any]:
    return [event.data for event in agent.session.events() if isinstance(event.data, kind)]


@each_api
@pytest.mark.parametrize("before", ["", "par"])
async def test_an_overloaded_server_that_answered_200_is_asked_again(
    api: str, before: str, autojump_clock: trio.testing.MockClock
) -> None:
    first = (TEXT[api] if before else b"") + OVERLOADED[api]
    model, mock = model_of(api, streamed(first), streamed(whole(api)))
    ends: list[str] = []
    async with open_test_runtime(model=model, plugins=[retry]) as runtime:
        agent = await runtime.create_agent("a")
        agent.on("stream-end", lambda ended: ends.append(ended.outcome))
        settled = await agent.ask("go")
        (attempt,) = logged(agent, AssistantAttemptLogged)
        (message,) = logged(agent, AssistantMessageLogged)
    assert (settled.reason, settled.text) == ("completed", message.message.text)
    assert attempt.failure.code == "OVERLOADED"
    assert attempt.failure.retryable
    came = [chunk for frame in expand(attempt.stream, ()) for chunk in frame.chunks]
    assert "".join(chunk.text for chunk in came if isinstance(chunk, TextDelta)) == before
    assert ends == ["attempt", "message"]
    assert len(mock.requests) == 2


@each_api
async def test_a_call_cut_by_the_token_limit_is_not_run(
    api: str, autojump_clock: trio.testing.MockClock
) -> None:
    cut = HALF_A_CALL[api] + CUT_BY_THE_LIMIT[api]
    model, _ = model_of(api, streamed(cut), streamed(whole(api)))
    bought.clear()
    async with open_test_runtime(model=model, tools=[buy]) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("go")
        answer, *_ = logged(agent, AssistantMessageLogged)
        results = logged(agent, ToolResultLogged)
    assert answer.finish.reason == "length"
    assert bought == []
    assert [result.is_error for result in results] == [True]


@each_api
async def test_a_deadline_in_the_middle_of_a_call_leaves_no_half_call_in_the_transcript(
    api: str, autojump_clock: trio.testing.MockClock
) -> None:
    model, _ = model_of(api, streamed(HALF_A_CALL[api], SILENCE), streamed(whole(api)))
    bought.clear()
    async with open_test_runtime(model=model, tools=[buy]) as runtime:
        agent = await runtime.create_agent("a")
        with trio.move_on_after(5) as deadline:
            await agent.ask("go")
        assert deadline.cancelled_caught
        settled = await agent.ask("again")
        assert settled.reason == "completed"
        assert logged(agent, ToolResultLogged) == []
        answers = logged(agent, AssistantMessageLogged)
    assert bought == []
    assert [answer.message.calls for answer in answers] == [()]


@pytest.mark.parametrize(
    ("api", "name"),
    [
        ("chat", "chat-openai-refusal"),
        ("responses", "responses-openai-refusal"),
        ("messages", "anthropic-refusal"),
    ],
)
async def test_a_refusal_is_an_answer_and_runs_nothing(
    api: str, name: str, autojump_clock: trio.testing.MockClock
) -> None:
    model, mock = model_of(api, streamed(recording(OURS / f"{name}.json")["sse_text"].encode()))
    bought.clear()
    async with open_test_runtime(model=model, tools=[buy], plugins=[retry]) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("go")
        (answer,) = logged(agent, AssistantMessageLogged)
        assert logged(agent, ToolResultLogged) == []
    assert answer.finish.reason == "refusal"
    assert bought == []
    assert len(mock.requests) == 1
