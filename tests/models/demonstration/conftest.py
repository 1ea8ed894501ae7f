"""Builders for requests, as the demonstration model is sent them."""

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

import msgspec
import pytest

from trioloop.chunks import ArgumentsDelta, Chunk, TextDelta, ToolCallStart
from trioloop.events import CallConfig, ToolDeclaration
from trioloop.ids import CallId, SessionId
from trioloop.log.rebuild import Request
from trioloop.messages import (
    AssistantMessage,
    Block,
    Message,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    user_message,
)
from trioloop.models.demonstration import DemonstrationModel

TODAY = date(2026, 11, 30)
CONFIG = CallConfig(provider="trioloop", model="demonstration")


def declare(name: str, description: str, /, **parameters: Any) -> ToolDeclaration:  # JSON Schemas
    """A declaration whose parameters are all required, but for those given with a default."""
    required = [key for key, schema in parameters.items() if "default" not in schema]
    schema = {"type": "object", "properties": parameters, "required": required}
    return ToolDeclaration(name, description, msgspec.Raw(msgspec.json.encode(schema)))


class Asked:
    """A conversation with the demonstration model, without a runtime."""

    def __init__(self, *tools: ToolDeclaration) -> None:
        self.tools = tools
        self.history: list[Message] = []
        self.config = CONFIG
        self.batches: list[Sequence[Chunk]] = []

    async def ask(self, question: str) -> list[tuple[str, Any]]:
        """Send a message and return the calls that the model asks for."""
        self.history.append(user_message(question))
        return await self.answer()

    async def answer(self) -> list[tuple[str, Any]]:
        """The calls of the next answer, which joins the history."""
        request = Request(
            self.config,
            self.tools,
            (),
            tuple(self.history),  # type: ignore[arg-type]  # any sequence will do here
            SessionId("demo"),
        )
        prepared = await DemonstrationModel(pace_s=0, today=lambda: TODAY).prepare(self.config)
        async with prepared.stream(request) as stream:
            self.batches = [batch async for batch in stream]
        message = self._message()
        self.history.append(message)
        return [(call.name, msgspec.json.decode(call.arguments)) for call in message.calls]

    def _message(self) -> AssistantMessage:
        chunks = [chunk for batch in self.batches for chunk in batch]
        text = "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))
        calls = [
            ToolCallBlock(
                CallId(f"{len(self.history)}-{start.block}"),
                start.wire_id,
                start.name,
                "".join(
                    chunk.text
                    for chunk in chunks
                    if isinstance(chunk, ArgumentsDelta) and chunk.block == start.block
                ),
            )
            for start in chunks
            if isinstance(start, ToolCallStart)
        ]
        content: tuple[Block, ...] = (*([TextBlock(text)] if text else []), *calls)
        return AssistantMessage(content, "trioloop", "demonstration")

    async def give(self, *results: str, is_error: bool = False) -> list[tuple[str, Any]]:
        """Give the last answer's calls their results and return the calls of the next answer."""
        last = self.history[-1]
        assert isinstance(last, AssistantMessage)
        for call, result in zip(last.calls, results, strict=True):
            content = (TextBlock(result),)
            self.history.append(ToolResultMessage(call.call, call.wire_id, content, is_error))
        return await self.answer()

    @property
    def text(self) -> str:
        """The text of the last answer."""
        last = self.history[-1]
        assert isinstance(last, AssistantMessage)
        return last.text


@pytest.fixture(scope="session")
def conversation() -> Callable[..., Asked]:
    """Opens a conversation in which the given tools are declared."""
    return Asked


@pytest.fixture(scope="session")
def tool() -> Callable[..., ToolDeclaration]:
    """Declares a tool from JSON Schemas."""
    return declare
