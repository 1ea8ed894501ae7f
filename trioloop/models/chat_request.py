"""Writes the body of a Chat Completions request from a `Request`.

Each message is encoded once and its bytes are kept, so that a body is joined, however long the
history. What the API can't say is said in words: an image to a model without eyes, a result with
an image. Arguments that are no JSON go back as JSON that quotes them, because many servers parse
what they are sent.
"""

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Raw

from trioloop.errors import ModelFailure
from trioloop.events import CallConfig, ToolDeclaration
from trioloop.log.rebuild import Request
from trioloop.log.surface import History, Source
from trioloop.messages import (
    AssistantMessage,
    Block,
    ImageBlock,
    Message,
    ReasoningBlock,
    SystemMessage,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    text_of,
)
from trioloop.models.services import Dialect

Object: TypeAlias = dict[str, Any]  # Any: a value of JSON

_OWN_MEMBERS = {"model", "messages", "stream", "tools"}


class ChatEncoder:
    """Encodes the requests of one adapter.

    Args:
        provider: whose own replay data may go out; other providers' stays here (E6).
        dialect: what the server wants.
        images: the model can be shown images.
    """

    def __init__(self, provider: str, dialect: Dialect, *, images: bool) -> None:
        self._provider = provider
        self._dialect = dialect
        self._images = images
        self._known: WeakKeyDictionary[Source, list[bytes]] = WeakKeyDictionary()
        self._tools: tuple[tuple[ToolDeclaration, ...], bytes] = ((), b"")

    def body(self, request: Request) -> bytes:
        """The body of a request.

        Raises:
            ModelFailure: INVALID_REQUEST, the settings can't be sent.
        """
        settings = _encode(self._settings(request))
        heads = "\n\n".join(head.text for head in request.system)
        messages = self._messages(request.history)
        if heads:
            messages.insert(0, b"," + _encode({"role": "system", "content": heads}))
        if messages:
            messages[0] = messages[0].removeprefix(b",")
        start = settings.removesuffix(b"}") + b',"messages":['
        return b"".join((start, *messages, b"]", self._encoded_tools(request.tools), b"}"))

    def _messages(self, history: History) -> list[bytes]:
        """Each message's JSON behind a comma, so that a body is joined in one go."""
        known = self._known.setdefault(history.source, [])
        if len(known) < len(history):
            known += [b"," + _encode(self._message(message)) for message in history[len(known) :]]
        return known[: len(history)]

    def _encoded_tools(self, tools: tuple[ToolDeclaration, ...]) -> bytes:
        if self._tools[0] != tools:
            declared = [{"type": "function", "function": _declaration(tool)} for tool in tools]
            self._tools = (tools, b',"tools":' + _encode(declared) if tools else b"")
        return self._tools[1]

    def _settings(self, request: Request) -> Object:
        config = request.config
        own = _OWN_MEMBERS & config.extra.keys()
        if own:
            raise ModelFailure(
                "INVALID_REQUEST", f"extra settings can't set {sorted(own)}: trioloop does"
            )
        settings: Object = {"model": config.model, "stream": True}
        if self._dialect.stream_usage:
            settings["stream_options"] = {"include_usage": True}
        optional = {
            self._dialect.max_tokens_name: config.max_tokens,
            "temperature": config.temperature,
            "reasoning_effort": config.reasoning_effort,
            **(_tool_settings(config) if request.tools else {}),
        }
        settings |= {name: value for name, value in optional.items() if value is not None}
        return settings | config.extra

    def _message(self, message: Message) -> Object:
        match message:
            case SystemMessage(text=text):
                return {"role": "system", "content": text}
            case AssistantMessage():
                return self._answer(message)
            case ToolResultMessage(wire_id=wire_id, content=content):
                return {"role": "tool", "tool_call_id": wire_id, "content": _words(content)}
        shown = self._images and any(isinstance(block, ImageBlock) for block in message.content)
        parts = list(_parts(message.content)) if shown else _words(message.content)
        return {"role": "user", "content": parts}

    def _answer(self, message: AssistantMessage) -> Object:
        text, calls = text_of(message.content), message.calls
        answer: Object = {"role": "assistant", "content": text if text or not calls else None}
        if calls:
            answer["tool_calls"] = [_call(call) for call in calls]
        if message.provider == self._provider:
            answer |= self._replayed(message)
        return answer

    def _replayed(self, message: AssistantMessage) -> Object:
        """What an answer of this provider's own is sent back with, besides its text and calls."""
        members: Object = {}
        thoughts = [block for block in message.content if isinstance(block, ReasoningBlock)]
        for block in thoughts:
            if block.replay is not None and block.replay.provider == self._provider:
                members |= msgspec.json.decode(block.replay.data, type=dict[str, Raw])
        if message.calls and thoughts and self._dialect.reasoning_replay == "with-calls":
            members["reasoning_content"] = "".join(block.text for block in thoughts)
        return members


def _tool_settings(config: CallConfig) -> Object:
    choice = config.tool_choice
    named = choice is not None and choice not in {"auto", "required", "none"}
    return {
        "tool_choice": {"type": "function", "function": {"name": choice}} if named else choice,
        "parallel_tool_calls": config.parallel_tool_calls,
    }


def _declaration(tool: ToolDeclaration) -> Object:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


def _call(call: ToolCallBlock) -> Object:
    function = {"name": call.name, "arguments": _arguments(call.arguments)}
    return {"id": call.wire_id, "type": "function", "function": function}


def _arguments(raw: str) -> str:
    """Raw arguments as JSON of an object, quoted where they are none."""
    try:
        value = msgspec.json.decode(raw or "{}")
    except (msgspec.DecodeError, RecursionError):
        value = None
    if isinstance(value, dict):
        return raw or "{}"
    return _encode({"invalid_arguments": raw}).decode()


def _words(content: Sequence[Block]) -> str:
    """Content for a place that takes text only; an image is named instead."""
    found = []
    for block in content:
        if isinstance(block, TextBlock):
            found.append(block.text)
        elif isinstance(block, ImageBlock):
            found.append(f"[an {block.media_type} image, which can't be shown here]")
    return "\n\n".join(found)


def _parts(content: Sequence[Block]) -> Iterator[Object]:
    for block in content:
        if isinstance(block, TextBlock):
            yield {"type": "text", "text": block.text}
        elif isinstance(block, ImageBlock):
            url = f"data:{block.media_type};base64,{block.data}"
            yield {"type": "image_url", "image_url": {"url": url}}


def _encode(value: object) -> bytes:
    return msgspec.json.encode(value)
