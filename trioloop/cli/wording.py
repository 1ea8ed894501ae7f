"""What people are shown of calls, results, times and untrusted text. Pure.

Text of models, tools and stores may hold control characters that would steer a terminal, and
marks that would reorder its line. `neutral` is the one place where they are made harmless; all
that is shown passes it.
"""

import json
import re
import unicodedata
from collections.abc import Sequence
from datetime import datetime

from trioloop.chunks import Usage
from trioloop.messages import Block, ImageBlock, text_of

_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SPACES = re.compile(r"\s+")


def neutral(text: str) -> str:
    """Text without anything that steers a terminal: such characters are shown as escapes.

    Line ends and tabs stay; carriage returns, which overwrite a line, are left out.
    """
    return _UNSAFE.sub(_escaped, text.replace("\r", ""))


def _escaped(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode("ascii")


def one_line(text: str) -> str:
    """The same on one line."""
    return neutral(_SPACES.sub(" ", text).strip())


def shortened(text: str, width: int) -> str:
    """One line of at most `width` cells, cut with an ellipsis."""
    line = one_line(text)
    if cells(line) <= width:
        return line
    kept, taken = "", 1
    for char in line:
        taken += cells(char)
        if taken > width:
            break
        kept += char
    return f"{kept.rstrip()}…"


def cells(text: str) -> int:
    """How many cells of a terminal a line takes."""
    return sum(_cells_of(char) for char in text)


def _cells_of(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def call_line(name: str, arguments: str) -> str:
    """A call as it would be written in Python, whatever the model's arguments are."""
    try:
        decoded = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        decoded = None
    if not isinstance(decoded, dict):
        return one_line(f"{name}({arguments})")
    shown = (f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in decoded.items())
    return one_line(f"{name}({', '.join(shown)})")


def result_line(content: Sequence[Block]) -> str:
    """What a call gave, on one line."""
    text = text_of(content)
    if text.strip():
        return one_line(text)
    images = sum(isinstance(block, ImageBlock) for block in content)
    return f"{images} image{'s' * (images > 1)}" if images else "nothing"


def seconds(duration: float) -> str:
    """A duration, as exact as people want it."""
    if duration < 0.05:
        return "0.0 s" if duration < 0.001 else f"{duration * 1000:.0f} ms"
    if duration < 60:
        return f"{duration:.1f} s"
    return f"{duration // 60:.0f} min {duration % 60:02.0f} s"


def local_time(unix_ms: int) -> str:
    """A moment where the reader is, to the second; one that no calendar has is told as it is."""
    try:
        return f"{datetime.fromtimestamp(unix_ms / 1000).astimezone():%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return f"{unix_ms} ms"


def count(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def tokens(usage: Usage) -> str | None:
    """The tokens of a turn, where anything is known of them."""
    known = [number for number in (usage.input_tokens, usage.output_tokens) if number is not None]
    if not known:
        return None
    told = [
        f"{number:,} {word}"
        for number, word in ((usage.input_tokens, "in"), (usage.output_tokens, "out"))
        if number is not None
    ]
    return f"{' + '.join(told)} tokens"


def size(byte_count: int) -> str:
    """A number of bytes, short."""
    if byte_count < 1024:
        return count(byte_count, "byte")
    amount = float(byte_count)
    for unit in ("KB", "MB", "GB"):
        amount /= 1024
        if amount < 1024 or unit == "GB":
            break
    return f"{amount:.1f} {unit}"
