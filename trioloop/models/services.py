"""The services that are known by name: where they are, which variable holds the key, their dialect.

A dialect is what a server of the Chat Completions API wants different from the others.
"""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import urlsplit

import attrs

from trioloop.errors import InvalidInputError
from trioloop.models.sent_calls import ANY_IDS, MISTRAL_IDS, SHORT_IDS, CallIds

if TYPE_CHECKING:
    from trioloop.ports import Model

Api: TypeAlias = Literal["chat", "responses", "messages"]
Replayed: TypeAlias = Literal["never", "with-calls"]


@attrs.frozen(kw_only=True)
class Dialect:
    """What a server wants, where servers differ.

    Attributes:
        max_tokens_name: the member that limits the output tokens.
        stream_usage: it is asked for usage by `stream_options`; some refuse that member.
        reasoning_replay: whether an answer's own `reasoning_content` goes back to it: `never`, or
            `with-calls`, where the answer asked for calls.
        prompt_cache_key: it is told which conversation a request is of, to find its cache.
        call_ids: the ids of calls that it takes.
        images: its models can be shown images.
    """

    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    stream_usage: bool = True
    reasoning_replay: Replayed = "never"
    prompt_cache_key: bool = False
    call_ids: CallIds = ANY_IDS
    images: bool = False


@attrs.frozen
class Service:
    """A service that is known by name.

    Attributes:
        name: what it is called in `from_name`.
        base_url: where its API's paths begin.
        dialect: what it wants, where it speaks the Chat Completions API.
        api: which of the three APIs it speaks.
        variables: how its environment variables begin.
        provider: its name in the log.
        token_variable: the environment variable that may hold a bearer token in place of a key;
            "": it takes keys only.
    """

    name: str
    base_url: str
    dialect: Dialect = Dialect()
    api: Api = attrs.field(default="chat", kw_only=True)
    variables: str = attrs.field(
        default=attrs.Factory(lambda service: service.name.upper(), takes_self=True), kw_only=True
    )
    provider: str = attrs.field(
        default=attrs.Factory(lambda service: service.name, takes_self=True), kw_only=True
    )
    token_variable: str = attrs.field(default="", kw_only=True)

    @property
    def host(self) -> str:
        """Where it is."""
        return urlsplit(self.base_url).hostname or ""

    @property
    def key_variable(self) -> str:
        """The environment variable that holds its key."""
        return f"{self.variables}_API_KEY"

    @property
    def base_url_variable(self) -> str:
        """The environment variable that names another address."""
        return f"{self.variables}_BASE_URL"

    def variable_in(self, environment: Mapping[str, str]) -> str | None:
        """The variable of an environment that holds a credential for it; None: none does."""
        variables = (self.key_variable, self.token_variable)
        return next((name for name in variables if environment.get(name)), None)


_THINKING = Dialect(reasoning_replay="with-calls")

SERVICES = {
    service.name: service
    for service in (
        Service(
            "openai",
            "https://api.openai.com/v1",
            Dialect(
                max_tokens_name="max_completion_tokens",
                prompt_cache_key=True,
                call_ids=SHORT_IDS,
                images=True,
            ),
        ),
        Service(
            "openai-responses",
            "https://api.openai.com/v1",
            api="responses",
            variables="OPENAI",
            provider="openai",
        ),
        Service(
            "anthropic",
            "https://api.anthropic.com",
            api="messages",
            token_variable="ANTHROPIC_AUTH_TOKEN",
        ),
        Service("cerebras", "https://api.cerebras.ai/v1"),
        Service("deepseek", "https://api.deepseek.com/v1", _THINKING),
        Service("groq", "https://api.groq.com/openai/v1"),
        Service(
            "mistral",
            "https://api.mistral.ai/v1",
            Dialect(stream_usage=False, call_ids=MISTRAL_IDS),
        ),
        Service("moonshot", "https://api.moonshot.ai/v1", _THINKING),
        Service("openrouter", "https://openrouter.ai/api/v1", Dialect(images=True)),
        Service(
            "qwen",
            "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
            _THINKING,
            variables="DASHSCOPE",
        ),
        Service("together", "https://api.together.xyz/v1"),
        Service("xai", "https://api.x.ai/v1", Dialect(images=True)),
        Service("zai", "https://api.z.ai/api/paas/v4", _THINKING),
    )
}


def service_at(base_url: str, api: Api) -> Service | None:
    """The known service at an address that speaks an API."""
    try:
        host = urlsplit(base_url).hostname
    except ValueError:
        return None  # it's no address, which whoever uses it will tell
    services = (service for service in SERVICES.values() if service.api == api)
    return next((service for service in services if service.host == host), None)


def provider_at(base_url: str, service: Service | None) -> str:
    """The name in the log of who answers at an address: the known service's, else the host."""
    return service.provider if service else urlsplit(base_url).hostname or ""


def key_of(service: Service | None) -> str | None:
    """The key of a known service, from the environment; other servers need none.

    Raises:
        InvalidInputError: its variable isn't set.
    """
    if service is None:
        return None
    key = os.environ.get(service.key_variable)
    if not key:
        raise InvalidInputError(
            f"{service.name} needs a key: set {service.key_variable}, or give api_key="
        )
    return key


def from_name(
    name: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> "Model":
    """The model of a name such as `openai:gpt-5-mini`, with keys from the environment.

    Args:
        name: `SERVICE:MODEL`, with a service of `SERVICES`; or `demonstration`.
        base_url: another server that speaks the service's API; None: the service's variable, such
            as OPENAI_BASE_URL, else the service's own.
        api_key: None: the service's variable, such as OPENAI_API_KEY, or what
            ANTHROPIC_AUTH_TOKEN holds. A server that isn't the service's own may need none.
        environment: where the variables are looked up.

    Raises:
        InvalidInputError: the name is unknown, or the key is missing.
    """
    from trioloop.models import Anthropic, DemonstrationModel, OpenAIChat, OpenAIResponses

    word, _, model = name.partition(":")
    if word == "demonstration":
        return DemonstrationModel()
    service = SERVICES.get(word)
    if service is None or not model:
        known = ", ".join(f"{known}:MODEL" for known in SERVICES)
        raise InvalidInputError(f"{name!r} names no model: use one of {known}, or demonstration")
    base_url = base_url or environment.get(service.base_url_variable) or service.base_url
    variable = service.variable_in(environment)
    if not (api_key or variable) and service_at(base_url, service.api) is not None:
        raise InvalidInputError(
            f"{name!r} needs a key: set {service.key_variable}, or {service.base_url_variable} "
            "for a server that needs none"
        )
    adapters: dict[Api, Callable[..., Model]] = {
        "chat": OpenAIChat,
        "responses": OpenAIResponses,
        "messages": Anthropic,
    }
    credential = api_key or (environment[variable] if variable else None)
    is_token = not api_key and variable == service.token_variable
    named = {"auth_token" if is_token else "api_key": credential}
    return adapters[service.api](model, base_url=base_url, **named)
