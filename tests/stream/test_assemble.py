"""Frames come to content blocks, a finish and usage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from trioloop.chunks import (
    ArgumentsDelta,
    Chunk,
    Finish,
    Frame,
    ReasoningDelta,
    RefusalDelta,
    ReplayChunk,
    TextDelta,
    ToolCallStart,
    Usage,
    UsageChunk,
    compact,
)
from trioloop.ids import call_id
from trioloop.messages import (
    OpaqueBlock,
    ReasoningBlock,
    RefusalBlock,
    Replay,
    TextBlock,
    ToolCallBlock,
)
from trioloop.stream.assemble import Assembled, assemble, interrupted


def assembled(*chunks: Chunk, used: tuple[str, ...] = ()) -> Assembled:
    return assemble(
        [Frame(index, (chunk,)) for index, chunk in enumerate(chunks)],
        provider="p",
        model="m",
        call_id=lambda index: call_id(3, 2, index),
        used_wire_ids=used,
    )


def test_blocks_stand_in_the_order_of_their_first_piece() -> None:
    answer = assembled(
        ReasoningDelta("th"),
        TextDelta("a"),
        ReasoningDelta("ink"),
        ToolCallStart(0, "w0", "one"),
        TextDelta("b"),
        ToolCallStart(1, "w1", "two"),
        ArgumentsDelta(1, "{}"),
        ArgumentsDelta(0, '{"a":1}'),
        Finish("tool_calls"),
    )
    assert answer.message.content == (
        ReasoningBlock("think"),
        TextBlock("ab"),
        ToolCallBlock(call_id(3, 2, 0), "w0", "one", '{"a":1}'),
        ToolCallBlock(call_id(3, 2, 1), "w1", "two", "{}"),
    )
    assert answer.finish == Finish("tool_calls")
    assert (answer.message.provider, answer.message.model) == ("p", "m")


def test_blocks_of_other_numbers_stay_apart() -> None:
    answer = assembled(TextDelta("a", 0), TextDelta("b", 1), TextDelta("c", 0))
    assert answer.message.content == (TextBlock("ac"), TextBlock("b"))


def test_empty_blocks_are_left_out_unless_they_carry_replay_data() -> None:
    replay = Replay("p", Raw(b'{"signature":"s"}'))
    answer = assembled(
        TextDelta(""),
        RefusalDelta(""),
        ReplayChunk("reasoning", 0, replay),
        ReplayChunk("opaque", 0, replay),
    )
    assert answer.message.content == (ReasoningBlock("", replay), OpaqueBlock(replay))


def test_replay_data_joins_its_block() -> None:
    replay = Replay("p", Raw(b'"s"'))
    answer = assembled(ReasoningDelta("a"), ReplayChunk("reasoning", 0, replay), TextDelta("b"))
    assert answer.message.content == (ReasoningBlock("a", replay), TextBlock("b"))


def test_a_later_usage_replaces_an_earlier_one() -> None:
    answer = assembled(UsageChunk(Usage(1, 0, 1)), UsageChunk(Usage(5, 2, 9, 4)))
    assert answer.usage == Usage(5, 2, 9, 4)
    assert assembled().usage is None


@pytest.mark.parametrize("wire_id", ["", "used"])
def test_an_empty_or_used_wire_id_becomes_our_own(wire_id: str) -> None:
    call = assembled(ToolCallStart(0, wire_id, "x"), used=("used",)).message.calls[0]
    assert call.wire_id == call.call == call_id(3, 2, 0)


def test_a_wire_id_repeated_in_one_answer_becomes_our_own() -> None:
    answer = assembled(ToolCallStart(0, "0", "x"), ToolCallStart(1, "0", "x"))
    assert [call.wire_id for call in answer.message.calls] == ["0", call_id(3, 2, 1)]


def test_wire_ids_differ_even_where_a_provider_uses_our_form() -> None:
    own = call_id(3, 2, 1)
    answer = assembled(ToolCallStart(0, own, "x"), ToolCallStart(1, "", "x"))
    assert len({call.wire_id for call in answer.message.calls}) == 2


def test_our_own_id_is_changed_where_an_earlier_call_has_it() -> None:
    own = call_id(3, 2, 0)
    call = assembled(ToolCallStart(0, "", "x"), used=(own,)).message.calls[0]
    assert (call.call, call.wire_id) == (own, f"{own}_")


def test_replay_data_of_a_call_that_was_cut_off_is_left_out() -> None:
    told = ReplayChunk("tool-call", 0, Replay("p", Raw(b'{"caller":1}')))
    frames = [Frame(1, (TextDelta("so"), ToolCallStart(0, "w", "x"), told))]
    cut = interrupted(frames, provider="p", model="m")
    assert cut is not None
    assert cut.message.content == (TextBlock("so"),)


def test_what_was_cut_off_keeps_text_and_reasoning_but_no_call() -> None:
    frames = [
        Frame(1, (ReasoningDelta("hm"), TextDelta("I lo"))),
        Frame(2, (ToolCallStart(0, "w", "x"), ArgumentsDelta(0, '{"a'))),
    ]
    cut = interrupted(frames, provider="p", model="m")
    assert cut is not None
    assert cut.message.content == (ReasoningBlock("hm"), TextBlock("I lo"))
    assert cut.finish is None


def test_a_refusal_that_was_cut_off_is_visible() -> None:
    cut = interrupted([Frame(1, (RefusalDelta("I ca"),))], provider="p", model="m")
    assert cut is not None
    assert cut.message.content == (RefusalBlock("I ca"),)


@pytest.mark.parametrize(
    "chunks", [(), (TextDelta(" \n"),), (ToolCallStart(0, "w", "x"), ArgumentsDelta(0, "{}"))]
)
def test_a_cut_without_anything_visible_gives_nothing(chunks: tuple[Chunk, ...]) -> None:
    assert interrupted([Frame(0, chunks)], provider="p", model="m") is None


@given(
    st.lists(
        st.builds(TextDelta, text=st.text(max_size=3), block=st.integers(0, 1))
        | st.builds(ArgumentsDelta, block=st.integers(0, 1), text=st.text(max_size=3))
        | st.builds(ReasoningDelta, text=st.text(max_size=3)),
        max_size=12,
    )
)
def test_the_stream_of_an_answer_holds_none_of_its_text(chunks: list[Chunk]) -> None:
    stream = compact([Frame(0, tuple(chunks))], assembled(*chunks).message.content)
    assert all(isinstance(lane.text, int) or lane.text == "" for lane in stream.lanes)


def test_what_was_cut_off_knows_who_spoke_and_what_it_cost() -> None:
    frames = [Frame(0, (TextDelta("so"), UsageChunk(Usage(input_tokens=3))))]
    cut = interrupted(frames, provider="p", model="m")
    assert cut is not None
    assert (cut.message.provider, cut.message.model) == ("p", "m")
    assert cut.usage == Usage(input_tokens=3)
