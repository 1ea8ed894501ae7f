"""Compares what was read of a recording with what its `expected` says."""

import msgspec

from tests.models.recordings import Recording
from trioloop.chunks import Finish, Usage
from trioloop.errors import ModelFailure
from trioloop.messages import ReasoningBlock, RefusalBlock, TextBlock, ToolCallBlock
from trioloop.models.kinds import FAILURE_CODES
from trioloop.stream.assemble import Assembled


def assert_as_expected(
    recording: Recording, assembled: Assembled, failure: ModelFailure | None
) -> None:
    """Assert that an answer, or its part before a failure, is what the recording expects."""
    expected = recording["expected"]
    assert texts(assembled, TextBlock) == expected["text"]
    assert texts(assembled, ReasoningBlock) == expected["reasoning"]
    assert texts(assembled, RefusalBlock) == expected.get("refusal", "")
    assert [told(call) for call in assembled.message.calls] == expected["tool_calls"]
    assert_usage(assembled.usage, expected)
    if expected["finish"] == "error":
        assert failure is not None
        assert assembled.finish is None
        # Both recordings that end so are of a call that the server couldn't read.
        assert failure.code == FAILURE_CODES["bad_tool_call"]
        return
    assert failure is None
    inferred = expected.get("finish_inferred", False)
    raw = expected["finish_raw"] or ""
    assert assembled.finish == Finish(expected["finish"], raw, inferred)


def texts(assembled: Assembled, kind: type[TextBlock | ReasoningBlock | RefusalBlock]) -> str:
    """The text of the blocks of one kind."""
    return "".join(block.text for block in assembled.message.content if isinstance(block, kind))


def told(call: ToolCallBlock) -> dict[str, object]:
    """A call as the recordings tell it."""
    found: dict[str, object] = {"id": call.wire_id, "name": call.name}
    try:
        return found | {"arguments": msgspec.json.decode(call.arguments or "{}")}
    except msgspec.DecodeError:
        return found | {"arguments_invalid": call.arguments}


def assert_usage(usage: Usage | None, expected: Recording) -> None:
    """Assert the usage; the recordings say 0 for what a provider didn't tell."""
    told, raw = expected["usage"], expected.get("usage_raw") or {}
    if told is None:
        assert usage is None
        return
    assert usage is not None
    output = told["output_tokens"]
    beside = output + told["reasoning_tokens"]
    if told["reasoning_tokens"] and raw["total_tokens"] == told["input_tokens"] + beside:
        output = beside  # a provider that counts reasoning beside the output, as ours doesn't
    assert usage.input_tokens == told["input_tokens"]
    assert usage.output_tokens == output
    assert (usage.cached_input_tokens or 0) == told["cached_input_tokens"]
    assert (usage.reasoning_tokens or 0) == told["reasoning_tokens"]
