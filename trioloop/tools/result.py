"""Turns what a body returned into the outcome of its call, strictly and in linear time.

Text and content blocks are taken as they are, JSON values and data classes become JSON text.
What JSON can't hold is refused with the path to it, before anything of it is in a log.

A large value is written piece by piece, so that a thread that does it lets others run in between;
`is_heavy` tells, at a small constant cost, whether it should be a thread.
"""

from collections.abc import Iterable, Iterator, Sequence

import attrs

from trioloop.errors import EventEncodingError
from trioloop.messages import Block, ImageBlock, Json, TextBlock
from trioloop.ports import ToolOutcome
from trioloop.tools.excerpt import clean, excerpt, size
from trioloop.tools.strict import is_light, plain, refused, written

_KEPT_BYTES = 1 << 20
_PLAIN = frozenset({bool, int, float, dict})  # never text or blocks, themselves or inside
_WHOLE_BYTES = _KEPT_BYTES // 2  # a text of fewer was never cut
_CLEANED_CHARACTERS_MAX = 1 << 20  # beyond it a text is cleaned only where it is kept


def outcome_of(value: object, *, bytes_max: int = _KEPT_BYTES) -> ToolOutcome:
    """The outcome that a body's return value means. Doesn't wait; large values want a thread.

    Args:
        value: text, a JSON value, a data class, one or several content blocks, a `ToolOutcome`,
            or None, which has no content.
        bytes_max: how much text is made of a large JSON value, head and tail; `value` has it whole.

    Raises:
        EventEncodingError: a part of it can't be written as JSON; `path` leads to it. A coroutine
            or generator was closed.
    """
    if type(value) not in _PLAIN:
        special = _of_special(value)
        if special is not None:
            return special
    text, copy = written(value, bytes_max=bytes_max)
    return ToolOutcome(content=(TextBlock(text),), value=copy)


def _of_special(value: object) -> ToolOutcome | None:
    """The outcome that text, blocks, an outcome or None mean; None where it is another value."""
    if isinstance(value, str):
        text = clean(value) if len(value) <= _CLEANED_CHARACTERS_MAX else value
        is_blank = not text or text.isspace()
        return ToolOutcome(content=() if is_blank else (TextBlock(text),), value=text)
    if value is None:
        return ToolOutcome(content=())
    if isinstance(value, ToolOutcome):
        return _checked(value)
    if isinstance(value, Block):
        return ToolOutcome(content=_blocks([value]))
    if isinstance(value, list | tuple) and any(isinstance(item, Block) for item in value):
        return ToolOutcome(content=_blocks(value))
    return None


def is_heavy(value: object) -> bool:
    """Whether `outcome_of` may hold up other tasks with a value, so that it wants a thread."""
    if type(value) in _PLAIN:
        return not is_light(value)
    if isinstance(value, ToolOutcome):
        return not (is_light(value.value) and is_light(value.meta))
    return not isinstance(value, str | Block) and not is_light(value)


def whole_text(outcome: ToolOutcome) -> Iterator[bytes]:
    """The whole text of an outcome's content, in pieces that are made quickly, each as UTF-8.

    `outcome_of` makes only so much text of a large value; where that is the content, the value is
    written once more. Images have no text.
    """
    texts = [block.text for block in outcome.content if isinstance(block, TextBlock)]
    value = outcome.value
    if len(texts) == 1 and len(texts[0]) > _WHOLE_BYTES and not isinstance(value, str | None):
        pieces: list[bytes] = []
        if written(value, bytes_max=_KEPT_BYTES, pieces=pieces.append)[0] == texts[0]:
            yield from pieces
            return
    for index, text in enumerate(texts):
        yield b"\n" if index else b""
        for start in range(0, len(text), _KEPT_BYTES):
            yield clean(text[start : start + _KEPT_BYTES]).encode()


def bounded(outcome: ToolOutcome, bytes_max: int) -> ToolOutcome:
    """An outcome whose content has at most `bytes_max` bytes, head and tail kept, and said so.

    `meta` beyond that size is replaced by a note of its size. `value` is left whole.
    """
    if outcome.meta is None and _is_small(outcome.content, bytes_max):
        return outcome
    content = _unless_blank(excerpt(outcome.content, bytes_max))
    meta = outcome.meta
    if (
        meta
        and size(text := written(meta, "$.meta", bytes_max=bytes_max)[0], bytes_max) > bytes_max
    ):
        meta = {"left_out_characters": len(text)}
    if content == outcome.content and meta is outcome.meta:
        return outcome
    return attrs.evolve(outcome, content=content, meta=meta)


def _is_small(content: Sequence[Block], bytes_max: int) -> bool:
    """Whether content is one plain text, as most is, that surely fits."""
    if len(content) != 1 or not isinstance(block := content[0], TextBlock):
        return not content
    text = block.text
    return len(text) <= bytes_max and text.isascii() and not text.isspace() and text != ""


def _checked(outcome: ToolOutcome) -> ToolOutcome:
    """An outcome that an author made, with copies of its JSON values."""
    value: Json = (
        None if outcome.value is None else written(outcome.value, "$.value", bytes_max=0)[1]
    )
    meta = None if outcome.meta is None else plain(outcome.meta, "$.meta")
    if meta is not None and not isinstance(meta, dict):
        raise refused(outcome.meta, "$.meta", "an object is wanted")
    return attrs.evolve(outcome, content=_blocks(outcome.content), value=value, meta=meta)


def _blocks(items: Sequence[object]) -> tuple[Block, ...]:
    return _unless_blank([_block(item, f"$[{index}]") for index, item in enumerate(items)])


def _block(item: object, path: str) -> Block:
    if isinstance(item, str):
        return TextBlock(clean(item))
    if isinstance(item, TextBlock):
        return TextBlock(clean(item.text))
    if isinstance(item, ImageBlock):
        return item
    raise refused(item, path, "among content blocks, give text, TextBlock or ImageBlock")


def _unless_blank(content: Iterable[Block]) -> tuple[Block, ...]:
    """Content, or none where it is only blank text: models refuse blank blocks."""
    found = tuple(content)
    if all(isinstance(block, TextBlock) and not block.text.strip() for block in found):
        return ()
    return found


def encoding_failed(error: EventEncodingError) -> ToolOutcome:
    """The outcome of a call whose result was refused, as the model is told of it."""
    return ToolOutcome(
        content=f"The tool ran, but its result can't be written: {error}",
        is_error=True,
        code="TOOL_RESULT_UNENCODABLE",
    )
