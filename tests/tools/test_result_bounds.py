"""Results that are too long: B44, fault 11. Head and tail are kept, and what is missing is said."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trioloop.messages import Block, ImageBlock, TextBlock, text_of
from trioloop.ports import ToolOutcome
from trioloop.tools.excerpt import HeadAndTail, clean, excerpt
from trioloop.tools.result import bounded, outcome_of


def size(content: tuple[Block, ...]) -> int:
    """Bytes of some content."""
    return sum(
        len(block.text.encode()) if isinstance(block, TextBlock) else len(block.data)
        for block in content
        if isinstance(block, TextBlock | ImageBlock)
    )


def test_long_text_keeps_head_and_tail_and_says_so() -> None:
    text = "begin " + "x" * 2_000_000 + " end"
    (block,) = bounded(outcome_of(text), 40_000).content
    assert isinstance(block, TextBlock)
    assert block.text.startswith("begin xxx")
    assert block.text.endswith("xxx end")
    assert "1,960,170 characters left out: a result may have 40,000 bytes" in block.text
    assert 39_000 < size((block,)) <= 40_000


def test_value_is_left_whole() -> None:
    assert bounded(outcome_of("x" * 100_000), 1_000).value == "x" * 100_000


@settings(deadline=None)
@given(st.text(max_size=400), st.integers(256, 600))
def test_no_character_is_cut(text: str, bytes_max: int) -> None:
    doubled = text * 3
    (block, *_) = excerpt((TextBlock(doubled),), bytes_max)
    assert isinstance(block, TextBlock)
    if size((TextBlock(doubled),)) <= bytes_max:
        assert block.text == doubled
        return
    head, _, rest = block.text.partition("\n[... ")
    assert doubled.startswith(head)
    assert doubled.endswith(rest.partition(" ...]\n")[2])
    assert size((block,)) <= bytes_max


@settings(deadline=None)
@given(
    st.lists(
        st.text(max_size=300).map(TextBlock)
        | st.integers(0, 300).map(lambda n: ImageBlock("image/png", "A" * n)),
        max_size=6,
    ),
    st.integers(256, 800),
)
def test_blocks_are_bounded_together(content: list[Block], bytes_max: int) -> None:
    kept = excerpt(content, bytes_max)
    if size(tuple(content)) <= bytes_max:
        assert kept == tuple(content)
    else:
        assert size(kept) <= bytes_max
        assert "left out" in text_of(kept)
        images = [block for block in kept if isinstance(block, ImageBlock)]
        assert all(block in content for block in images)


def test_image_that_does_not_fit_is_left_out_whole() -> None:
    image = ImageBlock("image/png", "A" * 1_000)
    kept = excerpt((TextBlock("before"), image, TextBlock("after")), 500)
    assert kept == (
        TextBlock("before\n[... an image left out: a result may have 500 bytes ...]\nafter"),
    )


def test_lone_surrogates_are_cleaned_where_they_are_kept() -> None:
    (block,) = bounded(outcome_of("\ud800" * 2_000_000), 1_000).content
    assert isinstance(block, TextBlock)
    assert block.text.startswith("\\ud800\\ud800")
    assert size((block,)) <= 1_000


def test_long_json_is_bounded_as_it_is_written() -> None:
    outcome = outcome_of(list(range(100_000)), bytes_max=1_000)
    text = text_of(outcome.content)
    assert text.startswith("[0,1,2,")
    assert text.endswith(",99999]")
    assert "bytes left out" in text
    assert bounded(outcome, 1_000).content == outcome.content


def test_meta_that_is_too_long_becomes_a_note() -> None:
    outcome = ToolOutcome(content="x", meta={"rows": ["y" * 2_000]})
    assert bounded(outcome, 1_000).meta == {"left_out_characters": 2_013}
    assert bounded(outcome, 4_000) is outcome


def test_clean_text_is_itself() -> None:
    text = "naïve \U0001f600"
    assert clean(text) is text


@settings(deadline=None)
@given(st.lists(st.binary(max_size=200), max_size=30), st.integers(200, 500))
def test_head_and_tail_are_those_of_the_whole(pieces: list[bytes], bytes_max: int) -> None:
    kept = HeadAndTail(bytes_max)
    for piece in pieces:
        kept.feed(piece)
    whole = b"".join(pieces)
    assert kept.total == len(whole)
    if len(whole) <= bytes_max:
        assert kept.text() == whole.decode("utf-8", "backslashreplace")
    else:
        assert "bytes left out" in kept.text()


@pytest.mark.parametrize("shift", range(8))
def test_characters_in_a_stream_are_not_cut(shift: int) -> None:
    kept = HeadAndTail(400)
    data = b"." * shift + ("é€\U0001f600" * 500).encode()
    for start in range(0, len(data), 7):
        kept.feed(data[start : start + 7])
    text = kept.text()
    assert "\\x" not in text
    assert len(text.encode()) <= 400
    assert text.endswith("\U0001f600")
