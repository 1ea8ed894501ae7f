"""The body of a long conversation: what earlier requests had is in the next one without a copy."""

import json
from typing import Any

import pytest

from bench.request_encode import encoders
from trioloop.events import CallConfig
from trioloop.ids import session_id
from trioloop.log.history import History
from trioloop.log.rebuild import Request
from trioloop.messages import AssistantMessage, Message, TextBlock, user_message
from trioloop.models.request_body import RequestBody

TURNS = 1_500
MEMBERS = {"chat": "messages", "responses": "input", "messages": "messages"}


def turn(number: int) -> list[Message]:
    """A question and its answer, of some 200 bytes."""
    asked = user_message(f"{number}: {'word ' * 20}", id=f"m{number}")
    return [asked, AssistantMessage((TextBlock(f"{number}: heard"),), "p", "m")]


def request_of(history: History) -> Request:
    """A request that asks with a history."""
    config = CallConfig(provider="p", model="m", max_tokens=100)
    return Request(config=config, tools=(), system=(), history=history, session=session_id("s"))


def numbers(api: str, body: RequestBody) -> list[int]:
    """The number that each text of the conversation begins with, in order."""
    texts: list[str] = []

    def gather(value: Any) -> None:
        if isinstance(value, str) and ": " in value:
            texts.append(value)
        for inner in value.values() if isinstance(value, dict) else ():
            gather(inner)
        for inner in value if isinstance(value, list) else ():
            gather(inner)

    gather(json.loads(bytes(body))[MEMBERS[api]])
    return [int(text.split(":")[0]) for text in texts]


@pytest.fixture
def conversation() -> History:
    """A long one."""
    return History.of([message for number in range(TURNS) for message in turn(number)])


@pytest.mark.parametrize("api", list(MEMBERS))
def test_it_says_all_of_the_conversation_in_order(api: str, conversation: History) -> None:
    body = encoders()[api](request_of(conversation))
    assert numbers(api, body) == [number for number in range(TURNS) for _ in range(2)]
    assert len(body) == len(bytes(body))


@pytest.mark.parametrize("api", list(MEMBERS))
def test_it_is_the_same_grown_turn_by_turn_or_encoded_at_once(
    api: str, conversation: History
) -> None:
    encode = encoders()[api]
    for length in range(2, len(conversation), 200):
        encode(request_of(History(conversation.source, length)))
    grown = encode(request_of(conversation))
    assert bytes(grown) == bytes(encoders()[api](request_of(conversation)))


@pytest.mark.parametrize("api", list(MEMBERS))
def test_what_an_earlier_one_had_is_the_very_same_bytes(api: str, conversation: History) -> None:
    encode = encoders()[api]
    earlier = encode(request_of(conversation))
    kept = [piece for piece in earlier.pieces if len(piece) >= 65_536]
    conversation.source.messages.extend(turn(TURNS))
    later = encode(request_of(History(conversation.source, len(conversation) + 2)))
    ids = {id(piece) for piece in later.pieces}
    assert kept
    assert all(id(piece) in ids for piece in kept)
    assert sum(len(piece) for piece in later.pieces if id(piece) not in set(map(id, kept))) < 70_000
    assert numbers(api, later)[-2:] == [TURNS, TURNS]


@pytest.mark.parametrize("api", list(MEMBERS))
def test_an_earlier_view_has_its_own_messages_alone(api: str, conversation: History) -> None:
    encode = encoders()[api]
    encode(request_of(conversation))
    earlier = encode(request_of(History(conversation.source, 1_000)))
    assert numbers(api, earlier) == [number for number in range(500) for _ in range(2)]
