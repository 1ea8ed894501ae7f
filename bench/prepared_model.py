"""A model that has its answers ready: what a benchmark measures is the runtime, not its model.

The model's own work is one checkpoint a network read and, where asked for, the body that a Chat
Completions server would be sent.
"""

from collections.abc import Callable, Sequence
from types import TracebackType

import trio

import trioloop
from trioloop.chunks import ArgumentsDelta, Chunk, Finish, TextDelta, ToolCallStart, UsageChunk
from trioloop.chunks import Usage as Tokens
from trioloop.models import Dialect
from trioloop.models.chat_request import ChatEncoder
from trioloop.ports import Capabilities, RetryPolicy

Reads = Sequence[Sequence[Chunk]]  # the chunks of each network read

_TOKENS = UsageChunk(Tokens(input_tokens=10, cached_input_tokens=0, output_tokens=5))
DONE: Reads = (
    (TextDelta("done"),),
    (_TOKENS, Finish("stop")),
)


def calls_of(tool: str, count: int, first: int = 0) -> Reads:
    """An answer that asks for `tool(index=...)` `count` times, all in one network read.

    Args:
        tool: its name.
        count: how many calls.
        first: the number of the first one; the provider's ids are made of them.
    """
    calls: list[Chunk] = []
    for index in range(count):
        calls.append(ToolCallStart(index, f"call_{first + index}", tool))
        calls.append(ArgumentsDelta(index, f'{{"index":{first + index}}}'))
    return (calls, (_TOKENS, Finish("tool_calls")))


def text_of(chunks: int, per_read: int) -> Reads:
    """An answer of some text deltas, so many in a network read."""
    deltas = [TextDelta("word ") for _ in range(chunks)]
    reads = [deltas[start : start + per_read] for start in range(0, chunks, per_read)]
    return (*reads, (_TOKENS, Finish("stop")))


class PreparedModel:
    """Answers each request with what a function of it gives.

    Args:
        answer: the reads that answer a request.
        encodes: build the request's body, as an adapter does.
        delay_s: seconds before the first read; 0: none.
        stalls: be silent behind the last read, until somebody cancels.
    """

    provider = "prepared"
    name = "prepared"
    capabilities = Capabilities()
    retry_policy = RetryPolicy()

    def __init__(
        self,
        answer: Callable[[trioloop.Request], Reads],
        *,
        encodes: bool = False,
        delay_s: float = 0,
        stalls: bool = False,
    ) -> None:
        self._answer = answer
        self._encoder = ChatEncoder(self.provider, Dialect(), images=False) if encodes else None
        self._delay_s = delay_s
        self._stalls = stalls

    async def prepare(self, config: trioloop.CallConfig) -> "_PreparedCall":
        """Resolve nothing. Checkpoint."""
        await trio.lowlevel.checkpoint()
        return _PreparedCall(self, config)

    async def ask(self, request: trioloop.Request) -> "PreparedStream":
        """Encode the request and take as long as the model takes. Checkpoint."""
        if self._encoder is not None:
            self._encoder.body(request)
        if self._delay_s:
            await trio.sleep(self._delay_s)
        else:
            await trio.lowlevel.checkpoint()
        return PreparedStream(self._answer(request), stalls=self._stalls)


class _PreparedCall:
    def __init__(self, model: PreparedModel, config: trioloop.CallConfig) -> None:
        self.config = config
        self.capabilities = model.capabilities
        self.retry_policy = model.retry_policy
        self._model = model

    def stream(self, request: trioloop.Request) -> "_Exchange":
        return _Exchange(self._model, request)


class _Exchange:
    def __init__(self, model: PreparedModel, request: trioloop.Request) -> None:
        self._model = model
        self._request = request

    async def __aenter__(self) -> "PreparedStream":
        return await self._model.ask(self._request)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pass


class PreparedStream:
    """Gives reads that are there already. Each read is a checkpoint."""

    def __init__(self, reads: Reads, *, stalls: bool = False) -> None:
        self._reads = iter(reads)
        self._stalls = stalls

    def __aiter__(self) -> "PreparedStream":
        return self

    async def __anext__(self) -> Sequence[Chunk]:
        await trio.lowlevel.checkpoint()
        for read in self._reads:
            return read
        if self._stalls:
            await trio.sleep_forever()
        raise StopAsyncIteration
