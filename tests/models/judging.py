"""Compares what was read of a recording with the whole of what its `expected` says.

Each fact has its judge here. A recording with a fact that nobody here knows fails: it is looked
at, not skipped.
"""

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec

from tests.models.recordings import Recording
from trioloop.chunks import Usage
from trioloop.errors import ModelFailure
from trioloop.messages import (
    OpaqueBlock,
    ReasoningBlock,
    RefusalBlock,
    Replay,
    TextBlock,
    ToolCallBlock,
)
from trioloop.models import anthropic_stream, chat_stream, responses_stream
from trioloop.models.failures import error_kind, read_error
from trioloop.models.kinds import FAILURE_CODES
from trioloop.stream.assemble import Assembled
from trioloop.stream.sse import SseDecoder


class Reading(msgspec.Struct):
    """What was read of a recording."""

    recording: Recording
    answer: Assembled
    failure: ModelFailure | None

    @property
    def expected(self) -> Recording:
        expected: Recording = self.recording["expected"]
        return expected


def assert_as_expected(
    recording: Recording, answer: Assembled, failure: ModelFailure | None
) -> None:
    """Assert that an answer, or its part before a failure, is what the recording expects."""
    reading = Reading(recording, answer, failure)
    expected = recording["expected"]
    assert expected.keys() <= JUDGES.keys() | ABOUT_THE_RECORDING
    for fact in expected.keys() & JUDGES.keys():
        JUDGES[fact](reading, expected[fact])
    if "error_kind" not in expected and expected["finish"] != "error":
        assert failure is None
        assert len(opaque(answer)) == sum(
            len(expected.get(fact) or ()) for fact in ("server_blocks", "redacted_thinking")
        )
        assert len(signatures(answer)) == len(expected.get("signatures") or ())


ABOUT_THE_RECORDING = {
    "quirks",  # what is unusual in it
    "official_sdk",  # how other clients read it
    "finish_inferred",  # judged with `finish`
    "finish_accept",  # judged with `finish`
    "retryable",  # judged with `error_kind`
    "limit_tokens",  # as are these three
    "prompt_tokens",
    "completion_tokens",
}


def _judge_text(reading: Reading, text: str) -> None:
    assert texts(reading.answer, TextBlock) == text


def _judge_reasoning(reading: Reading, text: str) -> None:
    assert texts(reading.answer, ReasoningBlock) == text


def _judge_refusal(reading: Reading, text: str) -> None:
    assert texts(reading.answer, RefusalBlock) == text


def _judge_calls(reading: Reading, calls: list[Recording]) -> None:
    assert [told(call) for call in reading.answer.message.calls] == calls


def _judge_finish(reading: Reading, finish: str) -> None:
    accepted = reading.expected.get("finish_accept") or [finish]
    if reading.failure is not None:
        assert "error" in accepted
        assert reading.answer.finish is None
        return
    assert reading.answer.finish is not None
    assert reading.answer.finish.reason in accepted
    assert reading.answer.finish.inferred == reading.expected.get("finish_inferred", False)


def _judge_raw_finish(reading: Reading, raw: str | None) -> None:
    if reading.answer.finish is not None:
        assert reading.answer.finish.raw == (raw or "")


def _judge_usage(reading: Reading, usage: Recording | None) -> None:
    assert_usage(reading.answer.usage, usage, reading.expected.get("usage_raw") or {})


def _judge_raw_usage(reading: Reading, raw: Recording | None) -> None:
    if raw is None:
        assert reading.answer.usage is None
        return
    read = {
        "openai_chat": lambda: chat_stream.read_usage({"usage": raw}),
        "openai_responses": lambda: responses_stream.read_usage(raw),
        "anthropic_messages": lambda: anthropic_stream.read_usage(raw),
    }
    assert reading.answer.usage == read[reading.recording["api"]]()


def _judge_error(reading: Reading, error: object) -> None:
    if not error or reading.expected["finish"] != "error":
        return  # a token limit that is told as an error, too
    assert reading.failure is not None
    found = read_error({"error": error})
    assert found is not None
    assert reading.failure.code == FAILURE_CODES[error_kind(found)]


def _judge_error_kind(reading: Reading, kind: str) -> None:
    failure = reading.failure
    assert failure is not None
    assert failure.code == FAILURE_CODES[kind]  # type: ignore[index]  # one of the kinds
    assert failure.retryable == reading.expected["retryable"]
    for name in ("limit", "prompt", "completion"):
        count = reading.expected.get(f"{name}_tokens")
        assert count is None or f"{name} {count}" in failure.message


