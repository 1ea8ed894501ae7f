"""Making tools of functions and of JSON Schemas."""

import functools
import json
from collections.abc import Callable
from typing import Any

import pytest

import trioloop.tools.context
from trioloop.errors import ArgumentsError, InvalidInputError, ToolSchemaError
from trioloop.tools import Tool, ToolContext, tool


async def search(query: str, limit: int = 10) -> list[str]:
    """Search the notes.

    Args:
        query: what to look for.
    """
    return [query] * limit


def test_function_gives_name_description_and_parameters() -> None:
    made = tool(search)
    assert made.name == "search"
    assert made.description == "Search the notes."
    assert made.declaration.name == "search"
    assert made.declaration.description == "Search the notes."
    assert json.loads(bytes(made.declaration.parameters)) == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "what to look for."},
            "limit": {"type": "integer", "default": 10},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


def test_defaults_of_options() -> None:
    made = tool(search)
    assert (made.effects, made.timeout_s, made.on_cancel, made.result_bytes_max) == (
        "once",
        None,
        "now",
        None,
    )


def test_options_are_kept() -> None:
    made = tool(
        name="find",
        description="Finds.",
        effects="idempotent",
        timeout_s=2,
        on_cancel="finish",
        result_bytes_max=1_000,
    )(search)
    assert (made.name, made.description, made.effects) == ("find", "Finds.", "idempotent")
    assert (made.timeout_s, made.on_cancel, made.result_bytes_max) == (2, "finish", 1_000)


async def test_tool_is_still_the_function() -> None:
    assert await tool(search)("a", limit=2) == ["a", "a"]


async def test_async_functions_are_awaited_and_others_are_not() -> None:
    class Service:
        async def __call__(self, a: int) -> int:
            return a

    def plain(a: int) -> int:
        return a

    assert tool(search).is_async
    assert tool(name="partial")(functools.partial(search, limit=1)).is_async
    assert tool(name="service")(Service()).is_async
    assert not tool(plain).is_async
    assert await tool(name="service")(Service()).run({"a": 1}) == 1


def test_what_a_partial_has_bound_is_not_declared() -> None:
    made = tool(name="find")(functools.partial(search, limit=3))
    assert made.decode('{"query": "a"}') == {"query": "a"}
    with pytest.raises(ArgumentsError, match=r"\$\.limit"):
        made.decode('{"query": "a", "limit": 1}')


@pytest.mark.parametrize("kind", [ToolContext, "ToolContext", ToolContext | None])
def test_context_is_given_and_not_declared(kind: Any) -> None:
    def probe(a: int, context: Any) -> tuple[int, Any]:
        return a, context

    probe.__annotations__["context"] = kind
    made = tool(probe)
    context = object()
    assert made.context_parameter == "context"
    assert made.decode('{"a": 1}') == {"a": 1}
    assert made.run({"a": 1}, context) == (1, context)  # type: ignore[arg-type]
    with pytest.raises(ArgumentsError, match=r"\$\.context"):
        made.decode('{"a": 1, "context": {}}')


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "<lambda>", "naïve", "a.b"])
def test_name_that_providers_refuse_is_refused(name: str) -> None:
    with pytest.raises(ToolSchemaError, match="can't name a tool"):
        tool(name=name)(search)


def test_generators_are_refused() -> None:
    def many(a: int) -> Any:
        yield a

    async def more(a: int) -> Any:
        yield a

    for function in (many, more):
        with pytest.raises(ToolSchemaError, match="yields"):
            tool(function)


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(ToolSchemaError, match="decorate a function"):
        tool("search")  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "options",
    [
        {"effects": "none"},
        {"mode": "parallel"},
        {"on_cancel": "later"},
        {"timeout_s": 0},
        {"timeout_s": float("nan")},
        {"result_bytes_max": 255},
    ],
)
def test_wrong_option_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(options))):
        tool(**options)


SCHEMA = {
    "properties": {"user-id": {"type": "integer"}, "tags": {"type": "array"}},
    "required": ["user-id"],
}


def test_tool_from_a_schema_declares_and_checks_it() -> None:
    made = Tool.from_schema("remote", "Far away.", SCHEMA, dict, effects="read-only")
    assert json.loads(bytes(made.declaration.parameters)) == {"type": "object", **SCHEMA}
    assert made.run(made.decode('{"user-id": 3, "more": 1}')) == {"user-id": 3, "more": 1}
    with pytest.raises(ArgumentsError) as raised:
        made.decode('{"tags": 1}')
    assert raised.value.faults == (
        "$.user-id: expected integer, got nothing",
        "$.tags: expected array, got integer 1",
    )


def test_tool_from_a_schema_may_be_given_its_context() -> None:
    def call(context: ToolContext, **arguments: object) -> object:
        return context, arguments

    made = Tool.from_schema("remote", "", {}, call)
    assert made.context_parameter == "context"


def test_later_changes_of_a_schema_change_nothing() -> None:
    schema: dict[str, Any] = {"properties": {"a": {"type": "integer"}}}
    made = Tool.from_schema("remote", "", schema, dict)
    schema["properties"]["a"]["type"] = "string"
    assert made.decode('{"a": 1}') == {"a": 1}


@pytest.mark.parametrize("schema", [{"type": "array"}, [], None, {"default": object()}])
def test_schema_of_no_object_is_refused(schema: Any) -> None:
    with pytest.raises(ToolSchemaError, match="'remote'"):
        Tool.from_schema("remote", "", schema, dict)


# Modes: REG-01, REG-02


def choosing(answer: Callable[[dict[str, Any]], object]) -> Tool:
    """A tool with a mode function."""

    def probe(refresh: bool = False) -> None: ...

    return tool(mode=answer)(probe)


def test_mode_follows_effects_unless_given() -> None:
    assert tool(effects="read-only")(search).mode_of({}) == "concurrent"
    assert tool(effects="idempotent")(search).mode_of({}) == "barrier"
    assert tool(search).mode_of({}) == "barrier"
    assert tool(mode="concurrent")(search).mode_of({}) == "concurrent"
    assert tool(effects="read-only", mode="barrier")(search).mode_of({}) == "barrier"


def test_mode_function_sees_arguments_with_defaults() -> None:
    made = choosing(lambda args: "barrier" if args["refresh"] else "concurrent")
    assert made.mode_of(made.decode("")) == "concurrent"
    assert made.mode_of(made.decode('{"refresh": true}')) == "barrier"


@pytest.mark.parametrize("answer", [None, True, 1, "Concurrent", "", "parallel", ["concurrent"]])
def test_any_other_answer_means_barrier(answer: object) -> None:
    assert choosing(lambda _: answer).mode_of({}) == "barrier"


def test_mode_function_that_raises_means_barrier() -> None:
    def fail(arguments: dict[str, Any]) -> str:
        return arguments["missing"]  # type: ignore[no-any-return]

    assert choosing(fail).mode_of({}) == "barrier"


def test_async_mode_function_means_barrier() -> None:
    async def late(arguments: dict[str, Any]) -> str:
        return "concurrent"

    assert choosing(late).mode_of({}) == "barrier"


def test_mode_function_cannot_change_the_arguments() -> None:
    arguments: dict[str, object] = {"refresh": False}
    choosing(lambda args: args.clear()).mode_of(arguments)
    assert arguments == {"refresh": False}


def test_tool_and_context_come_from_the_public_package() -> None:
    assert ToolContext is trioloop.tools.context.ToolContext
