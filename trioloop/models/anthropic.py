"""The Messages API: Anthropic's own, and the servers that imitate it."""

import os
from collections.abc import Mapping
from typing import Literal, Unpack

from trioloop.log.rebuild import Request
from trioloop.models.address import checked_host
from trioloop.models.answer_reader import AnswerReader, Reading
from trioloop.models.anthropic_request import AnthropicEncoder
from trioloop.models.anthropic_stream import AnthropicReader
from trioloop.models.deadlines import ConnectionLimits, Deadlines
from trioloop.models.http_model import HttpModel, Settings
from trioloop.models.request_body import RequestBody
from trioloop.models.services import SERVICES, Service, key_of, provider_at, service_at
from trioloop.models.transport import HttpTransport, Transport
from trioloop.ports import Capabilities, RetryPolicy

VERSION = "2023-06-01"
MAX_TOKENS = 32_000  # the API wants a number; this is what its current models can all write


class Anthropic(HttpModel):
    """A model behind a Messages API.

    Args:
        model: its name there.
        base_url: the server's address, without `/v1`; None: Anthropic's.
        api_key: None: ANTHROPIC_API_KEY, for Anthropic's own server; others are sent none.
        auth_token: sent as a bearer token, where a gateway wants that in place of a key; None:
            ANTHROPIC_AUTH_TOKEN, for Anthropic's own server and where there is no key.
        provider: the service's name in the log; None: the known service's, else the host's.
        context_window: tokens of prompt and answer, where you know it.
        images: the model can be shown images.
        system_update: how a changed section reaches the model (E1); not every model takes
            `in-history`.
        cache_ttl: how long the server is to keep the prefix of a request, so that the next one of
            the conversation costs less: `5m`, `1h`, or "" for not at all; None: `5m` at
            Anthropic's own server, else not at all.
        headers: further headers of each request, such as `anthropic-beta`.
        deadlines: how long the server may take.
        limits: what its connections may use.
        retry_policy: how its failures are to be retried.
        http: an HTTP transport to use instead of the network, for tests.
        settings: defaults for what a request leaves open, such as `max_tokens=8_000`. Thinking is
            asked for with `extra={"thinking": {...}}`; `reasoning_effort` says how hard to try.

    Raises:
        InvalidInputError: the address, a header or a setting can't be used, or the key is missing.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        auth_token: str | None = None,
        provider: str | None = None,
        context_window: int | None = None,
        images: bool = True,
        system_update: Literal["replace", "in-history"] = "replace",
        cache_ttl: Literal["5m", "1h", ""] | None = None,
        headers: Mapping[str, str] | None = None,
        deadlines: Deadlines = Deadlines(),  # noqa: B008 - frozen
        limits: ConnectionLimits = ConnectionLimits(),  # noqa: B008 - frozen
        retry_policy: RetryPolicy = RetryPolicy(),  # noqa: B008 - frozen
        http: HttpTransport | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        base_url = (base_url or SERVICES["anthropic"].base_url).rstrip("/").removesuffix("/v1")
        checked_host(base_url)
        service = service_at(base_url, "messages")
        auth_token = auth_token or (None if api_key else _token_of(service))
        key = api_key or (None if auth_token else key_of(service))
        super().__init__(
            model,
            provider=provider or provider_at(base_url, service),
            capabilities=Capabilities(context_window, images, system_update),
            retry_policy=retry_policy,
            transport=Transport(
                base_url,
                headers={
                    "anthropic-version": VERSION,
                    **_credentials(key, auth_token),
                    **(headers or {}),
                },
                deadlines=deadlines,
                limits=limits,
                http=http,
            ),
            secrets=(key, auth_token, *(headers or {}).values()),
            settings={"max_tokens": MAX_TOKENS, **settings},
        )
        self._encoder = AnthropicEncoder(
            self._replay_key,
            images=images,
            system_in_history=system_update == "in-history",
            cache_ttl=("5m" if service else "") if cache_ttl is None else cache_ttl,
        )

    @property
    def _path(self) -> str:
        return "/v1/messages"

    @property
    def _replay_key(self) -> str:
        return f"{self.provider}/messages"

    def _body(self, request: Request) -> RequestBody:
        return self._encoder.body(request)

    def _reader(self, reading: Reading) -> AnswerReader:
        return AnthropicReader(reading)


def _token_of(service: Service | None) -> str | None:
    """The bearer token of a known service, from the environment, where no key is there."""
    if service is None or service.variable_in(os.environ) != service.token_variable:
        return None
    return os.environ[service.token_variable]


def _credentials(key: str | None, token: str | None) -> dict[str, str]:
    headers = {"x-api-key": key} if key else {}
    return headers | ({"authorization": f"Bearer {token}"} if token else {})
