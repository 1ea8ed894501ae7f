"""What a model streams, and the compact form in which an attempt's stream is logged (E4).

A chunk is the smallest piece that an adapter reads; a frame is the chunks of one network read,
with the time at which they came. Nothing is computed per chunk while it streams: `compact` is
called once, at the end, and `expand(compact(frames, content), content) == frames`.
"""

from typing import Literal, TypeAlias

from msgspec import Struct

from trioloop.messages import Replay

BlockKind: TypeAlias = Literal["text", "reasoning", "refusal", "tool-call", "opaque"]
FinishReason: TypeAlias = Literal[
    "stop", "tool_calls", "length", "content_filter", "refusal", "pause"
]


class Usage(Struct, frozen=True):
    """Tokens of one or more attempts. None is unknown, which isn't 0.

    `input_tokens` is the total with the cached ones; `output_tokens` includes reasoning.
    """

    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None

    def __add__(self, other: "Usage") -> "Usage":
        """The sum of both; what one of them doesn't know is taken from the other."""
        return Usage(
            *(_sum(mine, theirs) for mine, theirs in zip(self._all, other._all, strict=True))
        )

    @property
    def _all(self) -> tuple[int | None, ...]:
        return (
            self.input_tokens,
            self.cached_input_tokens,
            self.output_tokens,
            self.reasoning_tokens,
        )


def _sum(one: int | None, other: int | None) -> int | None:
    return (one or 0) + (other or 0) if one is not None or other is not None else None


class TextDelta(Struct, frozen=True, tag="text", tag_field="type", gc=False):
    """A piece of the text block that the adapter numbers `block`; kinds are numbered apart."""

    text: str
    block: int = 0


class ReasoningDelta(Struct, frozen=True, tag="reasoning", tag_field="type", gc=False):
    """A piece of a reasoning block."""

    text: str
    block: int = 0


class RefusalDelta(Struct, frozen=True, tag="refusal", tag_field="type", gc=False):
    """A piece of a refusal."""

    text: str
    block: int = 0


class ToolCallStart(Struct, frozen=True, tag="tool-call", tag_field="type", gc=False):
    """The first sight of a call: the provider's id ("" where it gives none) and the tool's name."""

    block: int
    wire_id: str
    name: str


class ArgumentsDelta(Struct, frozen=True, tag="arguments", tag_field="type", gc=False):
    """A piece of the raw arguments of the call numbered `block`."""

    block: int
    text: str


class ReplayChunk(Struct, frozen=True, tag="replay", tag_field="type"):
    """Opaque replay data for the block of that kind and number; of kind `opaque`, a whole block."""

    kind: BlockKind
    block: int
    replay: Replay


class UsageChunk(Struct, frozen=True, tag="usage", tag_field="type"):
    """The usage of the attempt so far; a later one replaces it."""

    usage: Usage


class Finish(Struct, frozen=True, tag="finish", tag_field="type"):
    """The end of a good stream, exactly one.

    Attributes:
        reason: why the model stopped, in our words.
        raw: the same in the provider's words.
        inferred: the provider closed its stream properly, but didn't say why it stopped.
    """

    reason: FinishReason
    raw: str = ""
    inferred: bool = False


Chunk: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | RefusalDelta
    | ToolCallStart
    | ArgumentsDelta
    | ReplayChunk
    | UsageChunk
    | Finish
)


class Frame(Struct, frozen=True):
    """The chunks of one network read, `at_ms` whole milliseconds after the attempt began."""

    at_ms: int
    chunks: tuple[Chunk, ...]


class TimedStream(Struct, frozen=True):
    """The compact form of an attempt's frames (E4)."""


EMPTY_STREAM = TimedStream()
