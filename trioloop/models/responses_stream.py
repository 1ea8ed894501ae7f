"""Reads the stream of a Responses API: OpenAI's, and what its imitators make of it.

Texts are given out as they come. What an item's end says of them counts more than the pieces did:
what is missing is given out then, and a call whose pieces say something else isn't run.
"""

from typing import TypeAlias

import msgspec

from trioloop.chunks import (
    ArgumentsDelta,
    BlockKind,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallStart,
    Usage,
)
from trioloop.errors import ModelFailure
from trioloop.models.answer_reader import AnswerReader, Reading
from trioloop.models.failures import check_arguments, truncated, unnamed_call
from trioloop.models.kinds import FINISHES
from trioloop.models.reading import Object, an_object, count, is_json_object, objects, string
from trioloop.models.responses_items import Item, Items, part_text

_Delta: TypeAlias = type[TextDelta | ReasoningDelta | RefusalDelta]
_SAID: dict[str, tuple[str, _Delta]] = {
    # the event's word, or a part's type: the part's kind, and what it says
    "output_text": ("text", TextDelta),
    "text": ("text", TextDelta),
    "refusal": ("refusal", RefusalDelta),
    "reasoning_text": ("reasoning", ReasoningDelta),
    "reasoning_summary_text": ("summary", ReasoningDelta),
    "summary_text": ("summary", ReasoningDelta),
}
_ENDS = {"completed", "incomplete", "failed", "cancelled"}


