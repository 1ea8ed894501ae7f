"""The Responses API: OpenAI's own, and the servers that imitate it."""

from collections.abc import Mapping
from typing import Literal, Unpack

from trioloop.log.rebuild import Request
from trioloop.models.address import checked_host
from trioloop.models.answer_reader import AnswerReader, Reading
from trioloop.models.deadlines import ConnectionLimits, Deadlines
from trioloop.models.http_model import HttpModel, Settings
from trioloop.models.request_body import RequestBody
from trioloop.models.responses_request import ResponsesEncoder
from trioloop.models.responses_stream import ResponsesReader
from trioloop.models.sent_calls import ANY_IDS, MIDDLE_IDS
from trioloop.models.services import SERVICES, key_of, provider_at, service_at
from trioloop.models.transport import HttpTransport, Transport
from trioloop.ports import Capabilities, RetryPolicy


class OpenAIResponses(HttpModel):
    """A model behind a Responses API. Nothing is stored there: each request holds the transcript.

    Args:
        model: its name there.
        base_url: where the API's paths begin; None: OpenAI's.
        api_key: None: OPENAI_API_KEY, for OpenAI's own server; others are sent none.
        provider: the service's name in the log; None: the known service's, else the host's.
        context_window: tokens of prompt and answer, where you know it.
        images: the model can be shown images.
        system_update: how a changed section reaches the model (E1).
        encrypted_reasoning: ask for the model's reasoning, encrypted, to send it back with the next
            request; None: at OpenAI's own server.
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
        context_window: int | None = None,
        images: bool = True,
        system_update: Literal["replace", "in-history"] = "replace",
        encrypted_reasoning: bool | None = None,
        headers: Mapping[str, str] | None = None,
        deadlines: Deadlines = Deadlines(),  # noqa: B008 - frozen
        limits: ConnectionLimits = ConnectionLimits(),  # noqa: B008 - frozen
        retry_policy: RetryPolicy = RetryPolicy(),  # noqa: B008 - frozen
        http: HttpTransport | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        base_url = base_url or SERVICES["openai-responses"].base_url
        checked_host(base_url)
        service = service_at(base_url, "responses")
        key = api_key or key_of(service)
        authorization = {"authorization": f"Bearer {key}"} if key else {}
        super().__init__(
            model,
            provider=provider or provider_at(base_url, service),
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
        own = service is not None
        self._encoder = ResponsesEncoder(
            self._replay_key,
            images=images,
            call_ids=MIDDLE_IDS if own else ANY_IDS,
            prompt_cache_key=own,
            encrypted_reasoning=own if encrypted_reasoning is None else encrypted_reasoning,
        )

    @property
    def _path(self) -> str:
        return "/responses"

    @property
    def _replay_key(self) -> str:
        return f"{self.provider}/responses"

    def _body(self, request: Request) -> RequestBody:
        return self._encoder.body(request)

    def _reader(self, reading: Reading) -> AnswerReader:
        return ResponsesReader(reading)
