"""What the models of all three APIs share: one exchange for each attempt, and its stream.

An attempt is one request; retrying is `plugins.retry`'s. Answers are always streamed, because a
server that answers in one piece doesn't notice a client that has gone.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypedDict

import attrs
import msgspec
import trio
from msgspec import UNSET

from trioloop.chunks import Chunk
from trioloop.errors import InvalidInputError, ModelFailure
from trioloop.events import CallConfig
from trioloop.log.rebuild import Request
from trioloop.messages import Json
from trioloop.models.answer_reader import AnswerReader, Reading
from trioloop.models.failures import failure_of_reply, request_id_of
from trioloop.models.request_body import RequestBody
from trioloop.models.transport import Reply, Transport
from trioloop.ports import Capabilities, RetryPolicy

_OPEN = (None, UNSET)  # what a request leaves to its adapter's defaults
_TRAILING_S = 5  # how long usage and the mark of the end may take, once the finish is told


class Settings(TypedDict, total=False):
    """Settings of `CallConfig` that an adapter fills in where a request leaves them open."""

    max_tokens: int
    temperature: float
    tool_choice: str
    parallel_tool_calls: bool
    reasoning_effort: str
    output_schema: dict[str, Json]
    extra: dict[str, Json]


class HttpModel(ABC):
    """A model behind an HTTP API; what differs between the APIs is its subclasses'.

    Args:
        model: its name there.
        provider: the service's name in the log.
        capabilities: what it can do, as far as it is known.
        retry_policy: how its failures are to be retried.
        transport: the way to its server.
        secrets: what the message of a failure may not hold.
        settings: defaults for what a request leaves open.

    Raises:
        InvalidInputError: a setting is unknown.
    """

    def __init__(
        self,
        model: str,
        *,
        provider: str,
        capabilities: Capabilities,
        retry_policy: RetryPolicy,
        transport: Transport,
        secrets: Sequence[str | None],
        settings: Settings,
    ) -> None:
        self.name = model
        self.provider = provider
        self.capabilities = capabilities
        self.retry_policy = retry_policy
        self._settings = _checked(settings)
        self._transport = transport
        self._secrets = tuple(filter(None, secrets))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} at {self._transport.host}>"

    async def prepare(self, config: CallConfig) -> "ModelCall":
        """Fill in the settings that the request leaves open. Checkpoint.

        Raises:
            ModelFailure: UNSUPPORTED, the settings are for another provider.
        """
        await trio.lowlevel.checkpoint()
        if config.provider != self.provider:
            raise ModelFailure(
                "UNSUPPORTED",
                f"the settings are for the provider {config.provider!r}, this is {self.provider!r}",
            )
        open_settings = {
            name: value
            for name, value in self._settings.items()
            if name != "extra" and getattr(config, name) in _OPEN
        }
        extra = self._settings.get("extra", {}) | config.extra
        return ModelCall(self, msgspec.structs.replace(config, **open_settings, extra=extra))

    async def aclose(self) -> None:
        """Close the connections that are kept; the model opens new ones when it is asked again."""
        await self._transport.aclose()

    @asynccontextmanager
    async def ask(self, request: Request) -> AsyncIterator["ModelStream"]:
        """One exchange: see `PreparedCall.stream`."""
        body = self._body(request)
        async with self._transport.post(self._path, body) as reply:
            if not 200 <= reply.status < 300:
                raise await self._refusal(reply)
            if reply.headers.get("content-type", "").startswith("text/html"):
                raise ModelFailure(
                    "MALFORMED_RESPONSE", "the reply is a page, not an answer: is base_url right?"
                )
            reader = self._reader(self._reading(request, reply))
            yield ModelStream(reply, reader)

    # What differs

    @property
    @abstractmethod
    def _path(self) -> str:
        """Where its requests go, below the server's address."""

    @property
    def _replay_key(self) -> str:
        """Whose replay data it is sent back."""
        return self.provider

    @abstractmethod
    def _body(self, request: Request) -> RequestBody:
        """The body of a request."""

    @abstractmethod
    def _reader(self, reading: Reading) -> AnswerReader:
        """What reads an answer."""

    # What doesn't

    def _reading(self, request: Request, reply: Reply) -> Reading:
        limits = self._transport.limits
        return Reading(
            replay_key=self._replay_key,
            event_bytes_max=limits.event_bytes_max,
            arguments_chars_max=limits.arguments_chars_max,
            output_tokens_max=request.config.max_tokens,
            secrets=self._secrets,
            request_id=request_id_of(reply.headers),
        )

    async def _refusal(self, reply: Reply) -> ModelFailure:
        try:
            body = await reply.rest(self._transport.limits.error_bytes_max)
        except ModelFailure:
            body = b""  # the status says enough
        return failure_of_reply(
            reply.status, reply.headers, body, secrets=self._secrets, now=time.time()
        )


@attrs.frozen
class ModelCall:
    """A model with its settings resolved, ready to be asked."""

    model: HttpModel
    config: CallConfig

    @property
    def capabilities(self) -> Capabilities:
        """What the model can do, as far as it is known."""
        return self.model.capabilities

    @property
    def retry_policy(self) -> RetryPolicy:
        """How its failures are to be retried."""
        return self.model.retry_policy

    def stream(self, request: Request) -> AbstractAsyncContextManager["ModelStream"]:
        """Ask. Entering the block and each read is a checkpoint; leaving it closes the exchange.

        Raises:
            ModelFailure: from entering the block or from the iterator.
        """
        return self.model.ask(request)


class ModelStream:
    """The chunks of an answer, those of one network read together. The last is its `Finish`."""

    def __init__(self, reply: Reply, reader: AnswerReader) -> None:
        self._reply = reply
        self._reader = reader
        self._is_stream = False  # until its first bytes tell

    def __aiter__(self) -> "ModelStream":
        return self

    async def __anext__(self) -> Sequence[Chunk]:
        while self._reader.failure is None and not self._reader.finished:
            chunks = await self._read()
            if chunks:
                self._reply.progressed()
                return chunks
        if self._reader.failure is not None:
            raise self._reader.failure
        raise StopAsyncIteration

    async def _read(self) -> Sequence[Chunk]:
        data = await self._next_bytes()
        if data is None:
            return self._reader.close()
        if not self._is_stream:
            head = data.lstrip()
            if head.startswith(b"{"):  # one JSON value, whatever its content type says
                return self._reader.feed_whole(head + await self._reply.rest())
            self._is_stream = bool(head)
        chunks = self._reader.feed(data)
        if self._reader.finished:
            self._reply.mark_whole()
        return chunks

    async def _next_bytes(self) -> bytes | None:
        if not self._reader.nearly_finished:
            return await self._reply.read()
        try:
            return await self._reply.read(idle_s=_TRAILING_S)
        except ModelFailure:
            return None  # the answer is whole, if perhaps without its usage


def _checked(settings: Settings) -> Settings:
    unknown = settings.keys() - Settings.__annotations__.keys()
    if unknown:
        raise InvalidInputError(
            f"{sorted(unknown)} are no settings: use {sorted(Settings.__annotations__)}"
        )
    return settings
