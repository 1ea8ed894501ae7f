"""The compact form of a stream gives back exactly what was streamed (E4)."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from trioloop import chunks
from trioloop.chunks import EMPTY_STREAM, TimedStream, compact, expand
from trioloop.errors import InvalidInputError
from trioloop.ids import CallId
from trioloop.messages import (
    Block,
    OpaqueBlock,
    ReasoningBlock,
    RefusalBlock,
    Replay,
    TextBlock,
    ToolCallBlock,
)

_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_numbers = st.integers(0, 2)
_replays = st.builds(Replay, provider=_texts, data=st.sampled_from([Raw(b"1"), Raw(b'{"a":[]}')]))
_kinds = st.sampled_from(["text", "reasoning", "refusal", "tool-call", "opaque"])
_chunks: st.SearchStrategy[chunks.Chunk] = st.one_of(
    st.builds(chunks.TextDelta, text=_texts, block=_numbers),
    st.builds(chunks.ReasoningDelta, text=_texts, block=_numbers),
    st.builds(chunks.RefusalDelta, text=_texts, block=_numbers),
    st.builds(chunks.ArgumentsDelta, block=_numbers, text=_texts),
    st.builds(chunks.ToolCallStart, block=_numbers, wire_id=_texts, name=_texts),
    st.builds(chunks.ReplayChunk, kind=_kinds, block=_numbers, replay=_replays),
    st.builds(chunks.UsageChunk, usage=st.builds(chunks.Usage, input_tokens=_numbers)),
    st.builds(chunks.Finish, reason=st.just("stop"), raw=_texts),
)
_blocks: st.SearchStrategy[Block] = st.one_of(
    st.builds(TextBlock, text=_texts, replay=st.none() | _replays),
    st.builds(ReasoningBlock, text=_texts, replay=st.none() | _replays),
    st.builds(RefusalBlock, text=_texts),
    st.builds(
        ToolCallBlock,
        call=st.just(CallId("call_1_1_0")),
        wire_id=_texts,
        name=_texts,
        arguments=_texts,
    ),
    st.builds(OpaqueBlock, replay=_replays),
)
_frames = st.lists(
    st.builds(
        chunks.Frame,
        at_ms=st.integers(0, 10_000),
        chunks=st.lists(_chunks, max_size=5).map(tuple),
    ),
    max_size=6,
)


def through_json(stream: TimedStream) -> TimedStream:
    return msgspec.json.decode(msgspec.json.encode(stream), type=TimedStream)


def fitting_content(frames: Sequence[chunks.Frame]) -> list[Block]:
    """Blocks that hold just the texts and reasoning that some frames stream."""
    texts: dict[int, str] = {}
    reasoning: dict[int, str] = {}
    for frame in frames:
        for chunk in frame.chunks:
            if isinstance(chunk, chunks.TextDelta):
                texts[chunk.block] = texts.get(chunk.block, "") + chunk.text
            if isinstance(chunk, chunks.ReasoningDelta):
                reasoning[chunk.block] = reasoning.get(chunk.block, "") + chunk.text
    return [*map(TextBlock, texts.values()), *map(ReasoningBlock, reasoning.values())]


@given(_frames, st.lists(_blocks, max_size=4))
def test_expand_undoes_compact_with_any_content(
    frames: list[chunks.Frame], content: list[Block]
) -> None:
    assert expand(through_json(compact(frames, content)), content) == tuple(frames)


@given(_frames)
def test_expand_undoes_compact_with_the_content_of_the_stream(frames: list[chunks.Frame]) -> None:
    content = fitting_content(frames)
    stream = compact(frames, content)
    assert expand(through_json(stream), content) == tuple(frames)
    assert not any(
        isinstance(lane.text, str) and lane.text
        for lane in stream.lanes
        if lane.kind in {"text", "reasoning"}
    )


def test_text_and_replay_data_of_the_content_are_not_stored_again() -> None:
    replay = Replay("p", Raw(b'"signature"'))
    content: list[Block] = [ReasoningBlock("think", replay), TextBlock("hello")]
    frames = [
        chunks.Frame(5, (chunks.ReasoningDelta("thi"), chunks.ReasoningDelta("nk"))),
        chunks.Frame(9, (chunks.ReplayChunk("reasoning", 0, replay), chunks.TextDelta("hello"))),
    ]
    encoded = msgspec.json.encode(compact(frames, content))
    assert not any(word in encoded for word in (b"think", b"hello", b"signature"))


def test_a_long_stream_is_small() -> None:
    frames = [chunks.Frame(17 * i, (chunks.TextDelta("token"),)) for i in range(1_000)]
    encoded = msgspec.json.encode(compact(frames, [TextBlock("token" * 1_000)]))
    assert len(encoded) < 6_000


def test_the_empty_stream_has_no_frames() -> None:
    assert compact([], []) == EMPTY_STREAM
    assert expand(EMPTY_STREAM, []) == ()


LANE = chunks.Lane("text", 0, 0)


def test_a_lane_is_refused_where_its_block_has_another_kind_of_text() -> None:
    stream = TimedStream(times=(1,), sizes=(1, 1), order=(0, 1), lengths=(2,), lanes=(LANE,))
    assert expand(stream, [TextBlock("hi")]) == (chunks.Frame(1, (chunks.TextDelta("hi"),)),)
    with pytest.raises(InvalidInputError, match="content block 0 has no text"):
        expand(stream, [ReasoningBlock("hi")])


@pytest.mark.parametrize(
    ("lengths", "others"),
    [((1,), ()), ((2, 0), ()), ((2,), (chunks.UsageChunk(chunks.Usage()),))],
    ids=["text", "length", "chunk"],
)
def test_a_stream_with_something_left_over_is_refused(
    lengths: tuple[int, ...], others: tuple[chunks.Chunk, ...]
) -> None:
    stream = TimedStream((1,), (1, 1), (0, 1), lengths, (LANE,), others)
    with pytest.raises(InvalidInputError, match="some of it belongs to no chunk"):
        expand(stream, [TextBlock("hi")])


_integers = st.lists(st.integers(-2, 5) | st.just(10**15), max_size=6).map(tuple)


@given(
    st.builds(
        TimedStream,
        times=_integers,
        sizes=_integers,
        order=_integers,
        lengths=_integers,
        lanes=st.lists(
            st.builds(
                chunks.Lane,
                kind=st.sampled_from(["text", "arguments"]),
                block=_numbers,
                text=_texts | st.integers(-2, 2),
            ),
            max_size=2,
        ).map(tuple),
        others=st.lists(
            st.builds(chunks.ReplayAt, kind=_kinds, block=_numbers, content=st.integers(-2, 2)),
            max_size=2,
        ).map(tuple),
    ),
    st.lists(_blocks, max_size=2),
)
def test_a_damaged_stream_is_refused_or_consistent(
    stream: TimedStream, content: list[Block]
) -> None:
    try:
        frames = expand(stream, content)
    except InvalidInputError:
        return
    assert len(frames) == len(stream.times)
