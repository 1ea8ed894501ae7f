"""Writes the body of a Chat Completions request from a `Request`.

What the API can't say is said in words: an image to a model without eyes, a result with an image.
A message that says nothing to this provider is left out, because many servers refuse one.
"""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import UNSET

from trioloop.events import CallConfig, ToolDeclaration
from trioloop.log.rebuild import Request
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
from trioloop.models.encoded_history import EncodedHistory
from trioloop.models.reading import Object
from trioloop.models.request_body import RequestBody
from trioloop.models.request_settings import (
    EncodedTools,
    answer_format,
    cache_key,
    known,
    own_members,
    with_extra,
)
from trioloop.models.sent_calls import arguments_text
from trioloop.models.services import Dialect
from trioloop.models.shown_images import data_url, holds_image, words

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
        self._history = EncodedHistory(lambda: self._piece)
        self._tools = EncodedTools(_declaration)

    def body(self, request: Request) -> RequestBody:
        """The body of a request.

        Raises:
            ModelFailure: INVALID_REQUEST, the settings can't be sent.
        """
        settings = msgspec.json.encode(self._settings(request))
        heads = "\n\n".join(head.text for head in request.system)
        messages = self._history.of(request.history)
        start = settings.removesuffix(b"}") + b',"messages":['
        if heads:
            start += msgspec.json.encode({"role": "system", "content": heads}) + (
                b"," if messages else b""
            )
        end = b"%b]%b}" % (messages.tail, self._tools.member(request.tools))
        return RequestBody.of(start, messages.blocks, end)

    def _piece(self, message: Message) -> bytes:
        """A message's JSON behind a comma."""
        sent = self._message(message)
        return b"," + msgspec.json.encode(sent) if sent else b""

    def _settings(self, request: Request) -> Object:
        config = request.config
        settings: Object = {"model": config.model, "stream": True}
        if self._dialect.stream_usage:
            settings["stream_options"] = {"include_usage": True}
        settings |= known(
            {
                self._dialect.max_tokens_name: config.max_tokens,
                "temperature": config.temperature,
                "reasoning_effort": config.reasoning_effort,
                "response_format": _response_format(config),
                "prompt_cache_key": cache_key(request) if self._dialect.prompt_cache_key else None,
                **(_tool_settings(config) if request.tools else {}),
            }
        )
        return with_extra(settings, config, _OWN_MEMBERS)

    def _message(self, message: Message) -> Object:
        match message:
            case SystemMessage(text=text):
                return {"role": "system", "content": text}
            case AssistantMessage():
                return self._answer(message)
            case ToolResultMessage(wire_id=wire_id, content=content):
                sent_id = self._dialect.call_ids.sent(wire_id)
                return {"role": "tool", "tool_call_id": sent_id, "content": words(content)}
        shown = self._images and holds_image(message.content)
        parts = list(_parts(message.content)) if shown else words(message.content)
        return {"role": "user", "content": parts}

    def _answer(self, message: AssistantMessage) -> Object:
        text, calls = text_of(message.content), message.calls
        answer: Object = {"role": "assistant", "content": text if text or not calls else None}
        if calls:
            answer["tool_calls"] = [self._call(call) for call in calls]
        replayed = self._replayed(message) if message.provider == self._provider else {}
        return answer | replayed if text or calls or replayed else {}

    def _call(self, call: ToolCallBlock) -> Object:
        function = {"name": call.name, "arguments": arguments_text(call.arguments)}
        sent_id = self._dialect.call_ids.sent(call.wire_id)
        return {"id": sent_id, "type": "function", "function": function}

    def _replayed(self, message: AssistantMessage) -> Object:
        """What an answer of this provider's own is sent back with, besides its text and calls."""
        members: Object = {}
        thoughts = [block for block in message.content if isinstance(block, ReasoningBlock)]
        for block in thoughts:
            members |= own_members(block, self._provider)
        if message.calls and thoughts and self._dialect.reasoning_replay == "with-calls":
            members["reasoning_content"] = "".join(block.text for block in thoughts)
        return members


def _response_format(config: CallConfig) -> Object | None:
    schema = config.output_schema
    return (
        None if schema is UNSET else {"type": "json_schema", "json_schema": answer_format(schema)}
    )


def _tool_settings(config: CallConfig) -> Object:
    choice = config.tool_choice
    named = choice is not None and choice not in {"auto", "required", "none"}
    return {
        "tool_choice": {"type": "function", "function": {"name": choice}} if named else choice,
        "parallel_tool_calls": config.parallel_tool_calls,
    }


def _declaration(tool: ToolDeclaration) -> Object:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}


def _parts(content: Sequence[Block]) -> Iterator[Object]:
    for block in content:
        if isinstance(block, TextBlock):
            yield {"type": "text", "text": block.text}
        elif isinstance(block, ImageBlock):
            yield {"type": "image_url", "image_url": {"url": data_url(block)}}
