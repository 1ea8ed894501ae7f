"""The Chat Completions API: OpenAI's own, and the many servers that imitate it.

An attempt is one request; retrying is `plugins.retry`'s. Answers are always streamed, because a
server that answers in one piece doesn't notice a client that has gone.
"""

import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Literal, TypedDict, Unpack
from urllib.parse import urlsplit

import attrs
import msgspec
import trio

from trioloop.chunks import Chunk
from trioloop.errors import InvalidInputError, ModelFailure
from trioloop.events import CallConfig
from trioloop.log.rebuild import Request
from trioloop.messages import Json
from trioloop.models.address import checked_host
from trioloop.models.chat_request import ChatEncoder
from trioloop.models.chat_stream import ChatReader
from trioloop.models.deadlines import ConnectionLimits, Deadlines
from trioloop.models.failures import failure_of_reply
from trioloop.models.services import SERVICES, Dialect, service_at
from trioloop.models.transport import HttpTransport, Reply, Transport
from trioloop.ports import Capabilities, RetryPolicy

_TRAILING_S = 5  # how long usage and the mark of the end may take, once the finish is told


class Settings(TypedDict, total=False):
    """Settings of `CallConfig` that an adapter fills in where a request leaves them open."""

    max_tokens: int
    temperature: float
    tool_choice: str
    parallel_tool_calls: bool
    reasoning_effort: str
    extra: dict[str, Json]


class OpenAIChat:
    """A model behind a Chat Completions API.

    Args:
        model: its name there.
        base_url: where the API's paths begin; None: OpenAI's.
        api_key: None: the variable of the service at that address, such as OPENAI_API_KEY; other
            servers are sent none.
        provider: the service's name in the log; None: the known service's, else the host's.
        dialect: what the server wants different; None: the known service's, else the common one.
        context_window: tokens of prompt and answer, where you know it.
        images: the model can be shown images; None: by the dialect.
        system_update: how a changed section reaches the model (E1).
        headers: further headers of each request.
        deadlines: how long the server may take.
        limits: what its connections may use.
        retry_policy: how its failures are to be retried.
        http: an HTTP transport to use instead of the network, for tests.
        settings: defaults for what a request leaves open, such as `temperature=0`.

    Raises:
        InvalidInputError: the address, a header or a setting can't be used, or the key is missing.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        provider: str | None = None,
        dialect: Dialect | None = None,
        context_window: int | None = None,
        images: bool | None = None,
        system_update: Literal["replace", "in-history"] = "replace",
        headers: Mapping[str, str] | None = None,
        deadlines: Deadlines = Deadlines(),  # noqa: B008 - frozen
        limits: ConnectionLimits = ConnectionLimits(),  # noqa: B008 - frozen
        retry_policy: RetryPolicy = RetryPolicy(),  # noqa: B008 - frozen
        http: HttpTransport | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        base_url = base_url or SERVICES["openai"].base_url
        checked_host(base_url)
        service = service_at(base_url)
        key = api_key or _key_of(base_url)
        dialect = dialect or (service.dialect if service else Dialect())
        images = dialect.images if images is None else images
        self.name = model
        self.provider = provider or (service.name if service else urlsplit(base_url).hostname or "")
        self.capabilities = Capabilities(context_window, images, system_update)
        self.retry_policy = retry_policy
        self._settings = _checked(settings)
        self._encoder = ChatEncoder(self.provider, dialect, images=images)
        authorization = {"authorization": f"Bearer {key}"} if key else {}
        self._secrets = tuple(filter(None, (key, *(headers or {}).values())))
        self._transport = Transport(
            base_url,
            headers={**authorization, **(headers or {})},
            deadlines=deadlines,
            limits=limits,
            http=http,
        )

    def __repr__(self) -> str:
        return f"<OpenAIChat {self.name!r} at {self._transport.host}>"

    async def prepare(self, config: CallConfig) -> "ChatCall":
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
            if name != "extra" and getattr(config, name) is None
        }
        extra = self._settings.get("extra", {}) | config.extra
        return ChatCall(self, msgspec.structs.replace(config, **open_settings, extra=extra))

    async def aclose(self) -> None:
        """Close the connections that are kept; the model opens new ones when it is asked again."""
        await self._transport.aclose()

    @asynccontextmanager
    async def ask(self, request: Request) -> AsyncIterator["ChatStream"]:
        """One exchange: see `PreparedCall.stream`."""
        body = self._encoder.body(request)
        async with self._transport.post("/chat/completions", body) as reply:
            if not 200 <= reply.status < 300:
                raise await self._refusal(reply)
            if reply.headers.get("content-type", "").startswith("text/html"):
                raise ModelFailure(
                    "MALFORMED_RESPONSE", "the reply is a page, not an answer: is base_url right?"
                )
            yield ChatStream(reply, self._reader(reply), self._transport.limits.response_bytes_max)

    def _reader(self, reply: Reply) -> ChatReader:
        limits = self._transport.limits
        return ChatReader(
            provider=self.provider,
            event_bytes_max=limits.event_bytes_max,
            arguments_chars_max=limits.arguments_chars_max,
            secrets=self._secrets,
            request_id=reply.headers.get("x-request-id"),
        )

    async def _refusal(self, reply: Reply) -> ModelFailure:
        try:
            body = await reply.whole(self._transport.limits.error_bytes_max)
        except ModelFailure:
            body = b""  # the status says enough
        return failure_of_reply(
            reply.status, reply.headers, body, secrets=self._secrets, now=time.time()
        )


@attrs.frozen
class ChatCall:
    """A model with its settings resolved, ready to be asked."""

    model: OpenAIChat
    config: CallConfig

    @property
    def capabilities(self) -> Capabilities:
        """What the model can do, as far as it is known."""
        return self.model.capabilities

    @property
    def retry_policy(self) -> RetryPolicy:
        """How its failures are to be retried."""
        return self.model.retry_policy

    def stream(self, request: Request) -> AbstractAsyncContextManager["ChatStream"]:
        """Ask. Entering the block and each read is a checkpoint; leaving it closes the exchange.

        Raises:
            ModelFailure: from entering the block or from the iterator.
        """
        return self.model.ask(request)


class ChatStream:
    """The chunks of an answer, those of one network read together. The last is its `Finish`."""

    def __init__(self, reply: Reply, reader: ChatReader, bytes_max: int) -> None:
        self._reply = reply
        self._reader = reader
        self._bytes_max = bytes_max
        self._is_stream = False  # until its first bytes tell

    def __aiter__(self) -> "ChatStream":
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
                return self._reader.feed_whole(head + await self._reply.whole(self._bytes_max))
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


def _key_of(base_url: str) -> str | None:
    """The key of a known service, from the environment; other servers need none."""
    service = service_at(base_url)
    if service is None:
        return None
    key = os.environ.get(service.key_variable)
    if not key:
        raise InvalidInputError(
            f"{service.name} needs a key: set {service.key_variable}, or give api_key="
        )
    return key


def _checked(settings: Settings) -> Settings:
    unknown = settings.keys() - Settings.__annotations__.keys()
    if unknown:
        raise InvalidInputError(
            f"{sorted(unknown)} are no settings: use {sorted(Settings.__annotations__)}"
        )
    return settings
