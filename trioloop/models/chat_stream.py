"""Reads the stream of a Chat Completions API: OpenAI's, and what its imitators make of it.

Sans-IO: bytes in, chunks out. The recordings in `tests/streams` show each of the deviations that
are read here.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw

from trioloop.chunks import (
    Chunk,
    Finish,
    FinishReason,
    ReasoningDelta,
    RefusalDelta,
    ReplayChunk,
    TextDelta,
    Usage,
    UsageChunk,
)
from trioloop.errors import ModelFailure
from trioloop.messages import Replay
from trioloop.models.chat_calls import CallReader
from trioloop.models.failures import failure_in_stream
from trioloop.models.kinds import FAILED_FINISHES, FAILURE_CODES, FINISHES
from trioloop.stream.sse import ServerEvent, SseDecoder

Object: TypeAlias = dict[str, Any]  # Any: a provider's JSON; each value is checked where it's read

_UNREADABLE = object()


class ChatReader:
    """One answer in the making: bytes in, chunks out, and how it ended.

    Args:
        provider: named in replay data, so that no other provider is sent it.
        event_bytes_max: the largest event that is read.
        arguments_chars_max: the longest raw arguments of one call.
        secrets: what the message of a failure may not hold.
        request_id: the provider's id of the request, for failures.

    Attributes:
        failure: how the answer failed; the chunks before it are good, as a part of an answer.
        finished: the answer is whole; nothing that comes later belongs to it.
    """

    def __init__(
        self,
        *,
        provider: str,
        event_bytes_max: int,
        arguments_chars_max: int,
        secrets: Sequence[str] = (),
        request_id: str | None = None,
    ) -> None:
        self.failure: ModelFailure | None = None
        self.finished = False
        self._provider = provider
        self._secrets = secrets
        self._request_id = request_id
        self._decoder = SseDecoder(event_bytes_max=event_bytes_max)
        self._calls = CallReader(arguments_chars_max)
        self._details: list[Object] = []
        self._chunks: list[Chunk] = []  # read, and not given out yet
        self._said_something = False
        self._refused = False
        self._usage: Usage | None = None
        self._finish: str | None = None

    @property
    def nearly_finished(self) -> bool:
        """The provider has said why it stopped: only usage and the mark of the end may follow."""
        return self._finish is not None

    def feed(self, data: bytes) -> list[Chunk]:
        """The chunks that these bytes complete. Afterwards look at `failure` and `finished`."""
        try:
            for event in self._decoder.feed(data):
                self._read(event)
        except ModelFailure as failure:
            self.failure = failure
        return self._given_out()

    def feed_whole(self, body: bytes) -> list[Chunk]:
        """The chunks of a body that is one JSON answer, where a stream was asked for."""
        try:
            self._read(ServerEvent("message", body))
            if self._finish is None:
                raise ModelFailure("MALFORMED_RESPONSE", "the reply is no answer of a chat API")
            self._end(inferable=False)
        except ModelFailure as failure:
            self.failure = failure
        return self._given_out()

    def close(self) -> list[Chunk]:
        """The last chunks, where the bytes have come to their end without a mark of it."""
        try:
            event = self._decoder.close()
            if event is not None and (_is_done(event) or _json(event.data) is not _UNREADABLE):
                self._read(event)
            self._end(inferable=False)
        except ModelFailure as failure:
            self.failure = self.failure or failure
        return self._given_out()

    def _given_out(self) -> list[Chunk]:
        chunks, self._chunks = self._chunks, []
        return chunks

    def _read(self, event: ServerEvent) -> None:
        if self.finished or self.failure is not None or not event.data:
            return
        if _is_done(event):
            self._end(inferable=True)
            return
        payload = _json(event.data)
        if not isinstance(payload, dict):
            raise ModelFailure("MALFORMED_RESPONSE", "an event of the stream is no JSON object")
        for choice in _objects(payload.get("choices")):
            if choice.get("index") in (0, None):  # others are alternatives that nobody asked for
                self._read_choice(choice)
        self._read_usage(payload)
        failed = payload.get("error") or event.name == "error" or payload.get("object") == "error"
        # A token limit that is also told as an error is the finish `length` that came before it.
        if failed and self._finish != "length":
            raise failure_in_stream(payload, secrets=self._secrets, request_id=self._request_id)

    def _read_choice(self, choice: Object) -> None:
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            self._read_delta(delta)
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish and (self._finish is None or finish == "error"):
            self._finish = finish
        self._read_usage(choice)

    def _read_delta(self, delta: Object) -> None:
        details = _objects(delta.get("reasoning_details"))
        if details:
            self._details += details
        self._say(ReasoningDelta, _reasoning(delta) or _detail_text(details))
        content = delta.get("content")
        if isinstance(content, str):
            self._say(TextDelta, content)
        else:
            for part in _objects(content):
                self._read_part(part)
        refusal = _string(delta.get("refusal"))
        if refusal:
            self._refused = True
            self._say(RefusalDelta, refusal)
        if delta.get("tool_calls") or delta.get("function_call"):
            self._chunks += self._calls.read(delta)

    def _read_part(self, part: Object) -> None:
        """A part of a content list, as Mistral's reasoning models send it."""
        if part.get("type") == "thinking":
            thought = part.get("thinking")
            texts = [thought] if isinstance(thought, str) else map(_text, _objects(thought))
            self._say(ReasoningDelta, "".join(texts))
        else:
            self._say(TextDelta, _text(part))

    def _say(self, kind: type[TextDelta | ReasoningDelta | RefusalDelta], text: str) -> None:
        if text:
            self._said_something = True
            self._chunks.append(kind(text))

    def _read_usage(self, holder: Object) -> None:
        usage = read_usage(holder)
        if usage is not None and usage != self._usage:
            self._usage = usage
            self._chunks.append(UsageChunk(usage))

    def _end(self, *, inferable: bool) -> None:
        if self.finished or self.failure is not None:
            return
        if self._finish is None and not (inferable and self._calls.complete):
            raise ModelFailure("TRUNCATED", "the stream ended before the model's answer did")
        reason = self._reason()
        self._calls.check_names()
        self._check_something_came(reason)
        replay = _replay(self._details)
        if replay is not None:
            self._chunks.append(ReplayChunk("reasoning", 0, Replay(self._provider, replay)))
        self._chunks.append(Finish(reason, self._finish or "", self._finish not in FINISHES))
        self.finished = True

    def _reason(self) -> FinishReason:
        failed = FAILED_FINISHES.get(self._finish or "")
        if failed is not None:
            raise ModelFailure(
                FAILURE_CODES[failed],
                f"the provider ended its answer with {self._finish!r}",
                request_id=self._request_id,
            )
        reason = FINISHES.get(self._finish or "", "stop")
        if reason in {"stop", "tool_calls"}:
            if self._calls.any:
                return "tool_calls"
            return "refusal" if self._refused else "stop"
        return reason

    def _check_something_came(self, reason: FinishReason) -> None:
        """A content-less `stop` is an answer where tokens were counted for it."""
        counted = self._usage is not None and self._usage.output_tokens
        came = self._said_something or self._calls.any or self._details or counted
        if reason == "stop" and not came:
            raise ModelFailure("EMPTY_RESPONSE", "the model's answer is empty")


