"""Reads a function's parameters: types, defaults, descriptions, and the one that is given.

Types are those that `msgspec` describes, `pathlib` paths, and pydantic models, which are known by
`model_json_schema` and `model_validate`; pydantic itself is never imported here.
"""

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Optional, Union, get_args, get_origin

import attrs
import msgspec

from trioloop.errors import ToolSchemaError
from trioloop.schema.arguments import Arguments, Field
from trioloop.schema.custom import Customs
from trioloop.schema.docstring import Described, described
from trioloop.schema.document import Document, object_schema


@attrs.frozen(kw_only=True)
class Signature:
    """What a function's signature comes to.

    Attributes:
        description: the function's, from its docstring.
        schema: the JSON Schema of its arguments.
        arguments: decodes the arguments that a model wrote.
        given: the parameter that the runtime gives and a model isn't shown.
    """

    description: str
    schema: Document
    arguments: Arguments
    given: str | None


def describe(function: Callable[..., object], *, name: str, given: type) -> Signature:
    """Read a function's signature and docstring.

    Args:
        function: what the arguments are for; it is called with keyword arguments.
        name: the tool's name, for errors.
        given: the type of the parameter that is given, not declared.

    Raises:
        ToolSchemaError: a parameter can't be declared to a model; the error names it.
    """
    source = _source(function)
    told = described(inspect.getdoc(source))
    fields: list[Field] = []
    context: str | None = None
    for parameter in _parameters(function, name):
        kind = _annotation(parameter, source, name, given)
        if _is_given(kind, given):
            context = parameter.name
        else:
            fields.append(_field(parameter, kind))
    customs = Customs()
    schema = _schema(fields, told, customs, name)
    arguments = Arguments.of_fields(name, fields, schema, customs.decode)
    return Signature(description=told.summary, schema=schema, arguments=arguments, given=context)


def _source(function: Callable[..., object]) -> Callable[..., object]:
    """The function that was written: behind partials, wrappers and callable objects."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    if inspect.isroutine(function):
        return function
    return type(function).__call__ if not inspect.isclass(function) else function.__init__


def _parameters(function: Callable[..., object], name: str) -> list[inspect.Parameter]:
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise ToolSchemaError(
            f"the tool {name!r} has no readable signature ({error}): use Tool.from_schema"
        ) from None
    bound = function.keywords if isinstance(function, functools.partial) else {}
    for index, parameter in enumerate(found):
        if index == 0 and parameter.name == "self" and parameter.annotation is parameter.empty:
            raise ToolSchemaError(
                f"the tool {name!r} is a method without its object: make the tool of the bound "
                "method, as in tool(service.search)"
            )
        if parameter.kind in _NOT_BY_NAME:
            raise ToolSchemaError(
                f"the parameter {str(parameter)!r} of the tool {name!r} can't be given by name: "
                "declare each parameter by a name of its own"
            )
    return [parameter for parameter in found if parameter.name not in bound]


_NOT_BY_NAME = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
)


def _annotation(
    parameter: inspect.Parameter, source: Callable[..., object], name: str, given: type
) -> object:
    """A parameter's type, with text annotations evaluated where the function was written."""
    if parameter.annotation is parameter.empty:
        return Any
    holder = types.SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    space = getattr(source, "__globals__", {})
    try:
        hints = typing.get_type_hints(holder, space, _enclosing(source), include_extras=True)
    except Exception as error:  # an annotation may hold any expression
        if str(parameter.annotation).rpartition(".")[2] == given.__name__:
            return given  # it was imported for type checkers alone
        raise ToolSchemaError(
            f"the type {parameter.annotation!r} of the parameter {parameter.name!r} of the tool "
            f"{name!r} can't be read ({error}): define or import it at the top of its module, "
            "not under TYPE_CHECKING or in a function"
        ) from None
    return hints[parameter.name]


def _enclosing(source: Callable[..., object]) -> dict[str, object]:
    """What a function sees of the functions around it."""
    names = getattr(getattr(source, "__code__", None), "co_freevars", ())
    cells = getattr(source, "__closure__", None) or ()
    seen: dict[str, object] = {}
    for free, cell in zip(names, cells, strict=True):
        try:
            seen[free] = cell.cell_contents
        except ValueError:  # it has no value yet
            continue
    return seen


