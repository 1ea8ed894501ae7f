"""Tools: functions that a model may call.

`@tool` reads name, description and parameters from a function; `Tool.from_schema` takes them as
they are. What happens between a model's call and its recorded result is in `call` and `pool`.
"""

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, overload

import attrs
import msgspec

from trioloop.errors import InvalidInputError, ToolSchemaError
from trioloop.events import ToolDeclaration
from trioloop.ports import Effects, Mode
from trioloop.schema import Arguments, describe
from trioloop.tools.context import ToolContext

Function: TypeAlias = Callable[..., Any]  # Any: a body returns what it likes
ModeChoice: TypeAlias = Mode | Callable[[dict[str, Any]], object]  # object: it may be wrong
OnCancel: TypeAlias = Literal["now", "finish"]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_RESULT_BYTES_LEAST = 256  # room for the words that say that something was left out


@attrs.frozen(eq=False, kw_only=True)
class Tool:
    """A function that a model may call.

    Attributes:
        name: what the model calls it.
        description: what the model is told of it.
        declaration: what a request declares of it.
        function: the body; called with keyword arguments.
        is_async: the body is awaited; else it runs in a worker thread.
        context_parameter: the parameter that is given the `ToolContext`; None: there is none.
        effects: whether it may be run again, and whether it waits for the durable gate (D2).
        timeout_s: seconds that the body may take; None: no limit.
        on_cancel: `now` cancels the body; `finish` lets it go on for `grace_s`.
        result_bytes_max: encoded size of a result; None: the limit of the runtime.
    """

    name: str
    description: str
    declaration: ToolDeclaration
    function: Function
    is_async: bool
    context_parameter: str | None
    effects: Effects
    timeout_s: float | None
    on_cancel: OnCancel
    result_bytes_max: int | None
    _mode: ModeChoice = attrs.field(alias="mode")
    _arguments: Arguments = attrs.field(alias="arguments", repr=False)

    def decode(self, raw: str) -> dict[str, object]:
        """The arguments of a call, by name and of the annotated types, defaults filled in.

        Args:
            raw: the text that a model wrote; empty means `{}`.

        Raises:
            ArgumentsError: with a line for each fault.
        """
        return self._arguments.decode(raw)

    def mode_of(self, arguments: dict[str, object]) -> Mode:
        """Whether a call with these decoded arguments may overlap others; barrier on any doubt."""
        if not callable(self._mode):
            return self._mode
        try:
            answer = self._mode(dict(arguments))
        except Exception:  # a mode function's fault must not let two calls race (tools.md 1)
            return "barrier"
        if inspect.iscoroutine(answer):
            answer.close()
        return "concurrent" if isinstance(answer, str) and answer == "concurrent" else "barrier"

    def run(self, arguments: Mapping[str, object], context: ToolContext | None = None) -> Any:
        """Call the body with decoded arguments; an async one returns its coroutine."""
        if self.context_parameter is None:
            return self.function(**arguments)
        return self.function(**arguments, **{self.context_parameter: context})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # Any: as the function itself
        """Call the function, as if it weren't decorated."""
        return self.function(*args, **kwargs)

    @classmethod
    def from_schema(
        cls,
        name: str,
        description: str,
        parameters: Mapping[str, Any],  # Any: a JSON Schema document is free JSON
        function: Function,
        *,
        effects: Effects = "once",
        mode: ModeChoice | None = None,
        timeout_s: float | None = None,
        on_cancel: OnCancel = "now",
        result_bytes_max: int | None = None,
    ) -> "Tool":
        """A tool whose arguments only a JSON Schema describes, such as one of an MCP server.

        Args:
            name: what the model calls it.
            description: what the model is told of it.
            parameters: the JSON Schema of an object.
            function: called with the members of that object as keyword arguments; plain JSON.
            effects: as for `tool`, as are the rest.

        Raises:
            ToolSchemaError: the name or the schema can't be declared to a model.
        """
        schema = _checked_schema(parameters, name)
        return _made(
            function,
            name=name,
            description=description,
            schema=schema,
            arguments=Arguments.of_schema(schema),
            context_parameter=_context_parameter(function, schema),
            options=_Options(effects, mode, timeout_s, on_cancel, result_bytes_max),
        )


@attrs.frozen
class _Options:
    """What an application decides about a tool, checked where it is given."""

    effects: Effects
    mode: ModeChoice | None
    timeout_s: float | None
    on_cancel: OnCancel
    result_bytes_max: int | None

    def __attrs_post_init__(self) -> None:
        _one_of("effects", self.effects, ("read-only", "idempotent", "once"))
        _one_of("on_cancel", self.on_cancel, ("now", "finish"))
        if not callable(self.mode):
            _one_of("mode", self.mode, (None, "concurrent", "barrier"))
        if self.timeout_s is not None and not self.timeout_s > 0:
            raise InvalidInputError(f"timeout_s must be greater than 0, not {self.timeout_s!r}")
        least = _RESULT_BYTES_LEAST
        if self.result_bytes_max is not None and self.result_bytes_max < least:
            raise InvalidInputError(
                f"result_bytes_max must be at least {least}, not {self.result_bytes_max!r}"
            )

    @property
    def chosen_mode(self) -> ModeChoice:
        """The mode given, or the one that the effects ask for."""
        return self.mode or ("concurrent" if self.effects == "read-only" else "barrier")


