"""Events as strict JSON: what is written is what is read, and what JSON would change is refused."""

import json
import math
from decimal import Decimal
from typing import Any

import attrs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from trioloop.chunks import EMPTY_STREAM, Finish, TimedStream, Usage
from trioloop.codec import (
    canonical,
    chain_crc,
    decode_event,
    encode_event,
    seal,
    strict_copy,
)
from trioloop.errors import EventEncodingError, InvalidInputError, UnsupportedSessionError
from trioloop.events import (
    AssistantAttemptLogged,
    AssistantMessageLogged,
    CallConfig,
    Event,
    EventData,
    Failure,
    RequestHeaderLogged,
    SessionOpened,
    ToolDeclaration,
    ToolResultLogged,
    TurnEnded,
    TurnStarted,
    UnknownEvent,
    event,
    event_classes,
)
from trioloop.ids import CallId
from trioloop.messages import AssistantMessage, Replay, TextBlock


@event("test/codec-note", ignorable=True)
class Note(EventData):
    """An application's own event, with a list and any JSON."""

    words: list[str]
    more: dict[str, Any] = attrs.field(factory=dict)  # whatever a test puts there


def result(meta: Any) -> Event:  # whatever a test puts there
    return Event(3, 5, ToolResultLogged(CallId("c"), (TextBlock("x"),), meta=meta))


# Round trips

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
number = st.floats(allow_nan=False, allow_infinity=False)
raw = st.builds(
    lambda value: Raw(msgspec.json.encode(value)),
    st.dictionaries(text, st.integers(-(2**53), 2**53) | text, max_size=3),
)
json_value = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | number | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
st.register_type_strategy(Raw, raw)
st.register_type_strategy(str, text)
st.register_type_strategy(float, number)
st.register_type_strategy(Usage, st.builds(Usage, st.none() | st.integers(0, 2**40)))
st.register_type_strategy(TimedStream, st.just(EMPTY_STREAM))
st.register_type_strategy(
    CallConfig,
    st.builds(CallConfig, extra=st.dictionaries(text, json_value, max_size=3)),
)
st.register_type_strategy(int, st.integers(-(2**63), 2**63 - 1))
SPECIAL: dict[type, dict[str, Any]] = {  # strategies
    SessionOpened: {"format": st.just(1)},
    ToolResultLogged: {"meta": st.none() | st.dictionaries(text, json_value, max_size=3)},
    Note: {"more": st.dictionaries(text, json_value, max_size=3)},
}
facts = st.sampled_from(sorted(event_classes().items())).flatmap(
    lambda item: st.builds(item[1], **SPECIAL.get(item[1], {}))
)


@given(facts, st.integers(0, 2**31), st.integers(0, 2**53))
@settings(max_examples=150, deadline=None)
def test_every_class_of_events_is_read_back_as_it_was_written(
    data: EventData, seq: int, time: int
) -> None:
    written, payload = seal(Event(seq, time, data))
    assert written == Event(seq, time, data)
    found = decode_event(payload)
    assert found == written
    assert type(found.data) is type(data)
    assert encode_event(found) == payload
    row = json.loads(payload)
    assert next(iter(row)) == "type"
    assert (row["type"], row["seq"], row["time"]) == (written.type, seq, time)
    assert b"\n" not in payload


@given(json_value)
def test_any_strict_json_is_kept_in_the_order_it_was_given(value: Any) -> None:
    payload = encode_event(result({"value": value}))
    found = decode_event(payload).data
    assert isinstance(found, ToolResultLogged)
    assert json.dumps(found.meta) == json.dumps({"value": value})


def test_spaces_and_order_of_a_row_do_not_matter() -> None:
    written = result({"a": [1, 2.5]})
    row = json.loads(encode_event(written))
    spread = json.dumps(dict(sorted(row.items())), indent=2).encode()
    assert decode_event(spread) == written


# Strictness


class Odd:
    """Something that JSON has no form for."""


