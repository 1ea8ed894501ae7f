"""A long mixed transcript, as several providers and people wrote it."""

import msgspec
from msgspec import Raw

from tests.models.asking import TEMPERATURE, make_request
from trioloop.events import CallConfig
from trioloop.ids import CallId
from trioloop.log.rebuild import Request
from trioloop.messages import (
    AssistantMessage,
    Block,
    ImageBlock,
    Message,
    OpaqueBlock,
    ReasoningBlock,
    RefusalBlock,
    Replay,
    SystemMessage,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
    user_message,
)

PIXEL = ImageBlock("image/png", "iVBORw0KGgo=")
IDS = [
    "toolu_01LtHJmixrs9NcWQkK8hu8hj",
    "call_sKC7OABqf2A2PTLCm0CLeRWV",
    "gSIMJiOkT",
    "functions.temperature:0",
    "call__0_temperature_cmpl-cbfb6f30-b508-40ff-8d45-94af293fa473",
    "resp_yqqp3b5eoaaatwfitarja6yi42umok5glfymrqxbh4wwznmisz2q:call_0",
    "0",
]


def replay(provider: str, value: object) -> Replay:
    """What a provider wants back with a block."""
    return Replay(provider, Raw(msgspec.json.encode(value)))


def call(number: int, arguments: str = '{"city":"Paris"}') -> ToolCallBlock:
    """The call of that number; each has the id of another provider."""
    return ToolCallBlock(CallId(f"call_1_1_{number}"), IDS[number], "temperature", arguments)


def result(of: ToolCallBlock, *content: Block, is_error: bool = False) -> ToolResultMessage:
    """The result of a call."""
    return ToolResultMessage(of.call, of.wire_id, content or (TextBlock("20"),), is_error)


CALLS = [call(0), call(1), call(2, '{"city": "Par'), call(3, ""), call(4), call(5), call(6)]
SIGNED = ReasoningBlock("Think.", replay("anthropic/messages", {"signature": "c2ln"}))
REDACTED = OpaqueBlock(replay("anthropic/messages", {"type": "redacted_thinking", "data": "cmVk"}))
REASONED = ReasoningBlock(
    "",
    replay(
        "openai/responses",
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5j"},
    ),
)
SAID = TextBlock("I look.", replay("openai/responses", {"id": "msg_1", "phase": "commentary"}))

MIXED: list[Message] = [
    UserMessage((TextBlock("Look at this."), PIXEL)),
    AssistantMessage((SIGNED, REDACTED, TextBlock("Both."), CALLS[0], CALLS[1]), "anthropic", "c"),
    result(CALLS[0]),
    result(CALLS[1], TextBlock("A picture:"), PIXEL),
    user_message("And now?"),
    AssistantMessage((REASONED, SAID, CALLS[2], CALLS[3]), "openai", "g"),
    result(CALLS[2], TextBlock("Arguments are broken."), is_error=True),
    result(CALLS[3], TextBlock("")),
    SystemMessage("mode", "From now on, be brief."),
    AssistantMessage((ReasoningBlock("Only a thought."),), "deepseek", "d"),
    AssistantMessage((ReasoningBlock("Hm."), CALLS[4], CALLS[5]), "deepseek", "d"),
    result(CALLS[4]),
    result(CALLS[5]),
    AssistantMessage((RefusalBlock("No."),), "openai", "g"),
    user_message("Why not?"),
    AssistantMessage((TextBlock(" \n"), CALLS[6]), "mistral", "m"),
    result(CALLS[6]),
]


def mixed_request(config: CallConfig) -> Request:
    """The whole transcript, with a system prompt and a tool."""
    return make_request(
        *MIXED,
        system=[SystemMessage("a", "Be terse."), SystemMessage("b", "Be kind.")],
        tools=[TEMPERATURE],
        config=config,
    )
