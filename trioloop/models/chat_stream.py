"""Reads the stream of a Chat Completions API: OpenAI's, and what its imitators make of it.

The recordings in `tests/streams` show each of the deviations that are read here.
"""

from collections.abc import Iterator
from typing import Any

from trioloop.chunks import ReasoningDelta, RefusalDelta, TextDelta, Usage
from trioloop.models.answer_reader import AnswerReader, Reading
from trioloop.models.chat_calls import CallReader
from trioloop.models.failures import truncated
from trioloop.models.reading import Object, count, objects, string


class ChatReader(AnswerReader):
    """One answer of a Chat Completions API in the making; see `AnswerReader`."""

    def __init__(self, reading: Reading) -> None:
        super().__init__(reading)
        self._calls = CallReader(reading.arguments_chars_max)
        self._details: list[Object] = []

    def _read_whole(self, payload: Object) -> None:
        self._read("message", payload)

    def _read(self, name: str, payload: Object) -> None:
        self._response_id = self._response_id or string(payload.get("id"))
        for choice in objects(payload.get("choices")):
            if choice.get("index") in (0, None):  # others are alternatives that nobody asked for
                self._read_choice(choice)
        self._tell_usage(read_usage(payload))
        failed = payload.get("error") or name == "error" or payload.get("object") == "error"
        # A token limit that is also told as an error is the finish `length` that came before it.
        if failed and self._stop_word != "length":
            raise self._error(payload)

    def _read_choice(self, choice: Object) -> None:
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            self._read_delta(delta)
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish and (not self._stop_word or finish == "error"):
            self._stop_word = finish
        self._tell_usage(read_usage(choice))

    def _read_delta(self, delta: Object) -> None:
        details = objects(delta.get("reasoning_details"))
        if details:
            self._details += details
        self._say(ReasoningDelta, _reasoning(delta) or _detail_text(details))
        content = delta.get("content")
        if isinstance(content, str):
            self._say(TextDelta, content)
        else:
            for part in objects(content):
                self._read_part(part)
        self._say(RefusalDelta, string(delta.get("refusal")))
        if delta.get("tool_calls") or delta.get("function_call"):
            self._chunks += self._calls.read(delta)

    def _read_part(self, part: Object) -> None:
        """A part of a content list, as Mistral's reasoning models send it."""
        if part.get("type") == "thinking":
            thought = part.get("thinking")
            texts = [thought] if isinstance(thought, str) else map(_text, objects(thought))
            self._say(ReasoningDelta, "".join(texts))
        else:
            self._say(TextDelta, _text(part))

    def _end(self, *, marked: bool) -> None:
        if not self._stop_word and not (marked and self._calls.complete):
            raise truncated()
        reason = self._reason(self._stop_word, calls=self._calls.any)
        self._calls.check_names()
        if any(detail.get("signature") or detail.get("data") for detail in self._details):
            self._replay("reasoning", 0, {"reasoning_details": _joined(self._details)})
        holds_something = self._calls.any or bool(self._details)
        self._finish(reason, self._stop_word, holds_something=holds_something)


def read_usage(holder: Object) -> Usage | None:
    """The usage in a chunk, or in one of its choices: None where it tells nothing."""
    groq = holder.get("x_groq")
    raw = holder.get("usage") or (groq.get("usage") if isinstance(groq, dict) else None)
    if not isinstance(raw, dict):
        return None
    prompt, output = count(raw, "prompt_tokens"), count(raw, "completion_tokens")
    if prompt is None and output is None:
        return None
    reasoning = count(raw.get("completion_tokens_details"), "reasoning_tokens")
    cached = count(raw.get("prompt_tokens_details"), "cached_tokens")
    if cached is None:
        cached = count(raw, "prompt_cache_hit_tokens")
    if reasoning and count(raw, "total_tokens") == (prompt or 0) + (output or 0) + reasoning:
        output = (output or 0) + reasoning  # xAI counts reasoning beside the completion
    return Usage(prompt, cached, output, reasoning)


def _text(part: Object) -> str:
    return string(part.get("text"))


def _reasoning(delta: Object) -> str:
    """Reasoning under either name; a server that sends both sends the same twice."""
    for name in ("reasoning_content", "reasoning"):
        text = string(delta.get(name))
        if text:
            return text
    return ""


def _detail_text(details: list[Object]) -> str:
    if not details:
        return ""
    return "".join(_text(detail) or string(detail.get("summary")) for detail in details)


_JOINED = {"text", "summary", "data", "signature"}


def _joined(details: list[Object]) -> list[Object]:
    """OpenRouter's reasoning details, their pieces joined."""
    joined: dict[tuple[str, str], Object] = {}
    for detail in details:
        key = (str(detail.get("index")), str(detail.get("type")))
        whole = joined.setdefault(key, {})
        for name, value in _members(detail):
            whole[name] = whole.get(name, "") + value if name in _JOINED else value
    return list(joined.values())


def _members(detail: Object) -> Iterator[tuple[str, Any]]:  # Any: as in Object
    for name, value in detail.items():
        if value is not None and (name not in _JOINED or isinstance(value, str)):
            yield name, value
