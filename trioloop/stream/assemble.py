"""Chunks to content blocks, finish and usage: what an attempt's frames come to.

Blocks stand in the order in which the stream first showed them. Each has the joined text of its
pieces; a block without text is left out, unless it carries replay data. Nothing here judges the
content: arguments may be no JSON, and a finish may be missing.
"""

from collections.abc import Callable, Collection, Container, Iterator, Sequence
from itertools import chain
from typing import TypeAlias

import attrs

from trioloop.chunks import (
    ArgumentsDelta,
    BlockKind,
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
)
from trioloop.ids import CallId
from trioloop.messages import (
    AssistantMessage,
    Block,
    OpaqueBlock,
    ReasoningBlock,
    RefusalBlock,
    Replay,
    TextBlock,
    ToolCallBlock,
)


@attrs.frozen
class Assembled:
    """What an attempt came to; a finish of None: the stream had no end."""

    message: AssistantMessage
    finish: Finish | None
    usage: Usage | None


def assemble(
    frames: Sequence[Frame],
    *,
    provider: str,
    model: str,
    call_id: Callable[[int], CallId],
    used_wire_ids: Container[str],
) -> Assembled:
    """The whole of an attempt, calls included.

    Args:
        frames: what was streamed, in order.
        provider: the service that answered.
        model: the model that answered.
        call_id: our own id of the call at an index, from 0 in model order.
        used_wire_ids: of the calls before this answer. A call whose wire id is among them, came
            up earlier in this answer, or is empty, is shown to providers by our own id.
    """
    gathered = _gather(frames)
    content = tuple(_content(gathered, call_id, used_wire_ids))
    message = AssistantMessage(content, provider, model)
    return Assembled(message, gathered.finish, gathered.usage)


def interrupted(frames: Sequence[Frame], *, provider: str, model: str) -> Assembled | None:
    """The visible part of an attempt that was cut off: text, reasoning and refusal (P9).

    None where nothing visible came.
    """
    gathered = _gather(frames)
    content = tuple(
        block
        for part in gathered.parts
        if part.kind in {"text", "reasoning", "refusal"} and (block := part.told()) is not None
    )
    if not any(part.text.strip() for part in gathered.parts if part.kind != "tool-call"):
        return None
    return Assembled(AssistantMessage(content, provider, model), None, gathered.usage)


_Told: TypeAlias = TextBlock | ReasoningBlock | RefusalBlock | OpaqueBlock
_KINDS: dict[type[Chunk], BlockKind] = {
    TextDelta: "text",
    ReasoningDelta: "reasoning",
    RefusalDelta: "refusal",
    ArgumentsDelta: "tool-call",
}


@attrs.define
class _Part:
    """One block in the making."""

    kind: BlockKind
    pieces: list[str] = attrs.Factory(list)
    wire_id: str = ""
    name: str = ""
    replay: Replay | None = None

    @property
    def text(self) -> str:
        return self.pieces[0] if len(self.pieces) == 1 else "".join(self.pieces)

    def told(self) -> _Told | None:
        """The block, where it is no call; None where it has nothing."""
        text, replay = self.text, self.replay
        if not text and replay is None:
            return None
        if self.kind == "text":
            return TextBlock(text, replay)
        if self.kind == "reasoning":
            return ReasoningBlock(text, replay)
        if self.kind == "refusal":
            return RefusalBlock(text) if text else None
        return OpaqueBlock(replay) if replay is not None else None

    def call(self, call: CallId, wire_id: str) -> ToolCallBlock:
        """The block of a call."""
        return ToolCallBlock(call, wire_id, self.name, self.text, self.replay)


@attrs.define
class _Gathered:
    """The parts in the order of their first sight, and what the stream says of the whole."""

    by_key: dict[tuple[BlockKind, int], _Part] = attrs.Factory(dict)
    finish: Finish | None = None
    usage: Usage | None = None

    @property
    def parts(self) -> Collection[_Part]:
        return self.by_key.values()

    def part(self, kind: BlockKind, block: int) -> _Part:
        part = self.by_key.get((kind, block))
        if part is None:
            part = self.by_key[kind, block] = _Part(kind)
        return part

    def take(self, chunk: Chunk) -> None:
        """Take a chunk that is no piece of text."""
        if type(chunk) is ToolCallStart:
            part = self.part("tool-call", chunk.block)
            part.wire_id, part.name = chunk.wire_id, chunk.name
        elif type(chunk) is ReplayChunk:
            self.part(chunk.kind, chunk.block).replay = chunk.replay
        elif type(chunk) is UsageChunk:
            self.usage = chunk.usage
        elif type(chunk) is Finish:
            self.finish = self.finish or chunk


def _gather(frames: Sequence[Frame]) -> _Gathered:
    gathered = _Gathered()
    kind: type | None = None
    block = 0
    pieces: list[str] = []
    for chunk in chain.from_iterable([frame.chunks for frame in frames]):
        if type(chunk) is kind and chunk.block == block:  # type: ignore[union-attr]
            pieces.append(chunk.text)  # type: ignore[union-attr]
        elif type(chunk) in _KINDS:
            kind, block = type(chunk), chunk.block  # type: ignore[union-attr]
            pieces = gathered.part(_KINDS[kind], block).pieces
            pieces.append(chunk.text)  # type: ignore[union-attr]
        else:
            kind = None
            gathered.take(chunk)
    return gathered


def _content(
    gathered: _Gathered, call_id: Callable[[int], CallId], used: Container[str]
) -> Iterator[Block]:
    here: set[str] = set()
    for part in gathered.parts:
        if part.kind == "tool-call":
            call = call_id(len(here))
            wire_id = _free_wire_id(part.wire_id, call, used, here)
            here.add(wire_id)
            yield part.call(call, wire_id)
        elif (block := part.told()) is not None:
            yield block


def _free_wire_id(wanted: str, call: CallId, used: Container[str], here: Container[str]) -> str:
    if wanted and wanted not in used and wanted not in here:
        return wanted
    own: str = call
    while own in used or own in here:  # a provider that happens to use our form
        own += "_"
    return own
