"""request-encode: the body of the request after so many turns, of which only the last are new.

The baseline joins as many bytes as the body has. What is above it should not grow with the turns.
"""

from collections.abc import AsyncGenerator, Callable

import msgspec

from bench.report import Figure, compared
from bench.timing import Effort, alternate, timed
from trioloop.events import CallConfig, ToolDeclaration
from trioloop.ids import call_id, session_id
from trioloop.log.history import History
from trioloop.log.rebuild import Request
from trioloop.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    user_message,
)
from trioloop.models.anthropic_request import AnthropicEncoder
from trioloop.models.chat_request import ChatEncoder
from trioloop.models.request_body import RequestBody
from trioloop.models.responses_request import ResponsesEncoder
from trioloop.models.sent_calls import ANY_IDS
from trioloop.models.services import Dialect

NAME = "request-encode"
TURNS = (20, 200, 2000)
REPEAT = 20
WORDS = "The temperature of a city in the south of France, asked for in passing. " * 4

Encode = Callable[[Request], RequestBody]


def encoders() -> dict[str, Encode]:
    """One for each API."""
    return {
        "chat": ChatEncoder("p", Dialect(), images=False).body,
        "responses": ResponsesEncoder(
            "p/responses",
            images=False,
            call_ids=ANY_IDS,
            prompt_cache_key=False,
            encrypted_reasoning=False,
        ).body,
        "messages": AnthropicEncoder(
            "p/messages", images=False, system_in_history=False, cache_ttl=""
        ).body,
    }


async def run(effort: Effort) -> AsyncGenerator[Figure, None]:
    """All cases."""
    for api, encode in encoders().items():
        for turns in effort.sizes(TURNS):
            conversation = _Conversation(encode, turns)
            timings = await alternate(
                timed(conversation.go_on, REPEAT), timed(conversation.join, REPEAT), effort.runs
            )
            yield compared(
                NAME,
                f"{api}-n{turns}",
                timings,
                unit="us",
                versus="joining",
                above_us=round(timings.above_us, 1),
                kib=len(conversation.body) // 1024,
            )


class _Conversation:
    """A conversation whose next request is asked for again and again, a turn longer each time."""

    def __init__(self, encode: Encode, turns: int) -> None:
        self._encode = encode
        self._turns = turns
        self._history = History.of([message for turn in range(turns) for message in _turn(turn)])
        self.body = bytes(encode(_request(self._history)))

    async def go_on(self) -> None:
        """Encode the request after one more turn."""
        messages = self._history.source.messages
        messages.extend(_turn(self._turns))
        self._turns += 1
        self._encode(_request(History(self._history.source, len(messages))))

    async def join(self) -> None:
        """Join as many bytes."""
        b"".join((self.body[:100], memoryview(self.body)[100:]))


def _turn(turn: int) -> list[Message]:
    call = ToolCallBlock(call_id(turn + 1, 1, 0), f"call_{turn}", "temperature", '{"city":"Nice"}')
    return [
        user_message(f"{turn}: {WORDS}", id=f"m{turn}"),
        AssistantMessage((TextBlock("I look."), call), "p", "m"),
        ToolResultMessage(call.call, call.wire_id, (TextBlock("22"),)),
        AssistantMessage((TextBlock(f"{turn}: it is 22. {WORDS}"),), "p", "m"),
    ]


TOOLS = (
    ToolDeclaration(
        "temperature",
        "Temperature of a city.",
        msgspec.Raw(b'{"type":"object","properties":{"city":{"type":"string"}}}'),
    ),
)


def _request(history: History) -> Request:
    return Request(
        config=CallConfig(provider="p", model="m", max_tokens=1_000),
        tools=TOOLS,
        system=(SystemMessage("a", "Be brief."),),
        history=history,
        session=session_id("bench"),
    )
