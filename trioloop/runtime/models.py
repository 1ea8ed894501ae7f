"""The models that a runtime was given, by provider and name."""

from collections.abc import Iterable, Mapping

from trioloop.codec import strict_copy
from trioloop.errors import EventEncodingError, InvalidInputError
from trioloop.events import CallConfig, RequestHeaderLogged
from trioloop.ports import Model

ModelSource = Model | str


def loaded(source: ModelSource | None) -> Model | None:
    """A model, looked up where it is given by name, such as `openai:gpt-5-mini`.

    Raises:
        InvalidInputError: the name says nothing to us, or its key is missing.
    """
    if not isinstance(source, str):
        return source
    from trioloop.models import from_name  # here, so that a runtime of its own model needs no httpx

    return from_name(source)


def table(models: Iterable[Model]) -> Mapping[tuple[str, str], Model]:
    """Models by provider and name.

    Raises:
        InvalidInputError: one of them is no model.
    """
    found: dict[tuple[str, str], Model] = {}
    for model in models:
        if not callable(getattr(model, "prepare", None)):
            raise InvalidInputError(
                f"{model!r} is no model: give one of trioloop.models, or its name"
            )
        found[model.provider, model.name] = model
    return found


def checked_config(config: CallConfig | None) -> CallConfig | None:
    """Settings as the log will hold them: a copy, so that later changes don't reach it.

    Raises:
        InvalidInputError: they are no `CallConfig`, or `extra` holds what JSON can't.
    """
    if config is None:
        return None
    if not isinstance(config, CallConfig):
        raise InvalidInputError(f"config= must be a CallConfig, not {config!r}")
    try:
        header = strict_copy(RequestHeaderLogged(config, (), "initial"))
    except EventEncodingError as error:
        raise InvalidInputError(f"config= can't be logged: {error}") from error
    assert isinstance(header, RequestHeaderLogged)  # a copy of the same class
    return header.config


def default_config(model: Model | None) -> CallConfig | None:
    """The settings that name a model and leave the rest to it."""
    return None if model is None else CallConfig(provider=model.provider, model=model.name)
