"""Writes the body of a Messages request from a `Request`.

The API wants turns that alternate, and all results of an answer in one of them, so neighbours of
one role share a message. What an answer's blocks were sent with goes back unchanged, in order, to
their own provider; others' blocks that say nothing to it are left out.
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
from trioloop.models.encoded_history import Encode, EncodedHistory
from trioloop.models.reading import Object
from trioloop.models.request_body import RequestBody
from trioloop.models.request_settings import EncodedTools, known, own_members, with_extra
from trioloop.models.sent_calls import PLAIN_IDS, arguments_json
from trioloop.models.shown_images import instead_of

_OWN_MEMBERS = {"model", "messages", "system", "stream", "tools"}
_NEXT_TURN = b"]},"  # before the first message of a turn
_CHOICES = {"auto": "auto", "required": "any", "none": "none"}


class AnthropicEncoder:
    """Encodes the requests of one adapter.

    Args:
        replay_key: whose replay data may go out; others' stays here (E6).
        images: the model can be shown images.
        system_in_history: a changed section may stand among the messages as such.
        cache_ttl: how long the provider is to keep the request's prefix; "": not at all.
    """

    def __init__(
        self, replay_key: str, *, images: bool, system_in_history: bool, cache_ttl: str
    ) -> None:
        self._replay_key = replay_key
        self._images = images
        self._system_in_history = system_in_history
        self._cache_ttl = cache_ttl
        self._history = EncodedHistory(self._begin, _NEXT_TURN)
        self._tools = EncodedTools(_declaration)

    def body(self, request: Request) -> RequestBody:
        """The body of a request.

        Raises:
            ModelFailure: INVALID_REQUEST, the settings can't be sent.
        """
        settings = msgspec.json.encode(self._settings(request))
        turns = self._history.of(request.history)
        start = settings.removesuffix(b"}") + b',"messages":['
        closed = b"]}]" if turns else b"]"
        end = b"%b%b%b}" % (turns.tail, closed, self._tools.member(request.tools))
        return RequestBody.of(start, turns.blocks, end)

    def _settings(self, request: Request) -> Object:
        config = request.config
        heads = "\n\n".join(head.text for head in request.system)
        settings = known(
            {
                "model": config.model,
                "stream": True,
                "max_tokens": config.max_tokens,
                "temperature": config.temperature,
                "cache_control": self._cache_control(),
                "output_config": _output_config(config) or None,
                "tool_choice": _tool_choice(config) if request.tools else None,
                "system": heads or None,
            }
        )
        return with_extra(settings, config, _OWN_MEMBERS)

    def _cache_control(self) -> Object | None:
        return {"type": "ephemeral", "ttl": self._cache_ttl} if self._cache_ttl else None

    def _begin(self) -> Encode:
        role = ""

        def piece(message: Message) -> bytes:
            nonlocal role
            before, (said_by, blocks) = role, self._turn(message)
            content = b",".join(map(msgspec.json.encode, blocks))
            if not content:
                return b""
            role = said_by
            if role == before:
                return b"," + content
            return b'%b{"role":"%b","content":[%b' % (_NEXT_TURN, role.encode(), content)

        return piece

    def _turn(self, message: Message) -> tuple[str, Iterator[Object | Raw]]:
        match message:
            case SystemMessage(text=text):
                return self._update(text)
            case AssistantMessage(content=content):
                return "assistant", self._answer(content)
            case ToolResultMessage():
                return "user", iter([self._result(message)])
        return "user", self._parts(message.content)

    def _update(self, text: str) -> tuple[str, Iterator[Object | Raw]]:
        """A changed section: as what it is, or told in the user's turn."""
        if self._system_in_history:
            return "system", _text(text)
        return "user", _text(f"<system>\n{text}\n</system>")

    def _answer(self, content: Sequence[Block]) -> Iterator[Object | Raw]:
        for block in content:
            own = own_members(block, self._replay_key)
            match block:
                case TextBlock(text=text):
                    yield from (part | own for part in _text(text))
                case RefusalBlock(text=text):
                    yield from _text(text)
                case ReasoningBlock(text=text) if own:
                    yield {"type": "thinking", "thinking": text} | own
                case ToolCallBlock():
                    yield _call(block) | own
                case OpaqueBlock(replay=replay) if own:
                    yield replay.data

    def _result(self, message: ToolResultMessage) -> Object:
        result: Object = {
            "type": "tool_result",
            "tool_use_id": PLAIN_IDS.sent(message.wire_id),
            "content": list(self._parts(message.content)),
        }
        return result | ({"is_error": True} if message.is_error else {})

    def _parts(self, content: Sequence[Block]) -> Iterator[Object]:
        for block in content:
            if isinstance(block, TextBlock):
                yield from _text(block.text)
            elif isinstance(block, ImageBlock):
                yield from [_image(block)] if self._images else _text(instead_of(block))


def _text(text: str) -> Iterator[Object]:
    """A text, unless it is blank: the API refuses those."""
    if text.strip():
        yield {"type": "text", "text": text}


def _image(image: ImageBlock) -> Object:
    source = {"type": "base64", "media_type": image.media_type, "data": image.data}
    return {"type": "image", "source": source}


def _call(call: ToolCallBlock) -> Object:
    sent_id, arguments = PLAIN_IDS.sent(call.wire_id), arguments_json(call.arguments)
    return {"type": "tool_use", "id": sent_id, "name": call.name, "input": arguments}


def _output_config(config: CallConfig) -> Object:
    schema = config.output_schema
    shape = None if schema is UNSET else {"type": "json_schema", "schema": schema}
    return known({"effort": config.reasoning_effort, "format": shape})


def _tool_choice(config: CallConfig) -> Object | None:
    alone = config.parallel_tool_calls is False
    if config.tool_choice is None and not alone:
        return None
    choice = config.tool_choice or "auto"
    kind = _CHOICES.get(choice)
    chosen: Object = {"type": kind} if kind else {"type": "tool", "name": choice}
    if alone and kind != "none":
        chosen["disable_parallel_tool_use"] = True
    return chosen


def _declaration(tool: ToolDeclaration) -> Object:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
