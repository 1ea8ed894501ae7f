"""The local model behind each of its server's APIs, and one way to ask it."""

from collections.abc import Callable
from typing import Any

import msgspec

from tests.models.asking import make_request
from trioloop.chunks import Frame
from trioloop.events import CallConfig, ToolDeclaration
from trioloop.ids import call_id
from trioloop.messages import Message
from trioloop.models import Anthropic, OpenAIChat, OpenAIResponses
from trioloop.models.http_model import HttpModel
from trioloop.stream.assemble import Assembled, assemble

QUESTION = "What is 17 + 25? Use the add tool."
ADD = ToolDeclaration(
    "add",
    "Add two numbers",
    msgspec.Raw(
        b'{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},'
        b'"required":["a","b"]}'
    ),
)
# The server's Messages route calls in spite of `none`, and goes on calling where only one call is
# wanted: there no tools are declared, and here it is stopped behind the first call.
ONE_CALL_TOKENS = 27
APIS: dict[str, Callable[..., HttpModel]] = {
    "chat": OpenAIChat,
    "responses": OpenAIResponses,
    "messages": Anthropic,
}


def model_of(api: str, base_url: str, **settings: Any) -> HttpModel:  # Any: an adapter's settings
    """The local model behind one of its APIs."""
    settings = {"temperature": 0, "max_tokens": 80} | settings
    return APIS[api]("local", base_url=base_url, **settings)


async def answer(model: HttpModel, choice: str, *messages: Message) -> Assembled:
    """An answer that must call (`required`) or may not (`none`)."""
    must_call = choice == "required"
    config = CallConfig(
        provider=model.provider,
        model="local",
        tool_choice=choice,
        parallel_tool_calls=False,
        max_tokens=ONE_CALL_TOKENS if must_call and isinstance(model, Anthropic) else None,
    )
    call = await model.prepare(config)
    offered = must_call or not isinstance(model, Anthropic)
    request = make_request(*messages, tools=[ADD] if offered else [], config=call.config)
    frames = []
    async with call.stream(request) as stream:
        async for batch in stream:
            frames.append(Frame(0, tuple(batch)))  # noqa: PERF401 - hides the stream
    return assemble(
        frames,
        provider=model.provider,
        model="local",
        call_id=lambda index: call_id(1, 1, index),
        used_wire_ids=(),
    )
