"""What a model streams, and the compact form in which an attempt's stream is logged (E4).

A chunk is the smallest piece that an adapter reads; a frame is the chunks of one network read,
with the time at which they came. Nothing is computed per chunk while it streams: `compact` is
called once, at the end, and `expand(compact(frames, content), content) == frames`.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain, groupby, islice
from operator import sub
from typing import Literal, TypeAlias, TypeVar

from msgspec import Struct

from trioloop.errors import InvalidInputError
from trioloop.messages import (
    Block,
    ReasoningBlock,
    RefusalBlock,
    Replay,
    TextBlock,
    ToolCallBlock,
)

BlockKind: TypeAlias = Literal["text", "reasoning", "refusal", "tool-call", "opaque"]
LaneKind: TypeAlias = Literal["text", "reasoning", "refusal", "arguments"]
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
            _sum(self.input_tokens, other.input_tokens),
            _sum(self.cached_input_tokens, other.cached_input_tokens),
            _sum(self.output_tokens, other.output_tokens),
            _sum(self.reasoning_tokens, other.reasoning_tokens),
        )


def _sum(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


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
        detail: what it adds: the stop sequence that was met, the category of a refusal.
        response_id: the provider's id of the answer, for questions to its support.
    """

    reason: FinishReason
    raw: str = ""
    inferred: bool = False
    detail: str = ""
    response_id: str = ""


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


class Lane(Struct, frozen=True, gc=False):
    """The deltas of one kind and block number, as one text.

    Attributes:
        kind: the deltas' kind.
        block: the adapter's number of their block.
        text: all of them joined; or the index of the content block that holds just this text.
    """

    kind: LaneKind
    block: int
    text: int | str


class ReplayAt(Struct, frozen=True, tag="replay-at", tag_field="type", gc=False):
    """A `ReplayChunk` whose data is that of the content block at index `content`."""

    kind: BlockKind
    block: int
    content: int


class TimedStream(Struct, frozen=True):
    """The compact form of an attempt's frames (E4), in columns.

    A column of runs is flat: a value, how often it stands there, the next value, and so on.

    Attributes:
        times: of each frame, whole milliseconds after the frame before.
        sizes: runs; of each frame, how many chunks it has.
        order: runs; of each chunk, the index of its lane, or -1 for the next one of `others`.
        lengths: of each chunk in a lane, how many characters it takes from its lane's text.
        lanes: the texts.
        others: the chunks that are no piece of text.
    """

    times: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    order: tuple[int, ...] = ()
    lengths: tuple[int, ...] = ()
    lanes: tuple[Lane, ...] = ()
    others: tuple[Chunk | ReplayAt, ...] = ()


EMPTY_STREAM = TimedStream()


TextPiece: TypeAlias = TextDelta | ReasoningDelta | RefusalDelta | ArgumentsDelta

_LANE_KINDS: dict[type[Chunk], LaneKind] = {
    TextDelta: "text",
    ReasoningDelta: "reasoning",
    RefusalDelta: "refusal",
    ArgumentsDelta: "arguments",
}
_PIECES: dict[LaneKind, Callable[..., TextPiece]] = {
    "text": TextDelta,
    "reasoning": ReasoningDelta,
    "refusal": RefusalDelta,
    "arguments": ArgumentsDelta,
}
T = TypeVar("T")
_OTHER = -1
LaneKey: TypeAlias = tuple[LaneKind, int]


def compact(frames: Sequence[Frame], content: Sequence[Block]) -> TimedStream:
    """The compact form of some frames (E4).

    Args:
        frames: of one attempt, in order.
        content: what the attempt is logged with; a text that one of its blocks holds isn't stored
            again. Any content is right; empty content makes a stream that stands alone.
    """
    pieces: dict[LaneKey, tuple[int, list[str]]] = {}
    order: list[int] = []
    lengths: list[int] = []
    others: list[Chunk | ReplayAt] = []
    last: type[Chunk] | None = None  # the kind of the run under way, with its block and texts
    block, texts = 0, [""]
    for chunk in chain.from_iterable([frame.chunks for frame in frames]):
        kind = type(chunk)
        if kind in _LANE_KINDS:
            if kind is last and chunk.block == block:  # type: ignore[union-attr]
                order[-1] += 1
            else:
                last, block = kind, chunk.block  # type: ignore[union-attr]
                lane = pieces.setdefault((_LANE_KINDS[kind], block), (len(pieces), []))
                texts = lane[1]
                order += (lane[0], 1)
            texts.append(chunk.text)  # type: ignore[union-attr]
            lengths.append(len(texts[-1]))
        else:
            last = None
            others.append(
                _without_known_replay(chunk, content) if type(chunk) is ReplayChunk else chunk
            )
            order += (_OTHER, 1)
    return TimedStream(
        times=_differences([frame.at_ms for frame in frames]),
        sizes=_runs([len(frame.chunks) for frame in frames]),
        order=tuple(order),
        lengths=tuple(lengths),
        lanes=_lanes(pieces, content),
        others=tuple(others),
    )


