"""Reads the stream of a Messages API: Anthropic's, and what its imitators and gateways make of it.

Blocks are told apart by our own numbers, in the order of their first sight: a gateway may begin a
message, and with it the provider's numbers, a second time.
"""

from typing import Final

import attrs
import msgspec

from trioloop.chunks import (
    ArgumentsDelta,
    BlockKind,
    ReasoningDelta,
    TextDelta,
    ToolCallStart,
    Usage,
)
from trioloop.models.answer_reader import AnswerReader, Reading
from trioloop.models.failures import check_arguments, truncated, unnamed_call
from trioloop.models.reading import UNREADABLE, Object, an_object, count, objects, read_json, string

_KINDS: dict[str, BlockKind] = {"text": "text", "thinking": "reasoning", "tool_use": "tool-call"}
_TYPE_OF_DELTA: Final = {
    "text_delta": "text",
    "citations_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
}
_COUNTS = (
    "input_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "output_tokens",
    "output_tokens_details",
)


@attrs.define
class _Block:
    """A block in the making.

    Attributes:
        number: ours.
        start: as the provider began it; of a block that only it understands, the whole of it.
        pieces: of the JSON of a call's input.
        chars: how many characters those have.
        citations: of a text.
        open: it hasn't been ended.
    """

    number: int
    start: Object
    pieces: list[str] = attrs.Factory(list)
    chars: int = 0
    citations: list[Object] = attrs.Factory(list)
    open: bool = True

    @property
    def type(self) -> str:
        return string(self.start.get("type"))

    @property
    def kind(self) -> BlockKind:
        return _KINDS.get(self.type, "opaque")


