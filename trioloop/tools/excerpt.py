"""Cuts what is too long: head and tail are kept, and what was left out is said.

Cutting costs as much as what is kept, however long the text is, and never splits a character.
"""

from collections.abc import Iterable, Sequence

from trioloop.codec import is_unicode
from trioloop.messages import Block, ImageBlock, TextBlock

_MARK_BYTES = 160  # room for the words that say what was left out


def clean(text: str) -> str:
    """Text that UTF-8 can hold: lone surrogates become `\\udcXX`, as in Python's own literals."""
    return text if is_unicode(text) else text.encode("utf-8", "backslashreplace").decode()


def size(text: str, bytes_max: int) -> int:
    """The size of a text in bytes; beyond `bytes_max` perhaps too small, but beyond it too."""
    if text.isascii() or len(text) > bytes_max:
        return len(text)
    return len(text.encode("utf-8", "backslashreplace"))


def prefix(text: str, bytes_max: int) -> str:
    """As many whole characters from the beginning as fit into some bytes."""
    cut = clean(text[: max(bytes_max, 0)]).encode()[: max(bytes_max, 0)]
    return cut.decode("utf-8", "ignore")


def suffix(text: str, bytes_max: int) -> str:
    """As many whole characters from the end as fit into some bytes."""
    if bytes_max <= 0:
        return ""
    return clean(text[-bytes_max:]).encode()[-bytes_max:].decode("utf-8", "ignore")


class HeadAndTail:
    """Keeps the beginning and the end of bytes that come in pieces, in bounded memory.

    Args:
        bytes_max: how many bytes are kept; at least room for the words that say what is missing.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing."""
        return self.total <= self._bytes_max

    def feed(self, data: bytes | bytearray) -> None:
        """Add a piece."""
        self.total += len(data)
        room = self._bytes_max - len(self._head)
        self._head += data[:room]
        if len(data) <= room:
            return
        self._tail += data[room:][-self._bytes_max :]
        if len(self._tail) > 2 * self._bytes_max:  # now and then, so that each byte moves once
            del self._tail[: -self._bytes_max]

    def text(self) -> str:
        """What was kept, as text, with what is missing said in the middle.

        Bytes that aren't UTF-8 become `\\xNN`; no character is cut in two.
        """
        if self.is_whole:
            return (self._head + self._tail).decode("utf-8", "backslashreplace")
        room = max(self._bytes_max - _MARK_BYTES, 0)
        head = _without_half_end(bytes(self._head[: room - room // 2]))
        kept = self._head + self._tail
        tail = _without_half_beginning(bytes(kept[len(kept) - room // 2 :]))
        missing = self.total - len(head) - len(tail)
        mark = f"[... {missing:,} bytes left out: {self._bytes_max:,} may be kept ...]"
        return "\n".join(
            part.decode("utf-8", "backslashreplace") for part in (head, mark.encode(), tail)
        )


def _without_half_end(data: bytes) -> bytes:
    for length in range(1, min(4, len(data) + 1)):
        lead = data[-length]
        if lead >= 0xC0:
            needed = 2 + (lead >= 0xE0) + (lead >= 0xF0)
            return data[:-length] if length < needed else data
        if lead < 0x80:
            return data
    return data


def _without_half_beginning(data: bytes) -> bytes:
    for start in range(min(4, len(data))):
        if not 0x80 <= data[start] < 0xC0:
            return data[start:]
    return data


def excerpt(content: Sequence[Block], bytes_max: int) -> tuple[Block, ...]:
    """Content of at most `bytes_max` bytes: its head and tail, and between them what is missing.

    Only text is cut; an image that doesn't fit is left out whole.
    """
    if sum(_size(block, bytes_max) for block in content) <= bytes_max:
        return tuple(_cleaned(block) for block in content)
    room = max(bytes_max - _MARK_BYTES, 0)
    head = _head(content, room - room // 2)
    tail = _tail(content, room // 2)
    before, after = "", ""
    if head and isinstance(last := head[-1], TextBlock):
        before = last.text + "\n"
        head.pop()
    if tail and isinstance(first := tail[0], TextBlock):
        after = "\n" + first.text
        tail.pop(0)
    kept = [*head, *tail, TextBlock(before[:-1] + after[1:])]
    mark = prefix(_mark(content, kept, bytes_max), bytes_max)
    return (*head, TextBlock(f"{before}{mark}{after}"), *tail)


def _mark(content: Iterable[Block], kept: Iterable[Block], bytes_max: int) -> str:
    missing = _count(content, TextBlock) - _count(kept, TextBlock)
    images = _count(content, ImageBlock) - _count(kept, ImageBlock)
    what = [f"{missing:,} characters"] if missing else []
    what += [f"{images} images" if images > 1 else "an image"] if images else []
    return f"[... {' and '.join(what)} left out: a result may have {bytes_max:,} bytes ...]"


def _count(content: Iterable[Block], kind: type[TextBlock | ImageBlock]) -> int:
    """Characters of the texts, or how many images."""
    found = [block for block in content if isinstance(block, kind)]
    return sum(len(block.text) if isinstance(block, TextBlock) else 1 for block in found)


def _size(block: Block, bytes_max: int) -> int:
    if isinstance(block, TextBlock):
        return size(block.text, bytes_max)
    return len(block.data) if isinstance(block, ImageBlock) else 0


def _cleaned(block: Block) -> Block:
    return TextBlock(clean(block.text)) if isinstance(block, TextBlock) else block


def _head(content: Sequence[Block], room: int) -> list[Block]:
    kept: list[Block] = []
    for block in content:
        needed = _size(block, room)
        if needed > room:
            if isinstance(block, TextBlock) and room > 0:
                kept.append(TextBlock(prefix(block.text, room)))
            break
        kept.append(_cleaned(block))
        room -= needed
    return kept


def _tail(content: Sequence[Block], room: int) -> list[Block]:
    kept: list[Block] = []
    for block in reversed(content):
        needed = _size(block, room)
        if needed > room:
            if isinstance(block, TextBlock) and room > 0:
                kept.append(TextBlock(suffix(block.text, room)))
            break
        kept.append(_cleaned(block))
        room -= needed
    return kept[::-1]