def read_usage(holder: Object) -> Usage | None:
    """The usage in a chunk, or in one of its choices: None where it tells nothing."""
    groq = holder.get("x_groq")
    raw = holder.get("usage") or (groq.get("usage") if isinstance(groq, dict) else None)
    if not isinstance(raw, dict):
        return None
    prompt, output = _count(raw, "prompt_tokens"), _count(raw, "completion_tokens")
    if prompt is None and output is None:
        return None
    reasoning = _count(raw.get("completion_tokens_details"), "reasoning_tokens")
    cached = _count(raw.get("prompt_tokens_details"), "cached_tokens")
    if cached is None:
        cached = _count(raw, "prompt_cache_hit_tokens")
    if reasoning and _count(raw, "total_tokens") == (prompt or 0) + (output or 0) + reasoning:
        output = (output or 0) + reasoning  # xAI counts reasoning beside the completion
    return Usage(prompt, cached, output, reasoning)


def _count(holder: object, name: str) -> int | None:
    value = holder.get(name) if isinstance(holder, dict) else None
    return value if isinstance(value, int) and value >= 0 else None


def _is_done(event: ServerEvent) -> bool:
    return event.data.strip() == b"[DONE]"


def _json(data: bytes) -> object:
    """The JSON value of some data; half a surrogate pair in it becomes a question mark."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        value = json.loads(data.decode("utf-8", "replace"), strict=False)
        encoded = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        return msgspec.json.decode(encoded)
    except (ValueError, RecursionError):
        return _UNREADABLE


def _objects(value: object) -> list[Object]:
    if not isinstance(value, list):
        return []
    return [item for item in value if isinstance(item, dict)]


def _text(part: Object) -> str:
    return _string(part.get("text"))


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _reasoning(delta: Object) -> str:
    """Reasoning under either name; a server that sends both sends the same twice."""
    for name in ("reasoning_content", "reasoning"):
        text = _string(delta.get(name))
        if text:
            return text
    return ""


def _detail_text(details: list[Object]) -> str:
    if not details:
        return ""
    return "".join(_text(detail) or _string(detail.get("summary")) for detail in details)


_JOINED = {"text", "summary", "data", "signature"}


def _replay(details: list[Object]) -> Raw | None:
    """OpenRouter's reasoning details, their pieces joined, where they hold more than plain text."""
    if not any(detail.get("signature") or detail.get("data") for detail in details):
        return None
    joined: dict[tuple[str, str], Object] = {}
    for detail in details:
        key = (str(detail.get("index")), str(detail.get("type")))
        whole = joined.setdefault(key, {})
        for name, value in _members(detail):
            whole[name] = whole.get(name, "") + value if name in _JOINED else value
    return Raw(msgspec.json.encode({"reasoning_details": list(joined.values())}))


def _members(detail: Object) -> Iterator[tuple[str, Any]]:  # Any: as in Object
    for name, value in detail.items():
        if value is not None and (name not in _JOINED or isinstance(value, str)):
            yield name, value