CYCLE: dict[str, Any] = {}  # any JSON
CYCLE["again"] = CYCLE
DEEP: Any = 1  # any JSON
for _ in range(300):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("value", "path", "why"),
    [
        (math.nan, "$.meta.key[1]", "nan"),
        (math.inf, "$.meta.key[1]", "inf"),
        (-math.inf, "$.meta.key[1]", "-inf"),
        ("\ud800", "$.meta.key[1]", "surrogate"),
        ({"\udfff": 1}, "$.meta.key[1]", "key"),
        ({1: "x"}, "$.meta.key[1]", "the key 1"),
        ({None: "x"}, "$.meta.key[1]", "the key None"),
        ({(1, 2): "x"}, "$.meta.key[1]", "the key (1, 2)"),
        ({1, 2}, "$.meta.key[1]", "set"),
        (frozenset(), "$.meta.key[1]", "frozenset"),
        (b"x", "$.meta.key[1]", "bytes"),
        (bytearray(b"x"), "$.meta.key[1]", "bytearray"),
        (Decimal("1.5"), "$.meta.key[1]", "Decimal"),
        (1 + 2j, "$.meta.key[1]", "complex"),
        (Odd(), "$.meta.key[1]", "Odd"),
        (TextBlock("x"), "$.meta.key[1]", "TextBlock"),
        (range(3), "$.meta.key[1]", "range"),
        ([{"deep": math.nan}], "$.meta.key[1][0].deep", "nan"),
        (CYCLE, "$.meta.key[1].again.again", "holds itself"),
        (DEEP, "$.meta.key[1][0][0]", "levels deep"),
    ],
)
def test_a_value_that_json_would_change_is_refused_with_its_path(
    value: Any,
    path: str,
    why: str,  # anything but JSON
) -> None:
    with pytest.raises(EventEncodingError) as caught:
        encode_event(result({"key": ["fine", value]}))
    assert caught.value.event_type == "tool/result"
    assert caught.value.path.startswith(path)
    assert why in str(caught.value)


@given(
    st.recursive(st.just(math.nan) | json_value, lambda x: st.lists(x, min_size=1), max_leaves=5)
)
@settings(deadline=None)
def test_a_value_is_refused_or_read_back_equal(value: Any) -> None:
    made = result({"value": value})
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        with pytest.raises(EventEncodingError):
            seal(made)
    else:
        written, payload = seal(made)
        assert decode_event(payload) == written == made


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (TurnStarted("1"), "$.turn"),  # type: ignore[arg-type]
        (TurnStarted(1.5), "$.turn"),  # type: ignore[arg-type]
        (TurnStarted(True), "$.turn"),
        (TurnEnded(1, "finished"), "$.reason"),  # type: ignore[arg-type]
        (TurnEnded(1, "error", message="\ud800"), "$.message"),
        (
            AssistantAttemptLogged(
                EMPTY_STREAM, Failure(code="X", message="m", retry_after_s=math.nan)
            ),
            "$.failure.retry_after_s",
        ),
        (ToolResultLogged(CallId("c"), (TextBlock(1),)), "$.content[0].text"),  # type: ignore[arg-type]
    ],
)
def test_a_value_of_another_type_than_declared_is_refused(data: EventData, path: str) -> None:
    with pytest.raises(EventEncodingError) as caught:
        encode_event(Event(0, 0, data))
    assert path in caught.value.path.replace("[...]", "[0]")


def test_a_tuple_may_stand_for_a_list_and_is_kept_as_one() -> None:
    written, payload = seal(result({"pair": (1, (2, 3))}))
    assert written == result({"pair": [1, [2, 3]]})
    assert decode_event(payload) == written


def test_raw_json_over_several_lines_is_kept_on_one() -> None:
    spread = Replay("p", Raw(b'{\n "a": [1,\n 2]}'))
    message = AssistantMessage((TextBlock("x", spread),), "p", "m")
    data = AssistantMessageLogged(message, Finish("stop"), None, EMPTY_STREAM)
    written, payload = seal(Event(0, 0, data))
    assert b"\n" not in payload
    assert decode_event(payload) == written
    assert encode_event(written) == payload


def test_raw_json_that_is_none_is_refused() -> None:
    config = CallConfig(provider="p", model="m")
    for broken in (b"", b"{", b"NaN", b"1 2"):
        tools = (ToolDeclaration("t", "d", Raw(broken)),)
        with pytest.raises(EventEncodingError):
            encode_event(Event(0, 0, RequestHeaderLogged(config, tools, "initial")))


def test_a_class_that_declares_what_json_lacks_is_refused() -> None:
    @event("test/codec-set")
    class WithSet(EventData):
        words: frozenset[str]

    with pytest.raises(EventEncodingError, match=r"set is declared.*\$\.words"):
        encode_event(Event(0, 0, WithSet(frozenset())))


