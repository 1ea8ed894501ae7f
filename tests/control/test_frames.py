"""What the meter lets pass, whatever pieces the bytes come in. Pure."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trioloop.control.budget import Budget
from trioloop.control.frames import FrameMeter, Refusal


def frame(opcode: int, payload: bytes = b"", *, final: bool = True, masked: bool = True) -> bytes:
    """A client's frame."""
    size = len(payload)
    short = size if size < 126 else 126 if size < 65_536 else 127
    extended = size.to_bytes({126: 2, 127: 8}.get(short, 0)) if short > 125 else b""
    head = bytes((opcode | (0x80 if final else 0), short | (0x80 if masked else 0)))
    return head + extended + (b"\0\0\0\0" if masked else b"") + payload


def meter(pings: int = 10, now: list[float] | None = None) -> FrameMeter:
    time = now or [0.0]
    return FrameMeter(1_000, 5, Budget(pings, 1, 0), lambda: time[0])


frames = st.builds(
    frame,
    st.sampled_from([1, 2]),
    st.binary(max_size=1_000),
    masked=st.booleans(),
)


@given(st.lists(frames, max_size=6), st.lists(st.integers(1, 200), max_size=30))
def test_good_messages_pass_in_any_pieces(sent: list[bytes], cuts: list[int]) -> None:
    data, watched = b"".join(sent), meter()
    for cut in [*cuts, len(data)]:
        assert watched.see(data[:cut]) is None
        data = data[cut:]


@pytest.mark.parametrize("size", [1_001, 65_535, 65_536, 2**20])
def test_a_large_message_is_refused_by_its_head(size: int) -> None:
    whole = frame(1, bytes(size))
    assert meter().see(whole[:-size]) == Refusal(1009, "a message has at most 1000 bytes")


def test_a_length_of_63_bits_is_refused_before_any_of_it_comes() -> None:
    head = bytes((0x81, 0xFF)) + struct.pack("!Q", 2**63 - 1) + b"\0\0\0\0"
    refused = meter().see(head)
    assert refused is not None
    assert refused.code == 1009


def test_the_bytes_of_all_fragments_count() -> None:
    watched = meter()
    assert watched.see(frame(1, bytes(600), final=False)) is None
    refused = watched.see(frame(0, bytes(600)))
    assert refused is not None
    assert refused.code == 1009


def test_empty_fragments_without_end_are_refused() -> None:
    watched = meter()
    assert watched.see(frame(1, final=False)) is None
    refused = watched.see(frame(0, final=False) * 5)
    assert refused is not None
    assert refused.code == 1009


def test_a_new_message_counts_from_nothing() -> None:
    watched = meter()
    for _ in range(50):
        assert watched.see(frame(1, bytes(900))) is None


def test_pings_have_a_budget_of_their_own_that_fills_again() -> None:
    now = [0.0]
    watched = meter(pings=3, now=now)
    assert watched.see(frame(9) * 3) is None
    now[0] = 1.0
    assert watched.see(frame(9)) is None
    refused = watched.see(frame(9, b"x"))
    assert refused is not None
    assert refused.code == 1008


def test_a_ping_inside_a_message_belongs_to_nobody() -> None:
    watched = meter()
    assert watched.see(frame(1, bytes(500), final=False) + frame(9) + frame(0, bytes(500))) is None
