"""An event is encoded once for all who read it, and what is kept stays bounded."""

import msgspec
import pytest

from trioloop.codec import encode_event
from trioloop.control import encoded as module
from trioloop.control.encoded import EncodedEvents
from trioloop.events import Event, TurnStarted
from trioloop.ids import SessionId

NAME = SessionId("a")


def event(seq: int, turn: int = 1) -> Event:
    return Event(seq, 1_000, TurnStarted(turn))


@pytest.fixture
def encodings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seqs of the events that are encoded."""
    made = list[int]()

    def counted(one: Event) -> bytes:
        made.append(one.seq)
        return encode_event(one)

    monkeypatch.setattr(module, "encode_event", counted)
    return made


def test_fifty_readers_cost_one_encoding(encodings: list[int]) -> None:
    kept, log = EncodedEvents(10_000), [event(seq) for seq in range(20)]
    for one in log:
        for _ in range(50):
            assert bytes(kept.of(NAME, one).whole) == encode_event(one)
    assert encodings == list(range(20))


def test_another_session_of_the_same_name_has_other_events(encodings: list[int]) -> None:
    kept = EncodedEvents(10_000)
    assert kept.of(NAME, event(3)).whole != kept.of(NAME, event(3, turn=2)).whole
    assert encodings == [3, 3]


def test_what_is_kept_is_bounded_and_the_oldest_goes_first(encodings: list[int]) -> None:
    kept, log = EncodedEvents(10_000, kept_bytes_max=6_000), [event(seq) for seq in range(40)]
    for one in log:
        kept.of(NAME, one)
    kept.of(NAME, log[39])
    kept.of(NAME, log[0])
    assert encodings == [*range(40), 0]


def test_a_large_event_is_told_by_its_size_and_never_kept_whole() -> None:
    one = event(7)
    told = EncodedEvents(frame_bytes_max=20).of(NAME, one)
    assert told.large is not None
    assert (told.large.seq, told.large.type) == (7, one.type)
    assert told.large.characters == len(encode_event(one))
    assert msgspec.json.decode(told.whole) is None
