"""What people are shown: nothing that steers a terminal, and never more than fits."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trioloop.chunks import Usage
from trioloop.cli import wording

anything = st.text() | st.text("\x1b\x9b\x07\r\n\t\u202eab漢 ")


@given(text=anything)
def test_neutral_text_holds_no_control_but_line_ends_and_tabs(text: str) -> None:
    shown = wording.neutral(text)
    assert not [char for char in shown if unicodedata.category(char) == "Cc" and char not in "\n\t"]
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@given(text=st.text("abc äß漢字🙂.,-\n\t"))
def test_plain_text_is_left_as_it_is(text: str) -> None:
    assert wording.neutral(text) == text


@given(text=anything, width=st.integers(1, 60))
def test_a_shortened_line_fits(text: str, width: int) -> None:
    line = wording.shortened(text, width)
    assert wording.cells(line) <= width
    assert "\n" not in line


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ('{"city": "Paris", "days": 3}', 'weather(city="Paris", days=3)'),
        ("", "weather()"),
        ("{not json", "weather({not json)"),
        ("[1]", "weather([1])"),
        ('{"x": "a\\u001b[2Jb"}', r'weather(x="a\u001b[2Jb")'),
        ("[" * 5000, "weather(" + "[" * 5000 + ")"),
    ],
)
def test_a_call_is_written_as_a_call(arguments: str, line: str) -> None:
    assert wording.call_line("weather", arguments) == line


@pytest.mark.parametrize(
    ("duration", "told"),
    [(0, "0.0 s"), (0.012, "12 ms"), (0.96, "1.0 s"), (59.94, "59.9 s"), (125.2, "2 min 05 s")],
)
def test_a_duration_is_as_exact_as_people_want_it(duration: float, told: str) -> None:
    assert wording.seconds(duration) == told


@pytest.mark.parametrize(
    ("byte_count", "told"),
    [(1, "1 byte"), (1023, "1,023 bytes"), (10_547, "10.3 KB"), (5 << 30, "5.0 GB")],
)
def test_a_size_is_short(byte_count: int, told: str) -> None:
    assert wording.size(byte_count) == told


@pytest.mark.parametrize(
    ("usage", "told"),
    [
        (Usage(), None),
        (Usage(input_tokens=1200, output_tokens=3), "1,200 in + 3 out tokens"),
        (Usage(output_tokens=3), "3 out tokens"),
    ],
)
def test_only_known_tokens_are_told(usage: Usage, told: str | None) -> None:
    assert wording.tokens(usage) == told