def _is_given(kind: object, given: type) -> bool:
    return kind is given or (_is_union(kind) and given in get_args(kind))


def _is_union(kind: object) -> bool:
    return get_origin(kind) in (Union, types.UnionType)


def _field(parameter: inspect.Parameter, kind: object) -> Field:
    required = parameter.default is parameter.empty
    told, kind = _described_type(kind)
    if kind is object:
        kind = Any
    kind = _dated(kind)
    if parameter.default is None and not _takes_none(kind):
        kind = Optional[kind]  # noqa: UP045 - `kind` may be of a sort that has no `|`
    return Field(parameter.name, kind, required, None if required else parameter.default, told)


def _dated(kind: object) -> object:
    """A date with a time says so in its schema, also where it may be None."""
    if kind is datetime:
        return Annotated[datetime, msgspec.Meta(extra_json_schema={"format": "date-time"})]
    if _is_union(kind):
        return Union[tuple(_dated(part) for part in get_args(kind))]  # noqa: UP007 - made of parts
    return kind


def _described_type(kind: object) -> tuple[str, object]:
    """The description in `Annotated`, and the type without what only describes it."""
    if get_origin(kind) is not Annotated:
        return "", kind
    bare, *notes = get_args(kind)
    told = ""
    for note in notes:
        said = note if isinstance(note, str) else None
        said = said or getattr(note, "documentation", None) or getattr(note, "description", None)
        told = said if isinstance(said, str) else told
    metas = [note for note in notes if isinstance(note, msgspec.Meta)]
    return told, Annotated[(bare, *metas)] if metas else bare


def _takes_none(kind: object) -> bool:
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return kind in (Any, None, type(None)) or (_is_union(kind) and type(None) in get_args(kind))


def _schema(fields: Sequence[Field], told: Described, customs: Customs, name: str) -> Document:
    try:
        shapes, definitions = _components([field.kind for field in fields], customs)
    except Exception:  # whatever a type's own code raises; found again below, by parameter
        for field in fields:
            _raise_undeclarable(field, name)
        raise
    properties = {
        field.name: _property(field, dict(shape), told)
        for field, shape in zip(fields, shapes, strict=True)
    }
    required = [field.name for field in fields if field.required]
    return object_schema(properties, required, {**definitions, **customs.definitions})


def _components(
    kinds: Sequence[object], customs: Customs
) -> tuple[Sequence[Document], Mapping[str, Document]]:
    return msgspec.json.schema_components(kinds, schema_hook=customs.schema)


def _raise_undeclarable(field: Field, name: str) -> None:
    try:
        _components([field.kind], Customs())
    except Exception as error:  # whatever a type's own code raises becomes an error with a name
        why = " ".join(str(error).split())
        raise ToolSchemaError(
            f"the parameter {field.name!r} of the tool {name!r} can't be declared: "
            f"{_reason(why)}. {_advice(why)}"
        ) from error


def _reason(why: str) -> str:
    """What msgspec said, without its advice, which is for other uses."""
    if why.startswith("Generating JSON schema for custom types"):
        return why.partition("Meta(extra_json_schema=...)` ")[2] or why
    return why.rstrip(".")


def _advice(why: str) -> str:
    if "dataclass or attrs type" in why or "dict-like" in why:
        return (
            "Make the alternatives msgspec.Struct classes with tag=True, so that each value says "
            "which it is, or give each a parameter of its own"
        )
    if "Type unions may not contain" in why:
        return "Leave one of them in the union, or give each a parameter of its own"
    if "Enums must contain" in why:
        return "Give all its members text, or all whole numbers"
    return (
        "Use types with a JSON form: str, int, float, bool, list, dict, Literal, Enum, Path, "
        "datetime, dataclass, attrs, TypedDict, NamedTuple, msgspec.Struct or a pydantic model"
    )


def _property(field: Field, shape: Document, told: Described) -> Document:
    description = field.description or told.parameters.get(field.name, "")
    if description:
        shape["description"] = description
    if not field.required:
        default = Customs.written(field.default)
        if default is not msgspec.UNSET:
            shape["default"] = default
    return shape
