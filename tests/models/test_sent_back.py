"""What a recorded answer wants back goes back unchanged, in place, and to nobody else."""

import json
from typing import Any

import pytest

from tests.models.asking import make_request
from tests.models.judging import hashed
from tests.models.reading import assembled, read
from tests.models.recordings import Recording, streams
from trioloop.events import CallConfig
from trioloop.messages import AssistantMessage, TextBlock, ToolResultMessage
from trioloop.models.anthropic_request import AnthropicEncoder
from trioloop.models.responses_request import ResponsesEncoder
from trioloop.models.sent_calls import MIDDLE_IDS

MESSAGES = {name: one for name, one in streams("anthropic_messages").items()
            if "events" in one["expected"]}  # fmt: skip
RESPONSES = {name: one for name, one in streams("openai_responses").items()
             if one["expected"].get("finish", "error") != "error"}  # fmt: skip


def sent(recording: Recording, replay_key: str = "p") -> list[dict[str, Any]]:
    """The answer of a recording, and the results of its calls, in the next request."""
    answer = assembled(read(recording, [recording["sse_text"].encode()])[0]).message
    results = [ToolResultMessage(one.call, one.wire_id, (TextBlock("1"),)) for one in answer.calls]
    request = make_request(
        AssistantMessage(answer.content, "p", "m"), *results,
        config=CallConfig(provider="p", model="m", max_tokens=9),
    )  # fmt: skip
    encoder: AnthropicEncoder | ResponsesEncoder
    if recording["api"] == "anthropic_messages":
        encoder = AnthropicEncoder(replay_key, images=True, system_in_history=False, cache_ttl="")
    else:
        encoder = ResponsesEncoder(
            replay_key, images=True, call_ids=MIDDLE_IDS, prompt_cache_key=False,
            encrypted_reasoning=True,
        )  # fmt: skip
    body = json.loads(bytes(encoder.body(request)))
    found: list[dict[str, Any]] = body["messages" if "messages" in body else "input"]
    return found


@pytest.mark.parametrize("recording", MESSAGES.values(), ids=MESSAGES.keys())
def test_blocks_of_messages_go_back_unchanged_and_in_order(recording: Recording) -> None:
    expected = recording["expected"]
    turns = sent(recording)
    blocks = turns[0]["content"] if turns else []
    signed = [hashed(one["signature"]) for one in blocks if one["type"] == "thinking"]
    redacted = [hashed(one["data"]) for one in blocks if one["type"] == "redacted_thinking"]
    known = {"text", "thinking", "redacted_thinking", "tool_use"}
    assert signed == expected.get("signatures", [])
    assert redacted == expected.get("redacted_thinking", [])
    assert [one["type"] for one in blocks if one["type"] not in known] == expected.get(
        "server_blocks", []
    )
    kinds = [one["type"] for one in blocks]
    if "tool_use" in kinds and signed:
        assert kinds.index("thinking") < kinds.index("tool_use")
    foreign = sent(recording, "other")
    assert not any(one["type"] not in {"text", "tool_use"} for turn in foreign[:1]
                   for one in turn["content"])  # fmt: skip


@pytest.mark.parametrize("recording", RESPONSES.values(), ids=RESPONSES.keys())
def test_items_of_responses_go_back_in_place(recording: Recording) -> None:
    items = sent(recording)
    reasoning = [one for one in items if one.get("type") == "reasoning"]
    encrypted = [one for one in reasoning if one.get("encrypted_content")]
    assert len(encrypted) == recording["expected"].get("encrypted_reasoning_items", 0)
    done = [
        json.loads(line.removeprefix("data:"))["item"]
        for line in recording["sse_text"].splitlines()
        if line.startswith("data:") and '"response.output_item.done"' in line
    ]
    for item in encrypted:
        assert item in done
        follows = items[items.index(item) + 1]
        assert follows.get("type") == "function_call" or follows["role"] == "assistant"
    phases = [one["phase"] for one in done if one.get("phase")]
    assert [one["phase"] for one in items if one.get("phase")] == phases
    assert not any(one.get("type") == "reasoning" for one in sent(recording, "other"))


def test_reasoning_that_led_to_nothing_stays_here() -> None:
    name = "responses-bedrock-reused-call-id"
    answer = assembled(read(RESPONSES[name], [RESPONSES[name]["sse_text"].encode()])[0]).message
    alone = AssistantMessage((answer.content[0], TextBlock("")), "p", "m")
    encoder = ResponsesEncoder(
        "p", images=True, call_ids=MIDDLE_IDS, prompt_cache_key=False, encrypted_reasoning=True
    )
    assert json.loads(bytes(encoder.body(make_request(alone))))["input"] == []