def _judge_signatures(reading: Reading, hashes: list[Recording]) -> None:
    assert [hashed(text) for text in signatures(reading.answer)] == hashes


def _judge_redacted(reading: Reading, hashes: list[Recording]) -> None:
    blocks = [block for block in opaque(reading.answer) if block["type"] == "redacted_thinking"]
    assert [hashed(block["data"]) for block in blocks] == hashes


def _judge_server_blocks(reading: Reading, kinds: list[str]) -> None:
    found = [block["type"] for block in opaque(reading.answer)]
    assert [kind for kind in found if kind != "redacted_thinking"] == kinds


def _judge_encrypted(reading: Reading, count: int) -> None:
    items = reasoning_items(reading.answer)
    assert sum(bool(item.get("encrypted_content")) for item in items) == count


def _judge_stop_sequence(reading: Reading, sequence: str) -> None:
    assert reading.answer.finish is not None
    assert reading.answer.finish.detail == sequence


def _judge_response_id(reading: Reading, response_id: str) -> None:
    if reading.answer.finish is not None:
        assert reading.answer.finish.response_id == response_id


def _judge_events(reading: Reading, count: int) -> None:
    decoder = SseDecoder(event_bytes_max=10**9)
    events = list(decoder.feed(reading.recording["sse_text"].encode()))
    last = decoder.close()
    events += [last] if last is not None else []
    assert len(events) == count


# Any: each judge is given what its fact holds
JUDGES: dict[str, Callable[[Reading, Any], None]] = {
    "text": _judge_text,
    "reasoning": _judge_reasoning,
    "refusal": _judge_refusal,
    "tool_calls": _judge_calls,
    "finish": _judge_finish,
    "finish_raw": _judge_raw_finish,
    "usage": _judge_usage,
    "usage_raw": _judge_raw_usage,
    "error": _judge_error,
    "error_kind": _judge_error_kind,
    "signatures": _judge_signatures,
    "redacted_thinking": _judge_redacted,
    "server_blocks": _judge_server_blocks,
    "encrypted_reasoning_items": _judge_encrypted,
    "stop_sequence": _judge_stop_sequence,
    "response_id": _judge_response_id,
    "events": _judge_events,
}


def texts(answer: Assembled, kind: type[TextBlock | ReasoningBlock | RefusalBlock]) -> str:
    """The text of the blocks of one kind."""
    return "".join(block.text for block in answer.message.content if isinstance(block, kind))


def told(call: ToolCallBlock) -> dict[str, object]:
    """A call as the recordings tell it."""
    found: dict[str, object] = {"id": call.wire_id, "name": call.name}
    try:
        return found | {"arguments": msgspec.json.decode(call.arguments or "{}")}
    except msgspec.DecodeError:
        return found | {"arguments_invalid": call.arguments}


def replayed(replay: Replay) -> Recording:
    """What a provider wants back with a block."""
    return msgspec.json.decode(replay.data, type=dict)


def opaque(answer: Assembled) -> list[Recording]:
    """The blocks that only their provider understands."""
    return [
        replayed(block.replay) for block in answer.message.content if isinstance(block, OpaqueBlock)
    ]


def signatures(answer: Assembled) -> list[str]:
    """The signatures of reasoning, in order."""
    return [item["signature"] for item in reasoning_items(answer) if "signature" in item]


def reasoning_items(answer: Assembled) -> list[Recording]:
    """What a provider wants back of its reasoning."""
    return [
        replayed(block.replay)
        for block in answer.message.content
        if isinstance(block, ReasoningBlock) and block.replay is not None
    ]


def hashed(text: str) -> dict[str, object]:
    """A text as the recordings tell it where it is long."""
    return {"sha256": hashlib.sha256(text.encode()).hexdigest(), "length": len(text)}


def assert_usage(usage: Usage | None, told: Recording | None, raw: Recording) -> None:
    """Assert the usage; the recordings say 0 for what a provider didn't tell."""
    if told is None:
        assert usage is None
        return
    assert usage is not None
    output = told["output_tokens"]
    beside = output + told["reasoning_tokens"]
    if told["reasoning_tokens"] and raw.get("total_tokens") == told["input_tokens"] + beside:
        output = beside  # a provider that counts reasoning beside the output, as ours doesn't
    assert usage.input_tokens == told["input_tokens"]
    assert usage.output_tokens == output
    assert (usage.cached_input_tokens or 0) == told["cached_input_tokens"]
    assert (usage.reasoning_tokens or 0) == told["reasoning_tokens"]