def _one_of(what: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        raise InvalidInputError(f"{what} must be one of {allowed}, not {value!r}")


@overload
def tool(function: Function, /) -> Tool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    effects: Effects = "once",
    mode: ModeChoice | None = None,
    timeout_s: float | None = None,
    on_cancel: OnCancel = "now",
    result_bytes_max: int | None = None,
) -> Callable[[Function], Tool]: ...


def tool(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    effects: Effects = "once",
    mode: ModeChoice | None = None,
    timeout_s: float | None = None,
    on_cancel: OnCancel = "now",
    result_bytes_max: int | None = None,
) -> Tool | Callable[[Function], Tool]:
    """Make a tool of a function, with or without options: `@tool` or `@tool(...)`.

    The JSON Schema comes from the signature, descriptions from the docstring (Google or NumPy
    style) or `Annotated`. A parameter of type `ToolContext` is given, not declared. A plain `def`
    runs in a worker thread.

    Args:
        function: the body.
        name: what the model calls it; the function's name by default.
        description: what the model is told of it; the docstring by default.
        effects: `read-only`, `idempotent` (may be run again) or `once`.
        mode: `concurrent`, `barrier`, or a function of the decoded arguments that gives one of
            them. By default a read-only tool is concurrent and any other a barrier.
        timeout_s: seconds that the body may take.
        on_cancel: `now`, or `finish` to let the body go on for `grace_s` after a cancel.
        result_bytes_max: encoded size of a result, at least 256; head and tail are kept beyond it.

    Raises:
        ToolSchemaError: the function can't be declared to a model; the error says why.
        InvalidInputError: an option is none of those.
    """
    options = _Options(effects, mode, timeout_s, on_cancel, result_bytes_max)

    def make(body: Function) -> Tool:
        called = name if name is not None else _name_of(body)
        _check_name(called)
        signature = describe(body, name=called, given=ToolContext)
        return _made(
            body,
            name=called,
            description=signature.description if description is None else description,
            schema=signature.schema,
            arguments=signature.arguments,
            context_parameter=signature.given,
            options=options,
        )

    return make if function is None else make(function)


def _made(
    function: Function,
    *,
    name: str,
    description: str,
    schema: Mapping[str, Any],  # Any: a JSON Schema document is free JSON
    arguments: Arguments,
    context_parameter: str | None,
    options: _Options,
) -> Tool:
    _check_name(name)
    parameters = msgspec.Raw(msgspec.json.encode(schema))
    return Tool(
        name=name,
        description=description,
        declaration=ToolDeclaration(name, description, parameters),
        function=function,
        is_async=_is_async(function, name),
        context_parameter=context_parameter,
        effects=options.effects,
        timeout_s=options.timeout_s,
        on_cancel=options.on_cancel,
        result_bytes_max=options.result_bytes_max,
        mode=options.chosen_mode,
        arguments=arguments,
    )


def _check_name(name: str) -> None:
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise ToolSchemaError(
            f"{name!r} can't name a tool: use 1 to 64 letters, digits, '_' and '-', "
            "as in @tool(name='search')"
        )


def _name_of(function: Function) -> str:
    if not callable(function):
        raise ToolSchemaError(f"{function!r} can't be a tool: decorate a function")
    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    return getattr(inner, "__name__", type(inner).__name__)


def _is_async(function: Function, name: str) -> bool:
    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    if not inspect.isroutine(inner) and not inspect.isclass(inner):
        inner = type(inner).__call__
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise ToolSchemaError(f"the tool {name!r} yields: return one result, such as a list")
    return inspect.iscoroutinefunction(inner)


def _checked_schema(parameters: Mapping[str, Any], name: str) -> dict[str, Any]:
    schema = {"type": "object", **parameters} if isinstance(parameters, Mapping) else parameters
    if not isinstance(schema, dict) or schema["type"] != "object":
        raise ToolSchemaError(
            f"the parameters of the tool {name!r} must be the JSON Schema of an object, "
            f"not {parameters!r}"
        )
    try:
        copy: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(schema))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise ToolSchemaError(f"the schema of the tool {name!r} isn't JSON: {error}") from None
    return copy


def _context_parameter(function: Function, schema: Mapping[str, Any]) -> str | None:
    """The parameter of a body that is annotated `ToolContext`; a readable signature isn't asked."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    for parameter in parameters:
        kind = parameter.annotation
        text = kind if isinstance(kind, str) else ""
        declared = parameter.name in schema.get("properties", {})
        if not declared and (kind is ToolContext or text.rpartition(".")[2] == "ToolContext"):
            return parameter.name
    return None
