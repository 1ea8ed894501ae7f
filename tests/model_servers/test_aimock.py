"""aimock, a server in JavaScript, plays a script of several steps on the three APIs."""

from collections.abc import Callable

import pytest
import trio

import trioloop
from trioloop.events import AssistantAttemptLogged, AssistantMessageLogged
from trioloop.messages import OpaqueBlock, ReasoningBlock
from trioloop.models import Anthropic, OpenAIChat, OpenAIResponses
from trioloop.models.http_model import HttpModel
from trioloop.plugins import retry
from trioloop.ports import RetryPolicy

APIS: dict[str, Callable[..., HttpModel]] = {
    "chat": OpenAIChat,
    "responses": OpenAIResponses,
    "messages": Anthropic,
}
each_api = pytest.mark.parametrize("api", APIS)
WEATHER = {"Paris": 22, "Tokyo": 31}


@trioloop.tool(effects="read-only")
async def temperature(city: str) -> str:
    """Temperature of a city."""
    return f"{city}: {WEATHER[city]}"


@trioloop.tool(effects="read-only")
async def rain() -> str:
    """Whether it rains."""
    return "dry"


def model_of(api: str, address: str) -> HttpModel:
    # Its scripts count for each caller apart, whom this header names.
    return APIS[api](
        "any",
        base_url=f"{address}/v1",
        provider="aimock",
        headers={"x-test-id": api},
        retry_policy=RetryPolicy(first_delay_s=0.1),
    )


@each_api
async def test_a_script_of_three_steps_is_played_to_its_end(aimock_server: str, api: str) -> None:
    model = model_of(api, aimock_server)
    async with trioloop.open_runtime(model=model, tools=[temperature, rain], strict=True) as home:
        agent = await home.create_agent("a")
        with trio.fail_after(60):
            settled = await agent.ask("Compare Paris and Tokyo.")
        answers = [
            event.data.message
            for event in agent.session.events()
            if isinstance(event.data, AssistantMessageLogged)
        ]
    assert settled.text == "Tokyo is warmer, and dry. 🌞"
    assert [[call.wire_id for call in answer.calls] for answer in answers] == [
        ["call_paris", "call_tokyo"],
        ["call_rain"],
        [],
    ]
    assert answers[0].text == "I look both up."
    thoughts = [block for block in answers[0].content if isinstance(block, ReasoningBlock)]
    assert "".join(block.text for block in thoughts) == "Two cities, so two calls."
    if api == "messages":
        assert b"c2lnbmF0dXJl" in bytes(thoughts[0].replay.data)  # type: ignore[union-attr]
        assert any(isinstance(block, OpaqueBlock) for block in answers[0].content)


@each_api
@pytest.mark.parametrize(
    ("question", "said", "codes"),
    [("Break off.", "Whole.", {"TRANSPORT", "TRUNCATED"}), ("Wait.", "Waited.", {"RATE_LIMIT"})],
)
async def test_a_fault_is_tried_again(
    aimock_server: str, api: str, question: str, said: str, codes: set[str]
) -> None:
    model = model_of(api, aimock_server)
    async with trioloop.open_runtime(model=model, plugins=[retry], strict=True) as home:
        agent = await home.create_agent("a")
        with trio.fail_after(60):
            settled = await agent.ask(question)
        failures = [
            event.data.failure
            for event in agent.session.events()
            if isinstance(event.data, AssistantAttemptLogged)
        ]
    assert settled.text == said
    (failure,) = failures
    assert failure is not None
    assert failure.code in codes
