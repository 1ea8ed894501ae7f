"""Which model a command asks: named, found by a key in the environment, or the demonstration."""

from collections.abc import Mapping

import attrs

from trioloop.cli.exits import USAGE, CommandError
from trioloop.models import SERVICES, DemonstrationModel, from_name
from trioloop.ports import Model

_USUAL_MODELS = {
    "openai": "gpt-5-mini",
    "anthropic": "claude-haiku-4-5",
    "deepseek": "deepseek-chat",
    "mistral": "mistral-small-latest",
    "openrouter": "openrouter/auto",
}


@attrs.frozen
class ModelChoice:
    """A model, and what people are told of the choice; None where they made it themselves."""

    model: Model
    note: str | None = None
    is_demonstration: bool = False


def choose_model(
    name: str | None, base_url: str | None, environment: Mapping[str, str]
) -> ModelChoice:
    """The model that options and environment name.

    Raises:
        CommandError: the options don't fit together, or leave open which model is meant.
        InvalidInputError: the name names no model, or its key is missing.
    """
    if name is None:
        if base_url is not None:
            raise CommandError("--base-url needs --model: name the model at that address", USAGE)
        return _unnamed(environment)
    if base_url is not None and name.partition(":")[0] not in SERVICES:
        from trioloop.models import OpenAIChat  # here, so that the demonstration needs no httpx

        return ModelChoice(OpenAIChat(name, base_url=base_url))
    model = from_name(name, base_url=base_url, environment=environment)
    return ModelChoice(model, is_demonstration=isinstance(model, DemonstrationModel))


def _unnamed(environment: Mapping[str, str]) -> ModelChoice:
    found = [service for service in SERVICES.values() if service.variable_in(environment)]
    if not found:
        note = "no model named and no key found, so the embedded demonstration model answers"
        return ModelChoice(DemonstrationModel(), f"{note} (see --model)", is_demonstration=True)
    service = found[0]
    variable = service.variable_in(environment)
    usual = _USUAL_MODELS.get(service.name)
    if usual is None:
        raise CommandError(
            f"{variable} is set: name a model with --model {service.name}:MODEL, or "
            "try --model demonstration",
            USAGE,
        )
    name = f"{service.name}:{usual}"
    return ModelChoice(
        from_name(name, environment=environment), f"{variable} is set: asking {name}"
    )
