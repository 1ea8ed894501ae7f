"""The demonstration model as a `Model`: reads a request, decides, and streams what it decided."""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from datetime import date

import attrs
import trio

from trioloop.chunks import (
    ArgumentsDelta,
    Chunk,
    Finish,
    TextDelta,
    ToolCallStart,
    Usage,
    UsageChunk,
)
from trioloop.errors import InvalidInputError
from trioloop.events import CallConfig
from trioloop.log.rebuild import Request
from trioloop.models.demonstration.deciding import Decision, decide
from trioloop.models.demonstration.values import Reader
from trioloop.ports import Capabilities, ChunkStream, PreparedCall, RetryPolicy

_WORD = re.compile(r"\s*\S+\s*")
_ARGUMENTS_PIECE = 12
_CAPABILITIES = Capabilities(system_update="in-history")
_NO_RETRIES = RetryPolicy(retries_max=0)


def _is_duration(_: object, field: "attrs.Attribute[float]", value: float) -> None:
    if not 0 <= value < float("inf"):
        raise InvalidInputError(f"{field.name} must be 0 or more seconds, not {value!r}")


@attrs.frozen
class DemonstrationModel:
    """A model that needs no key, no network and no download: rules instead of weights.

    It reads the tool declarations and the question, matches words, picks values out of the
    question, calls the tools that fit, answers from their results, and says plainly what it is
    and where no tool fits. It exists so that trioloop can be tried, shown and tested by itself.

    Args:
        name: the model's name, as it is logged.
        pace_s: seconds between two pieces of what it streams; 0 streams as fast as possible.
        today: gives the date that "today" means.

    Raises:
        InvalidInputError: `pace_s` is negative or not finite.
    """

    name: str = "demonstration"
    pace_s: float = attrs.field(default=0.02, kw_only=True, validator=_is_duration)
    today: Callable[[], date] = attrs.field(default=date.today, kw_only=True)
    provider: str = attrs.field(default="trioloop", init=False)

    async def prepare(self, config: CallConfig) -> PreparedCall:
        """Take the settings as they are: only `tool_choice` and `parallel_tool_calls` matter.

        A checkpoint.
        """
        await trio.lowlevel.checkpoint()
        return _Prepared(config, self.pace_s, Reader(self.today()))


@attrs.frozen
class _Prepared:
    config: CallConfig
    _pace_s: float
    _reader: Reader
    capabilities: Capabilities = _CAPABILITIES
    retry_policy: RetryPolicy = _NO_RETRIES

    def stream(self, request: Request) -> AbstractAsyncContextManager[ChunkStream]:
        return self._streaming(request)

    @asynccontextmanager
    async def _streaming(self, request: Request) -> AsyncIterator[ChunkStream]:
        await trio.lowlevel.checkpoint()
        batches = tuple(_batches(decide(request, self._reader)))
        async with aclosing(self._paced(batches)) as stream:
            yield stream

    async def _paced(
        self, batches: Sequence[Sequence[Chunk]]
    ) -> AsyncGenerator[Sequence[Chunk], None]:
        for batch in batches:
            await trio.sleep(self._pace_s)
            yield batch


def _batches(decision: Decision) -> Iterator[Sequence[Chunk]]:
    words = _WORD.findall(decision.text)
    yield from ([TextDelta(word)] for word in words)
    pieces = len(words)
    for number, call in enumerate(decision.calls):
        yield [ToolCallStart(number, f"demo_{decision.calls_before + number}", call.tool)]
        raw = json.dumps(call.arguments, ensure_ascii=False)
        for start in range(0, len(raw), _ARGUMENTS_PIECE):
            yield [ArgumentsDelta(number, raw[start : start + _ARGUMENTS_PIECE])]
            pieces += 1
    usage = Usage(input_tokens=decision.words_read, output_tokens=pieces)
    yield [UsageChunk(usage), Finish("tool_calls" if decision.calls else "stop")]
