"""The bytes of a request in pieces, so that a long history is sent again without being copied.

What the pieces say is written by the encoder of each API.
"""

from collections.abc import Iterable

import attrs


@attrs.frozen(eq=False)
class RequestBody:
    """A request's body; `bytes` makes one piece of it, `len` counts its bytes.

    Attributes:
        pieces: its bytes, in order.
    """

    pieces: tuple[bytes, ...]

    @classmethod
    def of(cls, start: bytes, blocks: Iterable[bytes], end: bytes) -> "RequestBody":
        """A body whose blocks are long, and kept as they are; what is short is one piece."""
        between = tuple(blocks)
        return cls((start, *between, end) if between else (start + end,))

    def __len__(self) -> int:
        return sum(map(len, self.pieces))

    def __bytes__(self) -> bytes:
        return b"".join(self.pieces)
