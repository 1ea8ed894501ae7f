"""The Chat Completions API: OpenAI's own, and the many servers that imitate it."""

from collections.abc import Mapping
from typing import Literal, Unpack

from trioloop.log.rebuild import Request
from trioloop.models.address import checked_host
from trioloop.models.answer_reader import AnswerReader, Reading
from trioloop.models.chat_request import ChatEncoder
from trioloop.models.chat_stream import ChatReader
from trioloop.models.deadlines import ConnectionLimits, Deadlines
from trioloop.models.http_model import HttpModel, Settings
from trioloop.models.request_body import RequestBody
from trioloop.models.services import SERVICES, Dialect, key_of, provider_at, service_at
from trioloop.models.transport import HttpTransport, Transport
from trioloop.ports import Capabilities, RetryPolicy


class OpenAIChat(HttpModel):
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
        service = service_at(base_url, "chat")
        key = api_key or key_of(service)
        dialect = dialect or (service.dialect if service else Dialect())
        images = dialect.images if images is None else images
        provider = provider or provider_at(base_url, service)
        authorization = {"authorization": f"Bearer {key}"} if key else {}
        super().__init__(
            model,
            provider=provider,
            capabilities=Capabilities(context_window, images, system_update),
            retry_policy=retry_policy,
            transport=Transport(
                base_url,
                headers={**authorization, **(headers or {})},
                deadlines=deadlines,
                limits=limits,
                http=http,
            ),
            secrets=(key, *(headers or {}).values()),
            settings=settings,
        )
        self._encoder = ChatEncoder(provider, dialect, images=images)

    @property
    def _path(self) -> str:
        return "/chat/completions"

    def _body(self, request: Request) -> RequestBody:
        return self._encoder.body(request)

    def _reader(self, reading: Reading) -> AnswerReader:
        return ChatReader(reading)
