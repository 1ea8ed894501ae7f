"""The body of a Chat Completions request says what the `Request` says, and is joined."""

import json
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from tests.models.asking import TEMPERATURE, make_request
from trioloop.errors import ModelFailure
from trioloop.events import CallConfig
from trioloop.ids import CallId, session_id
from trioloop.log.history import History
from trioloop.log.rebuild import Request
from trioloop.messages import (
    AssistantMessage,
    ImageBlock,
    Message,
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
from trioloop.models import Dialect
from trioloop.models.chat_request import ChatEncoder

CALL = ToolCallBlock(CallId("call_1_1_0"), "w0", "temperature", '{"city":"Paris"}')
CONFIG = CallConfig(provider="p", model="m")


def encoder(dialect: Dialect | None = None, *, images: bool = False) -> ChatEncoder:
    return ChatEncoder("p", dialect or Dialect(), images=images)


def body(request: Request, encoder_: ChatEncoder | None = None) -> dict[str, Any]:
    decoded = json.loads(bytes((encoder_ or encoder()).body(request)))
    assert isinstance(decoded, dict)
    return decoded


def sent(*messages: Message, encoder_: ChatEncoder | None = None) -> list[dict[str, Any]]:
    found = body(make_request(*messages), encoder_)["messages"]
    assert isinstance(found, list)
    return found


def answer(*content: Any, provider: str = "p") -> AssistantMessage:
    return AssistantMessage(content, provider, "m")


def test_a_whole_request() -> None:
    request = make_request(
        user_message("How warm is Paris?"),
        answer(TextBlock("I look."), CALL),
        ToolResultMessage(CALL.call, "w0", (TextBlock("20"),)),
        system=[SystemMessage("a", "Be terse."), SystemMessage("b", "Be kind.")],
        tools=[TEMPERATURE],
        config=CallConfig(
            provider="p",
            model="m",
            max_tokens=100,
            temperature=0.5,
            tool_choice="required",
            parallel_tool_calls=False,
            reasoning_effort="low",
            extra={"seed": 7},
        ),
    )
    assert body(request) == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 100,
        "temperature": 0.5,
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "reasoning_effort": "low",
        "seed": 7,
        "messages": [
            {"role": "system", "content": "Be terse.\n\nBe kind."},
            {"role": "user", "content": "How warm is Paris?"},
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [
                    {
                        "id": "w0",
                        "type": "function",
                        "function": {"name": "temperature", "arguments": '{"city":"Paris"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "w0", "content": "20"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "temperature",
                    "description": "Temperature of a city.",
                    "parameters": msgspec.json.decode(TEMPERATURE.parameters),
                },
            }
        ],
    }


def test_a_named_tool_choice() -> None:
    config = msgspec.structs.replace(CONFIG, tool_choice="temperature")
    found = body(make_request(tools=[TEMPERATURE], config=config))
    assert found["tool_choice"] == {"type": "function", "function": {"name": "temperature"}}


def test_without_tools_there_are_no_settings_of_tools() -> None:
    config = msgspec.structs.replace(CONFIG, tool_choice="none", parallel_tool_calls=True)
    found = body(make_request(config=config))
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & found.keys()


def test_the_dialect_of_a_server() -> None:
    dialect = Dialect(max_tokens_name="max_completion_tokens", stream_usage=False)
    config = msgspec.structs.replace(CONFIG, max_tokens=9)
    found = body(make_request(config=config), encoder(dialect))
    assert found["max_completion_tokens"] == 9
    assert not {"max_tokens", "stream_options"} & found.keys()


@pytest.mark.parametrize("name", ["model", "messages", "stream", "tools"])
def test_extra_settings_cannot_replace_what_trioloop_sets(name: str) -> None:
    config = msgspec.structs.replace(CONFIG, extra={name: "x"})
    with pytest.raises(ModelFailure, match=name) as caught:
        encoder().body(make_request(config=config))
    assert caught.value.code == "INVALID_REQUEST"


def test_an_answer_of_calls_only_has_no_text() -> None:
    assert sent(answer(CALL))[0]["content"] is None


def test_an_answer_that_says_nothing_to_this_provider_is_left_out() -> None:
    assert sent(answer(ReasoningBlock("hm"))) == []
    assert sent(answer(ReasoningBlock("hm")), user_message("a"), answer(TextBlock("b"))) == [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
    ]


def test_a_refusal_goes_back_as_text() -> None:
    assert sent(answer(RefusalBlock("No.")))[0]["content"] == "No."


@pytest.mark.parametrize(
    ("raw", "arguments"),
    [
        ("", "{}"),
        ('{ "a": 1 }', '{ "a": 1 }'),
        ('{"city": "Par', '{"invalid_arguments":"{\\"city\\": \\"Par"}'),
        ("[1]", '{"invalid_arguments":"[1]"}'),
        ("null", '{"invalid_arguments":"null"}'),
    ],
)
def test_arguments_always_go_back_as_the_json_of_an_object(raw: str, arguments: str) -> None:
    call = ToolCallBlock(CALL.call, "w0", "x", raw)
    assert sent(answer(call))[0]["tool_calls"][0]["function"]["arguments"] == arguments


def test_text_blocks_are_one_text_and_system_messages_stay_in_their_place() -> None:
    user = UserMessage((TextBlock("a"), TextBlock("b")))
    assert sent(user, SystemMessage("n", "From now on."), user) == [
        {"role": "user", "content": "a\n\nb"},
        {"role": "system", "content": "From now on."},
        {"role": "user", "content": "a\n\nb"},
    ]


def test_images_are_shown_to_models_with_eyes_and_named_to_others() -> None:
    user = UserMessage((TextBlock("look"), ImageBlock("image/png", "AAAA")))
    assert sent(user, encoder_=encoder(images=True))[0]["content"] == [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]
    told = sent(user)[0]["content"]
    assert told == "look\n\n[an image/png image, which can't be shown here]"


def test_an_image_in_a_result_is_named() -> None:
    result = ToolResultMessage(CALL.call, "w0", (ImageBlock("image/png", "AAAA"),))
    (told,) = sent(result, encoder_=encoder(images=True))
    assert told["content"] == "[an image/png image, which can't be shown here]"


REPLAY = Raw(b'{"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]}')


def test_replay_data_goes_to_its_own_provider_only() -> None:
    own = answer(ReasoningBlock("hm", Replay("p", REPLAY)), TextBlock("hi"))
    foreign = answer(ReasoningBlock("hm", Replay("q", REPLAY)), TextBlock("hi"), provider="q")
    first, second = sent(own, foreign)
    assert first["reasoning_details"] == [{"type": "reasoning.encrypted", "data": "x"}]
    assert second == {"role": "assistant", "content": "hi"}


@pytest.mark.parametrize(
    ("replayed", "content", "goes_back"),
    [
        ("never", (ReasoningBlock("hm"), CALL), False),
        ("with-calls", (ReasoningBlock("hm"), CALL), True),
        ("with-calls", (ReasoningBlock("hm"), TextBlock("hi")), False),
    ],
)
def test_reasoning_goes_back_where_its_server_wants_it(
    replayed: Any, content: tuple[Any, ...], goes_back: bool
) -> None:
    thinking = encoder(Dialect(reasoning_replay=replayed))
    (told,) = sent(answer(*content), encoder_=thinking)
    assert (told.get("reasoning_content") == "hm") is goes_back
    (foreign,) = sent(answer(*content, provider="q"), encoder_=thinking)
    assert "reasoning_content" not in foreign


class CountingList(list[Message]):
    """Counts how often its messages are read."""

    reads = 0

    def __getitem__(self, index: Any) -> Any:
        self.reads += len(range(*index.indices(len(self)))) if isinstance(index, slice) else 1
        return super().__getitem__(index)


def test_each_message_is_encoded_once_however_often_it_is_sent() -> None:
    one = encoder()
    history = History.of([user_message(str(number)) for number in range(50)])
    messages: CountingList = CountingList(history.source.whole())
    history.source.messages = messages  # type: ignore[assignment]  # it counts, and is a list
    for length in range(1, 51):
        request = Request(
            config=CONFIG,
            tools=(),
            system=(),
            history=History(history.source, length),
            session=session_id("s"),
        )
        assert len(body(request, one)["messages"]) == length
    assert messages.reads == 50


def test_an_earlier_view_of_a_history_stays_as_it_was() -> None:
    one = encoder()
    whole = History.of([user_message("a"), user_message("b")])
    request = make_request(user_message("x"))
    later = msgspec.json.decode(bytes(one.body(_with(request, whole))))
    earlier = msgspec.json.decode(bytes(one.body(_with(request, History(whole.source, 1)))))
    assert [len(found["messages"]) for found in (later, earlier)] == [2, 1]


def _with(request: Request, history: History) -> Request:
    return Request(
        config=request.config, tools=(), system=(), history=history, session=request.session
    )