class ResponsesReader(AnswerReader):
    """One answer of a Responses API in the making; see `AnswerReader`."""

    def __init__(self, reading: Reading) -> None:
        super().__init__(reading)
        self._items = Items()
        self._blocks: dict[tuple[int, str, int], int] = {}
        self._why_incomplete = ""

    def _read(self, name: str, payload: Object) -> None:
        kind = string(payload.get("type")) or name
        if kind == "error" or (not kind.startswith("response.") and payload.get("error")):
            raise self._error(payload)
        word, _, step = kind.removeprefix("response.").partition(".")
        if word in _ENDS and not step:
            self._read_whole(an_object(payload.get("response")))
            self._close(marked=True)
        elif word == "output_item":
            self._read_item(payload.get("output_index"), an_object(payload.get("item")), step)
        elif word == "function_call_arguments":
            self._read_arguments(self._items.of_event(word, payload), payload, step)
        elif word in _SAID:
            self._read_text(word, self._items.of_event(word, payload), payload, step)
        elif word in {"created", "in_progress", "queued"}:
            self._read_id(an_object(payload.get("response")))

    def _read_id(self, response: Object) -> None:
        self._response_id = self._response_id or string(response.get("id"))

    def _read_whole(self, payload: Object) -> None:
        if payload.get("error"):
            raise self._error(payload)
        self._read_id(payload)
        for item, told in self._items.matched(objects(payload.get("output"))):
            self._complete(item, told)
        self._tell_usage(read_usage(payload.get("usage")))
        status = string(payload.get("status"))
        self._stop_word = status if status in _ENDS else ""
        self._why_incomplete = string(an_object(payload.get("incomplete_details")).get("reason"))

    def _read_item(self, index: object, told: Object, step: str) -> None:
        item = self._items.of_item(index, told)
        if item.type == "function_call":
            self._start_call(item, told)
        if step == "done":
            self._complete(item, told)

    def _start_call(self, item: Item, told: Object) -> None:
        name = string(told.get("name"))
        if name and not item.started:
            item.started = True
            self._chunks.append(ToolCallStart(item.number, item.call_id, name))
            held = item.text("arguments")
            if held:
                self._chunks.append(ArgumentsDelta(item.number, held))

    # Pieces

    def _read_text(self, word: str, item: Item, payload: Object, step: str) -> None:
        kind, says = _SAID[word]
        index = payload.get("summary_index" if kind == "summary" else "content_index")
        place = index if isinstance(index, int) else 0
        if step == "delta":
            self._add_text(item, kind, says, place, string(payload.get("delta")))
        elif step == "done":
            self._add_rest(item, kind, says, place, part_text(payload))

    def _read_arguments(self, item: Item, payload: Object, step: str) -> None:
        if step == "delta":
            self._add_arguments(item, string(payload.get("delta")))
        elif step == "done":
            self._settle_arguments(item, string(payload.get("arguments")))

    def _add_text(self, item: Item, kind: str, says: _Delta, place: int, text: str) -> None:
        if text:
            item.texts.setdefault((kind, place), []).append(text)
            self._say(says, text, self._block(item, kind, place))

    def _add_rest(self, item: Item, kind: str, says: _Delta, place: int, whole: str) -> None:
        said = item.text(kind, place)
        if whole.startswith(said):
            self._add_text(item, kind, says, place, whole[len(said) :])

    def _block(self, item: Item, kind: str, place: int) -> int:
        """Our number of a part."""
        return self._blocks.setdefault((item.number, kind, place), len(self._blocks))

    def _add_arguments(self, item: Item, text: str) -> None:
        if not text:
            return
        pieces = item.texts.setdefault(("arguments", 0), [])
        pieces.append(text)
        item.chars += len(text)
        check_arguments(item.chars, self._reading.arguments_chars_max)
        if item.started:
            self._chunks.append(ArgumentsDelta(item.number, text))

    def _settle_arguments(self, item: Item, whole: str) -> None:
        said = item.text("arguments")
        if whole.startswith(said):
            self._add_arguments(item, whole[len(said) :])
        elif whole and not _same_json(said, whole):
            raise ModelFailure(
                "MALFORMED_RESPONSE",
                "the pieces of a call's arguments say something else than their end",
                retryable=True,
            )

    # Whole items

    def _complete(self, item: Item, told: Object) -> None:
        """Give out what the pieces of an item left out, and what is to be sent back with it."""
        if item.type == "function_call":
            self._start_call(item, told)
            self._settle_arguments(item, string(told.get("arguments")))
        for members in ("summary", "content"):
            for place, part in enumerate(objects(told.get(members))):
                known = _SAID.get(string(part.get("type")))
                if known is not None:
                    self._add_rest(item, *known, place, part_text(part))
        if not item.done:
            item.done = True
            self._keep(item, told)

    def _keep(self, item: Item, told: Object) -> None:
        if item.type == "message":
            kind, block = self._first_said(item)
            members = {name: told[name] for name in ("id", "phase") if told.get(name)}
            if members and kind == "text":  # a refusal has nothing beside its words
                self._replay(kind, block, members)
        elif item.type == "function_call":
            if told.get("id"):
                self._replay("tool-call", item.number, {"id": told["id"]})
        elif item.type == "reasoning":
            if told.get("encrypted_content") or told.get("content"):
                self._replay(*self._first_said(item), told)
        elif item.type:
            self._replay("opaque", item.number, told)

    def _first_said(self, item: Item) -> tuple[BlockKind, int]:
        """The first block of an item, which is sent back for all of them."""
        silent = "reasoning" if item.type == "reasoning" else "text"
        kind, place = next(iter(item.texts), (silent, 0))
        block = self._block(item, kind, place)
        if kind == "refusal":
            return "refusal", block
        return ("text" if kind == "text" else "reasoning"), block

    # The end

    def _end(self, *, marked: bool) -> None:
        if not self._stop_word:
            raise truncated()
        calls = [item for item in self._items.all if item.type == "function_call"]
        if any(not item.started for item in calls):
            raise unnamed_call()
        raw, word = self._stop_word, self._stop_word
        if raw == "incomplete":
            raw = f"incomplete:{self._why_incomplete}"
            word = self._why_incomplete if self._why_incomplete in FINISHES else "incomplete"
        elif raw == "completed" and self._is_cut(calls):
            word = "max_output_tokens"
        reason = self._reason(word, calls=bool(calls))
        holds_something = any(item.type != "message" for item in self._items.all)
        self._finish(reason, raw, holds_something=holds_something)

    def _is_cut(self, calls: list[Item]) -> bool:
        """Whether the last call was cut off by the token limit, though nothing says so."""
        limit = self._reading.output_tokens_max
        used = self._usage.output_tokens if self._usage is not None else None
        at_limit = limit is not None and used is not None and used >= limit
        return at_limit and bool(calls) and not is_json_object(calls[-1].text("arguments") or "{}")


def read_usage(counts: object) -> Usage | None:
    """The usage that a response tells: None where it tells nothing."""
    members = an_object(counts)
    prompt, output = count(members, "input_tokens"), count(members, "output_tokens")
    if prompt is None and output is None:
        return None
    cached = count(members.get("input_tokens_details"), "cached_tokens")
    reasoning = count(members.get("output_tokens_details"), "reasoning_tokens")
    return Usage(prompt, cached, output, reasoning)


def _same_json(one: str, other: str) -> bool:
    try:
        return bool(msgspec.json.decode(one) == msgspec.json.decode(other))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
