"""A model that answers from a script: tests of agents need no network and meet no surprise.

Each entry of the script answers one request. Time passes only where the script says so, and it is
Trio's: under a virtual clock a scripted minute takes no time.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import repeat
from types import TracebackType
from typing import TypeAlias

import attrs
import msgspec
import trio

from trioloop.chunks import (
    ArgumentsDelta,
    Chunk,
    Finish,
    FinishReason,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallStart,
    Usage,
    UsageChunk,
)
from trioloop.errors import InvalidInputError, ModelFailure
from trioloop.events import CallConfig
from trioloop.log.rebuild import Request
from trioloop.messages import Json
from trioloop.ports import Capabilities, RetryPolicy


@attrs.frozen
class Text:
    """The model says something."""

    text: str


@attrs.frozen
class Reasoning:
    """The model thinks aloud."""

    text: str


@attrs.frozen
class Refusal:
    """The model declines, in these words."""

    text: str


@attrs.frozen(init=False)
class ToolCall:
    """The model asks for a call.

    Args:
        name: the tool's name.
        wire_id: the provider's id of the call; None: the model makes one.
        raw_arguments: their text, where it isn't the JSON of `arguments`, as in a cut answer.
        arguments: the arguments.
    """

    name: str
    wire_id: str | None
    raw_arguments: str

    def __init__(
        self,
        name: str,
        /,
        *,
        wire_id: str | None = None,
        raw_arguments: str | None = None,
        **arguments: Json,
    ) -> None:
        raw = msgspec.json.encode(arguments).decode() if raw_arguments is None else raw_arguments
        for field, value in (("name", name), ("wire_id", wire_id), ("raw_arguments", raw)):
            object.__setattr__(self, field, value)


@attrs.frozen
class Wait:
    """Nothing comes for some seconds."""

    seconds: float


@attrs.frozen
class Stall:
    """Nothing comes any more, until somebody cancels."""


@attrs.frozen
class Fail:
    """The attempt fails: at once, or after the pieces that stand before it.

    Args:
        code: one of `errors.MODEL_FAILURE_CODES`.
        message: what happened.
        retry_after: seconds that the provider asks to wait.
        status: the HTTP status.
        retryable: whether trying again may help; None: as is usual for the code.

    Raises:
        InvalidInputError: there is no such code.
    """

    code: str
    message: str = "the script says so"
    retry_after: float | None = None
    status: int | None = None
    retryable: bool | None = None

    def __attrs_post_init__(self) -> None:
        self.failure()  # refused where it is written, not in the middle of a turn

    def failure(self) -> ModelFailure:
        """The failure to raise."""
        return ModelFailure(
            self.code,
            self.message,
            status=self.status,
            retry_after_s=self.retry_after,
            retryable=self.retryable,
        )


Piece: TypeAlias = str | Text | Reasoning | Refusal | ToolCall | Wait | Stall | Fail
_PIECES = (str, Text, Reasoning, Refusal, ToolCall, Wait, Stall, Fail)
USAGE = Usage(input_tokens=10, cached_input_tokens=0, output_tokens=5, reasoning_tokens=0)


@attrs.frozen
class Answer:
    """An answer with all its facts; plain pieces stand for one with the usual facts.

    Args:
        pieces: what the model streams, in order.
        finish: why it stops; None: `tool_calls`, `refusal` or `stop`, by what it streamed.
        usage: the tokens; None: the provider doesn't tell.
    """

    pieces: Sequence[Piece]
    finish: FinishReason | None = None
    usage: Usage | None = USAGE


Entry: TypeAlias = Piece | Sequence[Piece] | Answer
Responder: TypeAlias = Callable[[Request], Entry | Awaitable[Entry]]
Script: TypeAlias = Iterable[Entry | Responder] | Responder


class ScriptedModel:
    """A model that answers from a script.

    Args:
        script: an entry for each request, in order; or a function that answers every request. An
            entry is a piece such as `Text("hi")`, a list of pieces, an `Answer`, or a function
            (also async) that is given the request and returns one of those.
        provider: the service that it says to be.
        name: the model that it says to be.
        capabilities: what it says it can do.
        retry_policy: how it wants failures retried.
        chunk_chars: characters of one chunk; None: a piece is one chunk.
        chunks_per_read: chunks that come together.
        read_delay_s: seconds before each read.

    Attributes:
        requests: what it was asked, in order.
    """

    def __init__(
        self,
        script: Script,
        *,
        provider: str = "scripted",
        name: str = "scripted",
        capabilities: Capabilities = Capabilities(images=True),  # noqa: B008 - frozen
        retry_policy: RetryPolicy = RetryPolicy(),  # noqa: B008 - frozen
        chunk_chars: int | None = None,
        chunks_per_read: int = 1,
        read_delay_s: float = 0,
    ) -> None:
        self.provider = provider
        self.name = name
        self.capabilities = capabilities
        self.retry_policy = retry_policy
        self.requests: list[Request] = []
        self._script = iter(repeat(script) if callable(script) else script)
        self._reading = _Reading(chunk_chars, chunks_per_read, read_delay_s)

    async def prepare(self, config: CallConfig) -> "ScriptedCall":
        """Resolve nothing; passes two checkpoints, so that tests can cancel it there."""
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        return ScriptedCall(self, config)

    async def answer(self, request: Request) -> "_ScriptedStream":
        """The stream of the next entry. Checkpoint.

        Raises:
            ModelFailure: the entry says so, or the script has no further entry.
        """
        self.requests.append(request)
        number = len(self.requests)
        entry = next(self._script, _NOTHING)
        await trio.lowlevel.checkpoint()
        if entry is _NOTHING:
            raise ModelFailure("UNKNOWN", f"the script has no entry for request {number}")
        answer = _answer(await _resolve(entry, request), number)  # type: ignore[arg-type]
        if answer.pieces and isinstance(answer.pieces[0], Fail):
            raise answer.pieces[0].failure()
        return _ScriptedStream(answer, self._reading, number)


@attrs.frozen
class ScriptedCall:
    """A scripted model, ready to be asked."""

    model: ScriptedModel
    config: CallConfig

    @property
    def capabilities(self) -> Capabilities:
        """What the model can do."""
        return self.model.capabilities

    @property
    def retry_policy(self) -> RetryPolicy:
        """How its failures are to be retried."""
        return self.model.retry_policy

    def stream(self, request: Request) -> "_Asked":
        """Ask. Entering the block and each read is a checkpoint."""
        return _Asked(self.model, request)


@attrs.frozen
class _Asked:
    model: ScriptedModel
    request: Request

    async def __aenter__(self) -> "_ScriptedStream":
        return await self.model.answer(self.request)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pass


@attrs.frozen
class _Reading:
    """How the pieces of an answer come: the size of chunks and reads, and their delay."""

    chunk_chars: int | None
    chunks_per_read: int
    delay_s: float


class _ScriptedStream:
    def __init__(self, answer: Answer, reading: _Reading, number: int) -> None:
        self._delay_s = reading.delay_s
        self._steps = _steps(answer, reading, number)

    def __aiter__(self) -> "_ScriptedStream":
        return self

    async def __anext__(self) -> tuple[Chunk, ...]:
        for step in self._steps:
            if isinstance(step, tuple):
                await trio.sleep(self._delay_s)
                return step
            await _wait(step)
        raise StopAsyncIteration


_NOTHING = object()
_Step: TypeAlias = tuple[Chunk, ...] | Wait | Stall | Fail


async def _wait(step: Wait | Stall | Fail) -> None:
    if isinstance(step, Wait):
        await trio.sleep(step.seconds)
    elif isinstance(step, Stall):
        await trio.sleep_forever()
    else:
        await trio.lowlevel.checkpoint()
        raise step.failure()


async def _resolve(entry: Entry | Responder, request: Request) -> Entry:
    if not callable(entry):
        return entry
    found = entry(request)
    return await found if inspect.isawaitable(found) else found


def _answer(entry: Entry, number: int) -> Answer:
    if isinstance(entry, _PIECES):
        entry = Answer((entry,))
    elif not isinstance(entry, Answer):
        entry = Answer(entry)
    for piece in entry.pieces:
        if not isinstance(piece, _PIECES):
            raise InvalidInputError(
                f"entry {number} of the script holds {piece!r}: give Text, Reasoning, Refusal, "
                "ToolCall, Wait, Stall or Fail"
            )
    return entry


def _steps(answer: Answer, reading: _Reading, number: int) -> Iterator[_Step]:
    chunks: list[Chunk] = []
    block, kind = 0, None
    for index, piece in enumerate(answer.pieces):
        if isinstance(piece, Wait | Stall | Fail):
            yield from _reads(chunks, reading.chunks_per_read)
            chunks = []
            yield piece
            continue
        if type(piece) is not kind or isinstance(piece, ToolCall):
            block, kind = index, type(piece)
        chunks += _chunks(piece, reading.chunk_chars, block, f"scripted_{number}_{index}")
    yield from _reads(chunks, reading.chunks_per_read)
    usage = [UsageChunk(answer.usage)] if answer.usage is not None else []
    yield (*usage, Finish(answer.finish or _finish(answer.pieces)))


def _reads(chunks: Sequence[Chunk], size: int) -> Iterator[tuple[Chunk, ...]]:
    return (tuple(chunks[start : start + size]) for start in range(0, len(chunks), size))


def _chunks(piece: Piece, chars: int | None, block: int, wire_id: str) -> Iterator[Chunk]:
    match piece:
        case str(text) | Text(text):
            yield from (TextDelta(part, block) for part in _cut(text, chars))
        case Reasoning(text):
            yield from (ReasoningDelta(part, block) for part in _cut(text, chars))
        case Refusal(text):
            yield from (RefusalDelta(part, block) for part in _cut(text, chars))
        case ToolCall(name, given, raw):
            yield ToolCallStart(block, wire_id if given is None else given, name)
            yield from (ArgumentsDelta(block, part) for part in _cut(raw, chars))


def _cut(text: str, chars: int | None) -> Iterator[str]:
    size = chars or len(text) or 1
    return (text[start : start + size] for start in range(0, len(text), size))


def _finish(pieces: Sequence[Piece]) -> FinishReason:
    if any(isinstance(piece, ToolCall) for piece in pieces):
        return "tool_calls"
    return "refusal" if any(isinstance(piece, Refusal) for piece in pieces) else "stop"
