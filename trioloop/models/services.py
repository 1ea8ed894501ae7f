"""The services that are known by name: where they are, which variable holds the key, their dialect.

A dialect is what a server of the Chat Completions API wants different from the others.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import urlsplit

import attrs

from trioloop.errors import InvalidInputError

if TYPE_CHECKING:
    from trioloop.ports import Model

Replayed: TypeAlias = Literal["never", "with-calls"]


@attrs.frozen(kw_only=True)
class Dialect:
    """What a server wants, where servers differ.

    Attributes:
        max_tokens_name: the member that limits the output tokens.
        stream_usage: it is asked for usage by `stream_options`; some refuse that member.
        reasoning_replay: whether an answer's own `reasoning_content` goes back to it: `never`, or
            `with-calls`, where the answer asked for calls.
        images: its models can be shown images.
    """

    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    stream_usage: bool = True
    reasoning_replay: Replayed = "never"
    images: bool = False


@attrs.frozen
class Service:
    """A service that speaks the Chat Completions API. `NAME_API_KEY` holds its key."""

    name: str
    base_url: str
    dialect: Dialect = Dialect()

    @property
    def host(self) -> str:
        """Where it is."""
        return urlsplit(self.base_url).hostname or ""

    @property
    def key_variable(self) -> str:
        """The environment variable that holds its key."""
        return f"{self.name.upper()}_API_KEY"

    @property
    def base_url_variable(self) -> str:
        """The environment variable that names another address."""
        return f"{self.name.upper()}_BASE_URL"


_THINKING = Dialect(reasoning_replay="with-calls")

SERVICES = {
    service.name: service
    for service in (
        Service(
            "openai",
            "https://api.openai.com/v1",
            Dialect(max_tokens_name="max_completion_tokens", images=True),
        ),
        Service("deepseek", "https://api.deepseek.com/v1", _THINKING),
        Service("groq", "https://api.groq.com/openai/v1"),
        Service("mistral", "https://api.mistral.ai/v1", Dialect(stream_usage=False)),
        Service("moonshot", "https://api.moonshot.ai/v1", _THINKING),
        Service("openrouter", "https://openrouter.ai/api/v1", Dialect(images=True)),
        Service("xai", "https://api.x.ai/v1", Dialect(images=True)),
        Service("zai", "https://api.z.ai/api/paas/v4", _THINKING),
    )
}


def service_at(base_url: str) -> Service | None:
    """The known service at an address."""
    try:
        host = urlsplit(base_url).hostname
    except ValueError:
        return None  # it's no address, which whoever uses it will tell
    return next((service for service in SERVICES.values() if service.host == host), None)


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
        base_url: another server that speaks the service's API; None: `SERVICE_BASE_URL`, else the
            service's own.
        api_key: None: `SERVICE_API_KEY`. A server that isn't the service's own may need none.
        environment: where the variables are looked up.

    Raises:
        InvalidInputError: the name is unknown, or the key is missing.
    """
    from trioloop.models import DemonstrationModel, OpenAIChat  # loaded when a name is used

    word, _, model = name.partition(":")
    if word == "demonstration":
        return DemonstrationModel()
    service = SERVICES.get(word)
    if service is None or not model:
        known = ", ".join(f"{known}:MODEL" for known in SERVICES)
        raise InvalidInputError(f"{name!r} names no model: use one of {known}, or demonstration")
    base_url = base_url or environment.get(service.base_url_variable) or service.base_url
    api_key = api_key or environment.get(service.key_variable)
    if api_key is None and service_at(base_url) is not None:
        raise InvalidInputError(
            f"{name!r} needs a key: set {service.key_variable}, or {service.base_url_variable} "
            "for a server that needs none"
        )
    return OpenAIChat(model, base_url=base_url, api_key=api_key)
