"""Writes the body of a Responses request from a `Request`.

Nothing is stored at the provider: what it wants back of its reasoning travels, encrypted, in the
answer and goes back in place. An item keeps its provider's id only where the reasoning before it
goes back too, since one without the other is refused.
"""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import UNSET, Raw

from trioloop.events import CallConfig, ToolDeclaration
from trioloop.log.rebuild import Request
from trioloop.messages import (
    AssistantMessage,
    Block,
    ImageBlock,
    Message,
    OpaqueBlock,
    ReasoningBlock,
    RefusalBlock,
    SystemMessage,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
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
from trioloop.models.sent_calls import CallIds, arguments_text
from trioloop.models.shown_images import data_url, holds_image, words

_OWN_MEMBERS = {"model", "input", "instructions", "stream", "store", "tools"}


class ResponsesEncoder:
    """Encodes the requests of one adapter.

    Args:
        replay_key: whose replay data may go out; others' stays here (E6).
        images: the model can be shown images.
        call_ids: the ids of calls that the server takes.
        prompt_cache_key: the server is told which conversation a request is of.
        encrypted_reasoning: the server is asked for its reasoning in a form that it takes back.
    """

    def __init__(
        self,
        replay_key: str,
        *,
        images: bool,
        call_ids: CallIds,
        prompt_cache_key: bool,
        encrypted_reasoning: bool,
    ) -> None:
        self._replay_key = replay_key
        self._images = images
        self._call_ids = call_ids
        self._prompt_cache_key = prompt_cache_key
        self._encrypted_reasoning = encrypted_reasoning
        self._history = EncodedHistory(lambda: self._piece)
        self._tools = EncodedTools(_declaration)

    def body(self, request: Request) -> RequestBody:
        """The body of a request.

        Raises:
            ModelFailure: INVALID_REQUEST, the settings can't be sent.
        """
        settings = msgspec.json.encode(self._settings(request))
        items = self._history.of(request.history)
        start = settings.removesuffix(b"}") + b',"input":['
        end = b"%b]%b}" % (items.tail, self._tools.member(request.tools))
        return RequestBody.of(start, items.blocks, end)

    def _settings(self, request: Request) -> Object:
        config = request.config
        heads = "\n\n".join(head.text for head in request.system)
        effort = config.reasoning_effort
        settings = known(
            {
                "model": config.model,
                "stream": True,
                "store": False,
                "instructions": heads or None,
                "include": ["reasoning.encrypted_content"] if self._encrypted_reasoning else None,
                "max_output_tokens": config.max_tokens,
                "temperature": config.temperature,
                "reasoning": {"effort": effort} if effort else None,
                "text": _text_settings(config),
                "prompt_cache_key": cache_key(request) if self._prompt_cache_key else None,
                **(_tool_settings(config) if request.tools else {}),
            }
        )
        return with_extra(settings, config, _OWN_MEMBERS)

    def _piece(self, message: Message) -> bytes:
        """A message's items, each behind a comma."""
        return b"".join(b"," + msgspec.json.encode(item) for item in self._items(message))

    def _items(self, message: Message) -> Iterator[Object | Raw]:
        match message:
            case SystemMessage(text=text):
                yield {"role": "developer", "content": text}
            case AssistantMessage(content=content):
                yield from self._answer(content)
            case ToolResultMessage():
                yield self._result(message)
            case _:
                yield {"role": "user", "content": self._content(message.content)}

    def _answer(self, content: Sequence[Block]) -> Iterator[Object | Raw]:
        owns = [own_members(block, self._replay_key) for block in content]
        reasoned = any(
            own and isinstance(block, ReasoningBlock)
            for block, own in zip(content, owns, strict=True)
        )
        held: list[Raw] = []  # reasoning that waits for what it led to: alone it is refused
        for block, own in zip(content, owns, strict=True):
            item: Object | Raw
            match block:
                case ReasoningBlock() if block.replay is not None and own:
                    held.append(block.replay.data)
                    continue
                case TextBlock(text=text) | RefusalBlock(text=text) if text:
                    item = _said(text, own, with_id=reasoned)
                case ToolCallBlock():
                    item = self._call(block, own if reasoned else {})
                case OpaqueBlock(replay=replay) if own:
                    item = replay.data
                case _:
                    continue
            yield from held
            held.clear()
            yield item

    def _call(self, call: ToolCallBlock, own: Object) -> Object:
        return {
            "type": "function_call",
            "call_id": self._call_ids.sent(call.wire_id),
            "name": call.name,
            "arguments": arguments_text(call.arguments),
            **own,
        }

    def _result(self, message: ToolResultMessage) -> Object:
        return {
            "type": "function_call_output",
            "call_id": self._call_ids.sent(message.wire_id),
            "output": self._content(message.content),
        }

    def _content(self, content: Sequence[Block]) -> str | list[Object]:
        if self._images and holds_image(content):
            return list(_parts(content))
        return words(content)


def _said(text: str, own: Object, *, with_id: bool) -> Object:
    phase = {"phase": own["phase"]} if "phase" in own else {}
    if not (with_id and "id" in own):
        return {"role": "assistant", "content": text, **phase}
    return {
        "type": "message",
        "role": "assistant",
        "id": own["id"],
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
        **phase,
    }


def _parts(content: Sequence[Block]) -> Iterator[Object]:
    for block in content:
        if isinstance(block, TextBlock):
            yield {"type": "input_text", "text": block.text}
        elif isinstance(block, ImageBlock):
            yield {"type": "input_image", "image_url": data_url(block), "detail": "auto"}


def _text_settings(config: CallConfig) -> Object | None:
    schema = config.output_schema
    return None if schema is UNSET else {"format": {"type": "json_schema"} | answer_format(schema)}


def _tool_settings(config: CallConfig) -> Object:
    choice = config.tool_choice
    named = choice is not None and choice not in {"auto", "required", "none"}
    return {
        "tool_choice": {"type": "function", "name": choice} if named else choice,
        "parallel_tool_calls": config.parallel_tool_calls,
    }


def _declaration(tool: ToolDeclaration) -> Object:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": False,
    }
