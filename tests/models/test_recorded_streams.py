"""Every recorded stream of every API reads as expected, however its bytes are cut or framed.

The recordings are those that their folder lists; all of them, and the whole of what each expects.
"""

import re
from collections.abc import Callable, Iterator

import pytest

from tests.models.judging import assert_as_expected
from tests.models.reading import assembled, read
from tests.models.recordings import STREAMS_ARE_OURS, Recording, error_bodies, listing, streams

STREAMS = streams()
each_stream = pytest.mark.parametrize("recording", STREAMS.values(), ids=STREAMS.keys())
ran: set[str] = set()


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
    chunks, failure = read(recording, cut(recording["sse_text"].encode()))
    assert_as_expected(recording, assembled(chunks), failure)


def noisy(text: str) -> str:
    """With a byte order mark, and comments and unknown events and keys between any two events."""
    noise = (
        ': ping\n\nevent: unknown\ndata: {"type": "unknown", "choices": []}\n\n'
        'data: {"type": "response.new.delta", "delta": "x", "obfuscation": "y"}\n\n'
        'event: ping\ndata: {"type": "ping"}\n\n:\n'
    )
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
    chunks, failure = read(recording, cut(framing(recording["sse_text"]).encode()))
    assert_as_expected(recording, assembled(chunks), failure)


def events_of(recording: Recording) -> list[str]:
    text = recording["sse_text"].rstrip("\n")
    return [event + "\n\n" for event in re.split(r"\n\n+", text)]


END = re.compile(
    r'"finish_reason": ?"|data: \[DONE\]|"error": ?\{|"type": ?"error"|"stop_reason": ?"'
    r'|"type": ?"response\.(completed|incomplete|failed)"'
)


def says_the_end(event: str) -> bool:
    return END.search(event) is not None


@each_stream
def test_a_stream_that_ends_early_is_truncated_and_keeps_its_part(recording: Recording) -> None:
    events = events_of(recording)
    whole = assembled(read(recording, [recording["sse_text"].encode()])[0])
    cuts = 0
    for count in range(len(events)):
        if any(map(says_the_end, events[:count])):
            break
        chunks, failure = read(recording, ["".join(events[:count]).encode()])
        part = assembled(chunks)
        assert failure is not None
        assert failure.code == "TRUNCATED"
        assert failure.retryable
        assert part.finish is None
        assert whole.message.text.startswith(part.message.text)
        cuts += 1
    ran.add(recording["id"])
    assert cuts == count_before_the_end(events)


def count_before_the_end(events: list[str]) -> int:
    return next(place for place, event in enumerate(events) if says_the_end(event)) + 1


@each_stream
def test_a_stream_cut_inside_its_last_event_before_the_end_is_truncated(
    recording: Recording,
) -> None:
    events = events_of(recording)
    first_end = next(index for index, event in enumerate(events) if says_the_end(event))
    stream = "".join(events[:first_end]) + events[first_end][: len(events[first_end]) // 2]
    _, failure = read(recording, [stream.encode()])
    assert failure is not None
    assert failure.code == "TRUNCATED"


@each_stream
def test_the_blank_line_after_the_last_event_may_be_missing(recording: Recording) -> None:
    chunks, failure = read(recording, [recording["sse_text"].rstrip("\n").encode()])
    assert_as_expected(recording, assembled(chunks), failure)


def test_every_file_of_the_folder_was_read() -> None:
    assert len(STREAMS) + len(error_bodies()) == len(listing())
    assert ran == {recording["id"] for recording in STREAMS.values()}
    assert len(listing()) >= (79 if STREAMS_ARE_OURS else 1)
