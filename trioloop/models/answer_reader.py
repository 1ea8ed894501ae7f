"""What the readers of all three APIs share: events in, chunks out, and exactly one end.

Sans-IO. An API's own reader says what an event means; here stands when an answer has ended, when
it was cut off, and when it was no answer at all.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import attrs
import msgspec
from msgspec import Raw

from trioloop.chunks import (
    BlockKind,
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
from trioloop.models.failures import failure_in_stream
from trioloop.models.kinds import FAILED_FINISHES, FAILURE_CODES, FINISHES
from trioloop.models.reading import UNREADABLE, Object, read_json
from trioloop.stream.sse import ServerEvent, SseDecoder


@attrs.frozen(kw_only=True)
class Reading:
    """What a reader is told.

    Attributes:
        replay_key: named in replay data, so that nobody else is sent it.
        event_bytes_max: the largest event that is read.
        arguments_chars_max: the longest raw arguments of one call.
        output_tokens_max: what the request allowed, if it did.
        secrets: what the message of a failure may not hold.
        request_id: the provider's id of the request, for failures.
    """

    replay_key: str
    event_bytes_max: int
    arguments_chars_max: int
    output_tokens_max: int | None = None
    secrets: Sequence[str] = ()
    request_id: str | None = None


class AnswerReader(ABC):
    """One answer in the making: bytes in, chunks out, and how it ended.

    Attributes:
        failure: how the answer failed; the chunks before it are good, as a part of an answer.
        finished: the answer is whole; nothing that comes later belongs to it.
    """

    def __init__(self, reading: Reading) -> None:
        self.failure: ModelFailure | None = None
        self.finished = False
        self._reading = reading
        self._decoder = SseDecoder(event_bytes_max=reading.event_bytes_max)
        self._chunks: list[Chunk] = []  # read, and not given out yet
        self._response_id = ""
        self._stop_word = ""  # the provider's, for why it stopped
        self._said_something = False
        self._refused = False
        self._usage: Usage | None = None

    @property
    def nearly_finished(self) -> bool:
        """The provider has said why it stopped: only usage and the mark of the end may follow."""
        return bool(self._stop_word)

    def feed(self, data: bytes) -> list[Chunk]:
        """The chunks that these bytes complete. Afterwards look at `failure` and `finished`."""
        try:
            for event in self._decoder.feed(data):
                self._take(event)
                if self.finished:
                    break
        except ModelFailure as failure:
            self._fail(failure)
        return self._given_out()

    def feed_whole(self, body: bytes) -> list[Chunk]:
        """The chunks of a body that is one JSON answer, where a stream was asked for."""
        try:
            payload = read_json(body)
            if not isinstance(payload, dict):
                raise ModelFailure("MALFORMED_RESPONSE", "the reply is no JSON object")
            self._read_whole(payload)
            if not self.nearly_finished:
                raise ModelFailure("MALFORMED_RESPONSE", "the reply is no answer of this API")
            self._close(marked=False)
        except ModelFailure as failure:
            self._fail(failure)
        return self._given_out()

    def close(self) -> list[Chunk]:
        """The last chunks, where the bytes have come to their end without a mark of it."""
        try:
            event = self._decoder.close()
            if event is not None and (_is_done(event) or read_json(event.data) is not UNREADABLE):
                self._take(event)
            self._close(marked=False)
        except ModelFailure as failure:
            self._fail(failure)
        return self._given_out()

    def _fail(self, failure: ModelFailure) -> None:
        """End as a failure, unless it has ended: what comes behind an end belongs to nobody."""
        if not self.finished:
            self.failure = self.failure or failure

    def _given_out(self) -> list[Chunk]:
        chunks, self._chunks = self._chunks, []
        return chunks

    def _take(self, event: ServerEvent) -> None:
        if self.finished or self.failure is not None or not event.data:
            return
        if _is_done(event):
            self._close(marked=True)
            return
        payload = read_json(event.data)
        if not isinstance(payload, dict):
            raise ModelFailure(
                "MALFORMED_RESPONSE", "an event of the stream is no JSON object", retryable=True
            )
        self._read(event.name, payload)

    def _close(self, *, marked: bool) -> None:
        if not self.finished and self.failure is None:
            self._end(marked=marked)

    # What an API's own reader says

    @abstractmethod
    def _read(self, name: str, payload: Object) -> None:
        """Read one event: its name, and its data."""

    @abstractmethod
    def _read_whole(self, payload: Object) -> None:
        """Read an answer that came in one piece."""

    @abstractmethod
    def _end(self, *, marked: bool) -> None:
        """End the answer, or raise how it failed. `marked`: a `[DONE]` says that it is the end."""

    # What it says it with

    def _say(
        self, kind: type[TextDelta | ReasoningDelta | RefusalDelta], text: str, block: int = 0
    ) -> None:
        if text:
            self._said_something = True
            self._refused = self._refused or kind is RefusalDelta
            self._chunks.append(kind(text, block))

    def _tell_usage(self, usage: Usage | None) -> None:
        if usage is not None and usage != self._usage:
            self._usage = usage
            self._chunks.append(UsageChunk(usage))

    def _replay(self, kind: BlockKind, block: int, value: object) -> None:
        """Keep what the provider wants back with a block, unchanged."""
        data = Raw(msgspec.json.encode(value))
        self._chunks.append(ReplayChunk(kind, block, Replay(self._reading.replay_key, data)))

    def _error(self, payload: object) -> ModelFailure:
        reading = self._reading
        return failure_in_stream(payload, secrets=reading.secrets, request_id=reading.request_id)

    def _reason(self, raw: str, *, calls: bool) -> FinishReason:
        """What the provider's word for why it stopped means.

        Raises:
            ModelFailure: it means an error.
        """
        failed = FAILED_FINISHES.get(raw)
        if failed is not None:
            raise ModelFailure(
                FAILURE_CODES[failed],
                f"the provider ended its answer with {raw!r}",
                request_id=self._reading.request_id,
            )
        reason = FINISHES.get(raw, "stop")
        if reason in {"stop", "tool_calls"}:
            if calls:
                return "tool_calls"
            return "refusal" if self._refused else "stop"
        return reason

    def _finish(
        self, reason: FinishReason, raw: str, *, holds_something: bool, detail: str = ""
    ) -> None:
        """The one good end.

        Raises:
            ModelFailure: EMPTY_RESPONSE. Content-less, it is an answer where tokens were counted.
        """
        counted = self._usage is not None and self._usage.output_tokens
        if reason == "stop" and not (self._said_something or holds_something or counted):
            raise ModelFailure("EMPTY_RESPONSE", "the model's answer is empty")
        inferred = raw.rpartition(":")[2] not in FINISHES
        self._chunks.append(Finish(reason, raw, inferred, detail, self._response_id))
        self.finished = True


def _is_done(event: ServerEvent) -> bool:
    return event.data.strip() == b"[DONE]"
