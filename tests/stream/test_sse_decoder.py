"""Server-sent events come out the same however their bytes are cut, in bounded memory."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trioloop.errors import ModelFailure
from trioloop.stream.sse import ServerEvent, SseDecoder


def decoded(*pieces: bytes, event_bytes_max: int = 1_000_000) -> list[ServerEvent]:
    decoder = SseDecoder(event_bytes_max=event_bytes_max)
    events = [event for piece in pieces for event in decoder.feed(piece)]
    last = decoder.close()
    return [*events, last] if last is not None else events


def by_the_book(stream: bytes) -> list[ServerEvent]:
    """The rules of WHATWG in the order in which the standard tells them, one line at a time."""
    events = []
    name, data = b"", list[bytes]()
    lines = re.split(rb"\r\n|\r|\n", stream.removeprefix(b"\xef\xbb\xbf"))
    for line in [*lines, b""]:
        if not line:
            if data:
                said = name.decode("utf-8", "replace") or "message"
                events.append(ServerEvent(said, b"\n".join(data)))
            name, data = b"", []
            continue
        field, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
    return events


_wire = st.lists(
    st.sampled_from(
        [
            b"data", b"event", b"id", b":", b" ", b"\n", b"\r", b"\r\n", b"\n\n", b"data: ",
            b"\xef\xbb\xbf", "é".encode(), "\u2028".encode(), b"\x85", b"{}", b"\x00", b"\xff",
        ]
    )
    | st.binary(max_size=4),
    max_size=30,
).map(b"".join)  # fmt: skip


@given(_wire, st.data())
@example(b"\xef\xbb\xbfdata: 1\r\n\r\ndata: 2\r\r", None)
def test_any_bytes_cut_anywhere_decode_by_the_book(stream: bytes, data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8)) if data else [1, 9, 10, 11]
    ends = [*sorted(cuts), len(stream)]
    pieces = [stream[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    assert decoded(*pieces) == by_the_book(stream)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_line_endings_and_piece_sizes_make_no_difference(newline: bytes, size: int) -> None:
    stream = "\ufeffevent: grüße\ndata: {\ndata:  1\n: note\nid: 7\n\n\ndata\n\n".encode()
    stream = stream.replace(b"\n", newline)
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    assert decoded(*pieces) == [ServerEvent("grüße", b"{\n 1"), ServerEvent("message", b"")]


def test_other_separators_of_unicode_are_no_line_ends() -> None:
    text = "data: a\u2028b\x85c\x0bd\n\n".encode()
    assert decoded(text) == [ServerEvent("message", "a\u2028b\x85c\x0bd".encode())]


def test_an_event_without_data_is_none_and_forgets_its_name() -> None:
    assert decoded(b"event: a\n\ndata: 1\n\n") == [ServerEvent("message", b"1")]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r"])
def test_data_that_no_blank_line_ended_is_given_at_the_close(end: bytes) -> None:
    decoder = SseDecoder(event_bytes_max=100)
    assert list(decoder.feed(b"data: [DONE]" + end)) == []
    assert decoder.close() == ServerEvent("message", b"[DONE]")


def test_comments_for_ever_cost_no_memory() -> None:
    decoder = SseDecoder(event_bytes_max=64)
    for _ in range(10_000):
        assert list(decoder.feed(b": OPENROUTER PROCESSING\n\n")) == []
    assert list(decoder.feed(b"data: 1\n\n")) == [ServerEvent("message", b"1")]


@pytest.mark.parametrize(
    "stream",
    [
        b"x" * 65,
        b": " + b"x" * 65,
        b"data: " + b"x" * 65 + b"\n\n",
        b"data: x\n" * 10 + b"\n",
        b"event: " + b"x" * 65 + b"\n",
    ],
)
@pytest.mark.parametrize("size", [1, 1_000])
def test_an_event_beyond_its_limit_is_refused_however_it_is_cut(stream: bytes, size: int) -> None:
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    with pytest.raises(ModelFailure, match="larger than 64 bytes") as caught:
        decoded(*pieces, event_bytes_max=64)
    assert caught.value.code == "MALFORMED_RESPONSE"


@given(st.lists(_wire, max_size=20))
def test_a_decoder_never_holds_more_than_its_limit(pieces: list[bytes]) -> None:
    decoder = SseDecoder(event_bytes_max=16)
    for piece in pieces:
        try:
            list(decoder.feed(piece))
        except ModelFailure:
            return
        assert decoder.held_bytes <= 2 * 16
