"""The types that msgspec leaves to us: paths, and pydantic models where an application has them."""

import re
from pathlib import Path, PurePath
from typing import Any, Protocol, TypeGuard, cast

import msgspec


class PydanticModel(Protocol):
    """What is asked of a pydantic model; pydantic is never imported for it."""

    @classmethod
    def model_json_schema(cls, *, ref_template: str) -> dict[str, Any]:  # Any: free JSON
        """Its JSON Schema."""
        ...

    @classmethod
    def model_validate(cls, value: object) -> object:
        """An instance made of a JSON value."""
        ...


def is_pydantic(kind: object) -> TypeGuard[type[PydanticModel]]:
    """Whether a class is a pydantic model."""
    return (
        isinstance(kind, type)
        and hasattr(kind, "model_json_schema")
        and hasattr(kind, "model_validate")
    )


class Customs:
    """Schemas and decoding of custom types, with the definitions that their schemas use."""

    def __init__(self) -> None:
        self.definitions: dict[str, dict[str, Any]] = {}

    def schema(self, kind: type) -> dict[str, Any]:
        """The JSON Schema of a custom type, for msgspec's `schema_hook`."""
        if is_pydantic(kind):
            return self._of_model(kind)
        if issubclass(kind, PurePath):
            return {"type": "string", "format": "path"}
        # msgspec's word from a hook for "I don't know this type either"; it becomes its TypeError
        raise NotImplementedError(f"JSON Schema has no {kind.__name__}")

    def _of_model(self, model: type[PydanticModel]) -> dict[str, Any]:
        prefix = re.sub(r"\W+", "_", f"{model.__module__}.{model.__qualname__}") + "_"
        schema = dict(model.model_json_schema(ref_template=f"#/$defs/{prefix}{{model}}"))
        own = schema.pop("$defs", {})
        self.definitions.update({prefix + name: part for name, part in own.items()})
        return schema

    @staticmethod
    def decode(kind: type, value: Any) -> Any:  # msgspec's own signature of a `dec_hook`
        """A value of a custom type, for msgspec's `dec_hook`."""
        if is_pydantic(kind):
            return kind.model_validate(value)
        if not isinstance(value, str):
            raise TypeError("Expected `str`")
        if "\0" in value:
            raise ValueError("Expected a path without NUL characters")
        return Path(value) if kind is PurePath else cast("type[PurePath]", kind)(value)

    @staticmethod
    def written(value: object) -> object:
        """A default as JSON; UNSET where it has no JSON form, so that none is shown."""
        try:
            text = msgspec.json.encode(value, enc_hook=_default_text)
        except Exception:  # whatever the default's own code raises
            return msgspec.UNSET
        return msgspec.json.decode(text)


def _default_text(value: object) -> object:
    if isinstance(value, PurePath):
        return str(value)
    if is_pydantic(type(value)):
        return cast("Any", value).model_dump(mode="json")  # Any: pydantic isn't imported
    # as above; such a default isn't shown
    raise NotImplementedError(f"JSON has no {type(value).__name__}")
