"""Every recorded Chat Completions stream reads as expected, however its bytes are cut or framed."""

import re
from collections.abc import Callable, Iterable, Iterator

import pytest

from tests.models.judging import assert_as_expected
from tests.models.recordings import Recording, chat_streams
from trioloop.chunks import Chunk, Frame
from trioloop.errors import ModelFailure
from trioloop.ids import call_id
from trioloop.models.chat_stream import ChatReader
from trioloop.stream.assemble import Assembled, assemble

STREAMS = chat_streams()
each_stream = pytest.mark.parametrize("recording", STREAMS.values(), ids=STREAMS.keys())


def test_the_recordings_are_all_here() -> None:
    assert len(STREAMS) == 26


def read(pieces: Iterable[bytes]) -> tuple[list[Chunk], ModelFailure | None]:
    reader = ChatReader(provider="p", event_bytes_max=1_000_000, arguments_chars_max=100_000)
    chunks = [chunk for piece in pieces for chunk in reader.feed(piece)]
    chunks += reader.close()
    assert reader.finished == (reader.failure is None)
    return chunks, reader.failure


def assembled(chunks: Iterable[Chunk]) -> Assembled:
    return assemble(
        [Frame(0, tuple(chunks))],
        provider="p",
        model="m",
        call_id=lambda index: call_id(1, 1, index),
        used_wire_ids=(),
    )


def by_size(size: int) -> Callable[[bytes], Iterator[bytes]]:
    return lambda stream: (stream[start : start + size] for start in range(0, len(stream), size))


def in_the_middle(stream: bytes) -> Iterator[bytes]:
    """Cut inside each character of several bytes, and between CR and LF."""
    places = [match.start() for match in re.finditer(rb"[\x80-\xbf]|(?<=\r)\n", stream)]
    for start, end in zip([0, *places], [*places, len(stream)], strict=True):
        yield stream[start:end]


CUTS = {"whole": by_size(10**9), "1": by_size(1), "7": by_size(7), "4096": by_size(4096)} | {
    "in the middle": in_the_middle
}


@each_stream
@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS.keys())
def test_the_bytes_may_be_cut_anywhere(
    recording: Recording, cut: Callable[[bytes], Iterator[bytes]]
) -> None:
    chunks, failure = read(cut(recording["sse_text"].encode()))
    assert_as_expected(recording, assembled(chunks), failure)


def noisy(text: str) -> str:
    """With a byte order mark, and comments and unknown events and keys between any two events."""
    noise = ': ping\n\nevent: unknown\ndata: {"type": "unknown", "choices": []}\n\n'
    return "\ufeff" + noise + text.replace("\n\n", "\n\n" + noise)


FRAMINGS: dict[str, Callable[[str], str]] = {
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "CR": lambda text: text.replace("\n", "\r"),
    "noise": noisy,
    "noise and CRLF": lambda text: noisy(text).replace("\n", "\r\n"),
}


@each_stream
@pytest.mark.parametrize("framing", FRAMINGS.values(), ids=FRAMINGS.keys())
@pytest.mark.parametrize("cut", [by_size(10**9), by_size(7), in_the_middle])
def test_line_ends_and_noise_make_no_difference(
    recording: Recording,
    framing: Callable[[str], str],
    cut: Callable[[bytes], Iterator[bytes]],
) -> None:
    chunks, failure = read(cut(framing(recording["sse_text"]).encode()))
    assert_as_expected(recording, assembled(chunks), failure)


def events_of(recording: Recording) -> list[str]:
    text = recording["sse_text"].rstrip("\n")
    return [event + "\n\n" for event in re.split(r"\n\n+", text)]


def says_the_end(event: str) -> bool:
    return re.search(r'"finish_reason": ?"|data: \[DONE\]|"error": ?\{', event) is not None


@each_stream
def test_a_stream_that_ends_early_is_truncated_and_keeps_its_part(recording: Recording) -> None:
    events = events_of(recording)
    whole = assembled(read([recording["sse_text"].encode()])[0])
    cuts = 0
    for count in range(len(events)):
        if any(map(says_the_end, events[:count])):
            break
        chunks, failure = read(["".join(events[:count]).encode()])
        part = assembled(chunks)
        assert failure is not None
        assert failure.code == "TRUNCATED"
        assert failure.retryable
        assert part.finish is None
        assert whole.message.text.startswith(part.message.text)
        cuts += 1
    assert cuts >= 1


@each_stream
def test_a_stream_cut_inside_its_last_event_before_the_end_is_truncated(
    recording: Recording,
) -> None:
    events = events_of(recording)
    first_end = next(index for index, event in enumerate(events) if says_the_end(event))
    stream = "".join(events[:first_end]) + events[first_end][: len(events[first_end]) // 2]
    _, failure = read([stream.encode()])
    assert failure is not None
    assert failure.code == "TRUNCATED"


@each_stream
def test_the_blank_line_after_the_last_event_may_be_missing(recording: Recording) -> None:
    chunks, failure = read([recording["sse_text"].rstrip("\n").encode()])
    assert_as_expected(recording, assembled(chunks), failure)