def expand(stream: TimedStream, content: Sequence[Block]) -> tuple[Frame, ...]:
    """The frames that were compacted, exactly, times included (E4).

    Args:
        stream: the compact form.
        content: the content that it was compacted with.

    Raises:
        InvalidInputError: the stream doesn't fit together, or not with this content.
    """
    try:
        return _framed(stream, _expanded(stream, content))
    except (IndexError, ValueError) as error:
        raise InvalidInputError(f"the timed stream doesn't fit its content: {error}") from None


def _text_in(block: Block) -> tuple[LaneKind, str] | None:
    if isinstance(block, ToolCallBlock):
        return "arguments", block.arguments
    if isinstance(block, TextBlock):
        return "text", block.text
    if isinstance(block, ReasoningBlock):
        return "reasoning", block.text
    return ("refusal", block.text) if isinstance(block, RefusalBlock) else None


def _lanes(
    pieces: dict[LaneKey, tuple[int, list[str]]], content: Sequence[Block]
) -> tuple[Lane, ...]:
    known = {_text_in(block): index for index, block in enumerate(content)}
    lanes = []
    for (kind, block), (_, texts) in pieces.items():
        text = texts[0] if len(texts) == 1 else "".join(texts)
        lanes.append(Lane(kind, block, known.get((kind, text), text) if text else ""))
    return tuple(lanes)


def _without_known_replay(chunk: ReplayChunk, content: Sequence[Block]) -> Chunk | ReplayAt:
    for index, block in enumerate(content):
        if getattr(block, "replay", None) == chunk.replay:
            return ReplayAt(chunk.kind, chunk.block, index)
    return chunk


def _with_replay(chunk: Chunk | ReplayAt, content: Sequence[Block]) -> Chunk:
    if not isinstance(chunk, ReplayAt):
        return chunk
    replay = getattr(_at(content, chunk.content), "replay", None)
    if replay is None:
        raise ValueError(f"content block {chunk.content} has no replay data")
    return ReplayChunk(chunk.kind, chunk.block, replay)


def _lane_text(lane: Lane, content: Sequence[Block]) -> str:
    if isinstance(lane.text, str):
        return lane.text
    found = _text_in(_at(content, lane.text))
    if found is None or found[0] != lane.kind:
        raise ValueError(f"content block {lane.text} has no {lane.kind}")
    return found[1]


def _framed(stream: TimedStream, chunks: Iterator[Chunk]) -> tuple[Frame, ...]:
    sizes = _unrolled(stream.sizes, len(stream.times))
    frames = tuple(
        Frame(at_ms, tuple(islice(chunks, size)))
        for at_ms, size in zip(accumulate(stream.times), sizes, strict=True)
    )
    if next(chunks, None) is not None or sum(len(frame.chunks) for frame in frames) != sum(sizes):
        raise ValueError("its frames have another number of chunks")
    return frames


def _expanded(stream: TimedStream, content: Sequence[Block]) -> Iterator[Chunk]:
    others = iter(stream.others)
    lengths = iter(stream.lengths)
    cursors = [_Cursor(lane, _lane_text(lane, content)) for lane in stream.lanes]
    for place, count in _pairs(stream.order):
        if place == _OTHER:
            yield from (_with_replay(chunk, content) for chunk in islice(others, count))
        else:
            yield from map(_at(cursors, place).take, islice(lengths, count))
    if any(cursor.left for cursor in cursors) or next(lengths, next(others, None)) is not None:
        raise ValueError("some of it belongs to no chunk")


class _Cursor:
    """Cuts the text of a lane into its deltas."""

    def __init__(self, lane: Lane, text: str) -> None:
        self._piece = _PIECES[lane.kind]
        self._block = lane.block
        self._text = text
        self._at = 0

    @property
    def left(self) -> int:
        """How many characters no delta has taken yet."""
        return len(self._text) - self._at

    def take(self, length: int) -> TextPiece:
        """The next delta."""
        if not 0 <= length <= self.left:
            raise ValueError(f"a piece of {length} characters, where {self.left} are left")
        start, self._at = self._at, self._at + length
        return self._piece(block=self._block, text=self._text[start : self._at])


def _at(values: Sequence[T], index: int) -> T:
    if index < 0:
        raise IndexError(f"there is no index {index}")
    return values[index]


def _differences(values: list[int]) -> tuple[int, ...]:
    return tuple(map(sub, values, chain((0,), values)))


def _runs(values: list[int]) -> tuple[int, ...]:
    return tuple(chain.from_iterable((value, len(list(group))) for value, group in groupby(values)))


def _pairs(runs: Sequence[int]) -> Iterator[tuple[int, int]]:
    return zip(runs[::2], runs[1::2], strict=True)


def _unrolled(runs: Sequence[int], length: int) -> list[int]:
    if sum(runs[1::2]) != length or any(count < 0 for count in runs[1::2]):
        raise ValueError(f"its frames aren't {length}, as its times say")
    return [value for value, count in _pairs(runs) for _ in range(count)]