class AnthropicReader(AnswerReader):
    """One answer of a Messages API in the making; see `AnswerReader`."""

    def __init__(self, reading: Reading) -> None:
        super().__init__(reading)
        self._blocks: list[_Block] = []
        self._by_index: dict[int, _Block] = {}
        self._counts: Object = {}
        self._detail = ""

    def _read(self, name: str, payload: Object) -> None:
        match payload.get("type", name):
            case "message_start":
                self._begin(an_object(payload.get("message")))
            case "content_block_start":
                self._start(payload.get("index"), an_object(payload.get("content_block")))
            case "content_block_delta":
                self._continue(payload.get("index"), an_object(payload.get("delta")))
            case "content_block_stop":
                self._stop(self._by_index.get(_index(payload.get("index"))))
            case "message_delta":
                self._read_end(an_object(payload.get("delta")))
                self._read_usage(payload)
            case "message_stop":
                self._close(marked=True)
            case _ if payload.get("type") == "error" or name == "error" or "error" in payload:
                raise self._error(payload)

    def _read_whole(self, payload: Object) -> None:
        if payload.get("type") == "error" or "error" in payload:
            raise self._error(payload)
        self._begin(payload)
        for index, block in enumerate(objects(payload.get("content"))):
            self._start(index, block)
        self._read_end(payload)

    def _begin(self, message: Object) -> None:
        self._response_id = self._response_id or string(message.get("id"))
        self._read_usage(message)

    def _start(self, index: object, start: Object) -> None:
        block = _Block(len(self._blocks), dict(start))
        self._blocks.append(block)
        self._by_index[_index(index)] = block
        if block.kind == "text":
            self._say(TextDelta, string(start.get("text")), block.number)
            block.citations = objects(start.get("citations"))
        elif block.kind == "reasoning":
            self._say(ReasoningDelta, string(start.get("thinking")), block.number)
            self._sign(block, string(start.get("signature")))
        elif block.kind == "tool-call":
            name = string(start.get("name"))
            if not name:
                raise unnamed_call()
            self._chunks.append(ToolCallStart(block.number, string(start.get("id")), name))

    def _continue(self, index: object, delta: Object) -> None:
        kind = string(delta.get("type"))
        block = self._by_index.get(_index(index))
        if block is None:
            if kind not in _TYPE_OF_DELTA:
                return  # a piece of nothing that we know
            self._start(index, {"type": _TYPE_OF_DELTA[kind]})
            block = self._blocks[-1]
        if kind == "text_delta":
            self._say(TextDelta, string(delta.get("text")), block.number)
        elif kind == "thinking_delta":
            self._say(ReasoningDelta, string(delta.get("thinking")), block.number)
        elif kind == "signature_delta":
            self._sign(block, string(delta.get("signature")))
        elif kind == "input_json_delta":
            self._add_input(block, string(delta.get("partial_json")))
        elif kind == "citations_delta":
            block.citations += objects([delta.get("citation")])
        elif block.kind == "opaque":
            _add_members(block.start, delta)

    def _sign(self, block: _Block, signature: str) -> None:
        if signature:
            self._replay("reasoning", block.number, {"signature": signature})

    def _add_input(self, block: _Block, text: str) -> None:
        if not text:
            return
        block.chars += len(text)
        check_arguments(block.chars, self._reading.arguments_chars_max)
        block.pieces.append(text)
        if block.kind == "tool-call":
            self._chunks.append(ArgumentsDelta(block.number, text))

    def _stop(self, block: _Block | None) -> None:
        if block is None or not block.open:
            return
        block.open = False
        if block.kind == "text" and block.citations:
            self._replay("text", block.number, {"citations": block.citations})
        elif block.kind == "tool-call":
            self._stop_call(block)
        elif block.kind == "opaque" and (whole := _whole(block)) is not None:
            self._replay("opaque", block.number, whole)

    def _stop_call(self, block: _Block) -> None:
        whole = block.start.get("input")
        if whole and not block.pieces:  # a server that doesn't stream it
            self._add_input(block, msgspec.json.encode(whole).decode())
        caller = an_object(block.start.get("caller"))
        if caller and caller.get("type") != "direct":
            self._replay("tool-call", block.number, {"caller": caller})

    def _read_end(self, delta: Object) -> None:
        reason = string(delta.get("stop_reason"))
        if reason:
            self._stop_word = reason
            details = an_object(delta.get("stop_details"))
            self._detail = string(delta.get("stop_sequence")) or string(details.get("category"))

    def _read_usage(self, holder: Object) -> None:
        """Counts are cumulative: a later one replaces an earlier one, where it says something."""
        counts = an_object(holder.get("usage"))
        told = {name: counts[name] for name in _COUNTS if counts.get(name) is not None}
        if told:
            self._counts |= told
            self._tell_usage(read_usage(self._counts))

    def _end(self, *, marked: bool) -> None:
        if not self._stop_word:
            raise truncated()
        for block in self._blocks:
            self._stop(block)
        calls = any(block.kind == "tool-call" for block in self._blocks)
        reason = self._reason(self._stop_word, calls=calls)
        holds_something = calls or any(block.kind == "opaque" for block in self._blocks)
        self._finish(reason, self._stop_word, holds_something=holds_something, detail=self._detail)


def read_usage(counts: Object) -> Usage | None:
    """The usage that the counts of a message tell: None where they tell nothing."""
    fresh, output = count(counts, "input_tokens"), count(counts, "output_tokens")
    cached = count(counts, "cache_read_input_tokens")
    written = count(counts, "cache_creation_input_tokens")
    if fresh is None and output is None:
        return None
    total = None if fresh is None else fresh + (cached or 0) + (written or 0)
    reasoning = count(counts.get("output_tokens_details"), "thinking_tokens")
    return Usage(total, cached, output, reasoning)


def _index(value: object) -> int:
    return value if isinstance(value, int) else -1


def _add_members(whole: Object, delta: Object) -> None:
    """Add what a delta says to a block that only its provider understands."""
    for name, value in delta.items():
        if name == "type":
            continue
        before = whole.get(name)
        if isinstance(before, str) and isinstance(value, str):
            whole[name] = before + value
        else:
            whole[name] = value


def _whole(block: _Block) -> Object | None:
    """A block that can be sent back; None where it has no type, or its input came in part only."""
    if not block.type:
        return None
    if not block.pieces:
        return block.start
    value = read_json("".join(block.pieces).encode())
    return None if value is UNREADABLE else block.start | {"input": value}