def test_a_class_that_is_not_declared_is_refused() -> None:
    class Undeclared(EventData):
        pass

    with pytest.raises(InvalidInputError, match="Undeclared"):
        encode_event(Event(0, 0, Undeclared()))


# Copies


def test_what_a_caller_changes_later_does_not_reach_the_log() -> None:
    inner = [1]
    meta = {"inner": inner}
    written, payload = seal(result(meta))
    copied = strict_copy(result(meta).data)
    inner.append(2)
    meta["more"] = [3]
    assert written == Event(3, 5, copied) == decode_event(payload) == result({"inner": [1]})
    words = ["a"]
    note = seal(Event(0, 0, Note(words)))[0]
    words.append("b")
    assert note.data == Note(["a"])


def test_a_fact_that_cannot_change_is_not_copied() -> None:
    data = TurnStarted(1)
    assert strict_copy(data) is data
    assert seal(Event(0, 0, data))[0].data is data


# Types that nobody declares


def test_an_unknown_ignorable_event_keeps_its_name_and_its_bytes() -> None:
    payload = b'{"type":"other/note","seq":4,"time":9,"ignorable":true,"data":{"x": [1,  2]}}'
    found = decode_event(payload)
    assert found.type == "other/note"
    assert found.ignorable
    assert isinstance(found.data, UnknownEvent)
    assert bytes(found.data.raw) == b'{"x": [1,  2]}'
    assert encode_event(found) == payload
    assert strict_copy(found.data) is found.data
    assert decode_event(encode_event(Event(4, 9, found.data))) == found


def test_a_declared_ignorable_event_is_marked() -> None:
    payload = encode_event(Event(1, 2, Note(["a"])))
    assert b'"ignorable":true,"data"' in payload
    assert decode_event(payload) == Event(1, 2, Note(["a"]))


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (b'{"type":"other/thing","seq":4,"time":9,"data":{}}', "'other/thing'"),
        (b'{"type":"turn/start","seq":4,"time":9,"data":{"turn":"x"}}', "turn/start"),
        (b'{"type":"turn/start","seq":4,"time":9}', "turn/start"),
        (
            b'{"type":"session/opened","seq":0,"time":9,"data":{"format":2,"session":"s",'
            b'"created":0}}',
            "format 2",
        ),
        (b'{"type":"turn/start","seq":4', "turn/start"),
        (b'{"type":', "can't be read"),
        (b"[1]", "can't be read"),
        (b"", "can't be read"),
        (b"\xff\xfe", "can't be read"),
        (b'{"type":"turn\xff/start","seq":4,"time":9,"data":{}}', "can't be read"),
    ],
)
def test_what_cannot_be_read_here_is_named(payload: bytes, why: str) -> None:
    with pytest.raises(UnsupportedSessionError, match=why):
        decode_event(payload)


@given(
    st.binary(max_size=80) | st.text(max_size=80).map(lambda text: text.encode("utf-8", "replace"))
)
def test_no_bytes_raise_anything_else(payload: bytes) -> None:
    for start in (b"", b'{"type":"turn/start",', b'{"type":"x","ignorable":true,'):
        with pytest.raises(UnsupportedSessionError):
            decode_event(start + payload + b"!")


# Canonical bytes and the chain


def test_canonical_bytes_are_equal_for_equal_values() -> None:
    assert canonical({"b": 1, "a": {"d": 2, "c": 3}}) == canonical({"a": {"c": 3, "d": 2}, "b": 1})
    assert canonical([1, "é"]) == '[1,"é"]'.encode()
    assert canonical(CallConfig(provider="p", model="m")).startswith(b'{"provider":"p"')
    assert canonical(range(3)) == b"[0,1,2]"


def test_each_row_of_a_chain_depends_on_all_before_it() -> None:
    chained = chain_crc(chain_crc(0, b"one"), b"two")
    assert chained == chain_crc(0, b"onetwo")
    assert chained != chain_crc(chain_crc(0, b"One"), b"two")


@event("test/codec-measure", ignorable=True)
class Measure(EventData):
    """An application's own event, with numbers that may be whole."""

    seconds: float
    of: tuple[float, ...] = ()


@given(st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False))
def test_a_whole_number_for_a_float_is_written_as_it_will_be_read(number: float) -> None:
    event = Event(3, 5, Measure(number, (number,)))
    written = encode_event(event)
    assert encode_event(decode_event(written)) == written
    assert decode_event(written) == event
