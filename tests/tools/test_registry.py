"""Which tools a step has: REG-03, REG-04, REG-10, REG-11, and the rules of tools.md section 2."""

from typing import Any, cast

import pytest
import trio

from trioloop.errors import (
    DuplicateToolError,
    HookMisuseError,
    InvalidInputError,
    ToolActivationError,
    ToolSetDisposedError,
)
from trioloop.handles import AgentHandle
from trioloop.hooks import CallRequest, Deny
from trioloop.ids import CallId
from trioloop.tools import Tool, ToolConditionContext, ToolRegistry, tool
from trioloop.tools.registry import ResolvedToolSet

AGENT = cast("AgentHandle", object())
CONTEXT = ToolConditionContext(agent=AGENT, provider="scripted", model="m")
REQUEST = CallRequest(AGENT, CallId("call_1_1_0"), "search", {}, "once")


def named(name: str) -> Tool:
    """A tool of that name."""

    def probe() -> None: ...

    return tool(name=name)(probe)


def names(tools: ResolvedToolSet) -> list[str]:
    """The declared names, in order."""
    return [declaration.name for declaration in tools.declarations]


async def test_scoped_tools_join_the_wider_ones_in_order() -> None:
    wide, scoped = ToolRegistry(), ToolRegistry()
    wide.register(named("a"))
    scoped.register(named("c"))
    wide.register(named("b"))
    assert names(await scoped.resolve(wide, CONTEXT)) == ["a", "b", "c"]
    assert names(await wide.resolve(None, CONTEXT)) == ["a", "b"]


@pytest.mark.parametrize("scoped_first", [True, False])
async def test_scoped_tool_shadows_a_wider_one_by_name(scoped_first: bool) -> None:
    wide, scoped = ToolRegistry(), ToolRegistry()
    mine, theirs = named("a"), named("a")
    for registry, made in [(scoped, mine), (wide, theirs)][:: 1 if scoped_first else -1]:
        registry.register(made)
    tools = await scoped.resolve(wide, CONTEXT)
    assert tools.lookup("a") is mine
    assert names(tools) == ["a"]
    assert (await wide.resolve(None, CONTEXT)).lookup("a") is theirs


async def test_function_is_registered_as_a_tool() -> None:
    async def search(query: str) -> None: ...

    registry = ToolRegistry()
    registry.register(search)
    assert [made.name for made in registry] == ["search"]
    assert len(registry) == 1


async def test_duplicate_is_refused_and_changes_nothing() -> None:
    registry = ToolRegistry()
    first = named("a")
    registry.register(first)
    with pytest.raises(DuplicateToolError, match="'a'"):
        registry.register(named("a"))
    assert list(registry) == [first]


async def test_handle_unregisters() -> None:
    registry = ToolRegistry()
    with registry.register(named("a")) as handle:
        assert names(await registry.resolve(None, CONTEXT)) == ["a"]
    assert names(await registry.resolve(None, CONTEXT)) == []
    registry.register(named("a"))
    handle.close()
    assert len(registry) == 1


async def test_condition_is_asked_once_for_each_step() -> None:
    asked: list[ToolConditionContext] = []
    registry = ToolRegistry()

    def is_asked(context: ToolConditionContext) -> bool:
        asked.append(context)
        return len(asked) == 1

    async def never(context: ToolConditionContext) -> bool:
        await trio.lowlevel.checkpoint()
        return False

    registry.register(named("a"), when=is_asked)
    registry.register(named("b"), when=never)
    tools = await registry.resolve(None, CONTEXT)
    assert names(tools) == ["a"]
    assert tools.lookup("a") is not None
    assert tools.lookup("b") is None
    assert asked == [CONTEXT]
    assert names(await registry.resolve(None, CONTEXT)) == []


async def test_tool_whose_condition_is_false_still_shadows() -> None:
    wide, scoped = ToolRegistry(), ToolRegistry()
    wide.register(named("write"))
    scoped.register(named("write"), when=lambda context: False)
    assert (await scoped.resolve(wide, CONTEXT)).lookup("write") is None


async def test_failing_condition_names_its_tool() -> None:
    registry = ToolRegistry()
    registry.register(named("a"), when=lambda context: 1 / 0 > 1)
    with pytest.raises(ToolActivationError, match=r"'a'.*ZeroDivisionError") as raised:
        await registry.resolve(None, CONTEXT)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert raised.value.code == "TOOL_ACTIVATION_FAILED"


@pytest.mark.parametrize("answer", [None, 1, "yes"])
async def test_condition_must_give_a_bool(answer: Any) -> None:
    registry = ToolRegistry()
    registry.register(named("a"), when=lambda context: answer)
    with pytest.raises(ToolActivationError, match="True or False"):
        await registry.resolve(None, CONTEXT)


async def test_cancel_passes_through_a_condition(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def wait(context: ToolConditionContext) -> bool:
        await trio.sleep_forever()
        return True

    registry = ToolRegistry()
    registry.register(named("a"), when=wait)
    with trio.move_on_after(1) as scope:
        await registry.resolve(None, CONTEXT)
    assert scope.cancelled_caught


def test_condition_must_be_callable() -> None:
    with pytest.raises(InvalidInputError, match="condition"):
        ToolRegistry().register(named("a"), when=True)  # type: ignore[arg-type]


async def test_registration_removed_during_the_step_is_gone_at_once() -> None:
    registry = ToolRegistry()
    handle = registry.register(named("a"))
    registry.register(named("b"))
    tools = await registry.resolve(None, CONTEXT)
    handle.close()
    assert tools.lookup("a") is None
    assert tools.names == ("b",)
    assert names(tools) == ["a", "b"], "what was declared stays declared"
    registry.register(named("a"))
    assert tools.lookup("a") is None, "it was replaced: that is another tool"
    assert (await registry.resolve(None, CONTEXT)).lookup("a") is not None


async def test_registration_added_during_the_step_waits_for_the_next() -> None:
    registry = ToolRegistry()
    tools = await registry.resolve(None, CONTEXT)
    registry.register(named("a"))
    assert tools.lookup("a") is None


async def test_near_names_are_offered() -> None:
    registry = ToolRegistry()
    for name in ("read_file", "list_files", "Search"):
        registry.register(named(name))
    tools = await registry.resolve(None, CONTEXT)
    assert tools.near("readfile")[0] == "read_file"
    assert tools.near("SEARCH") == ("Search",)
    assert tools.near("zzz") == ()


async def test_disposed_set_is_of_no_use() -> None:
    tools = await ToolRegistry().resolve(None, CONTEXT)
    tools.dispose()
    tools.dispose()
    for use in (
        lambda: tools.declarations,
        lambda: tools.names,
        lambda: tools.lookup("a"),
        lambda: tools.near("a"),
        lambda: tools.denied(REQUEST),
    ):
        with pytest.raises(ToolSetDisposedError):
            use()


# Guards


async def test_first_denial_counts_and_wider_guards_are_asked_first() -> None:
    wide, scoped = ToolRegistry(), ToolRegistry()
    asked: list[str] = []

    def mine(request: CallRequest) -> Deny | None:
        asked.append("mine")
        return Deny("mine says no")

    def theirs(request: CallRequest) -> Deny | None:
        asked.append("theirs")
        return None

    scoped.guard(mine)
    handle = wide.guard(theirs)
    tools = await scoped.resolve(wide, CONTEXT)
    assert tools.denied(REQUEST) == Deny("mine says no")
    assert asked == ["theirs", "mine"]
    handle.close()
    handle.close()
    tools.denied(REQUEST)
    assert asked == ["theirs", "mine", "mine"]


async def test_guard_registered_by_a_guard_is_asked_in_the_same_pass() -> None:
    registry = ToolRegistry()

    def registers(request: CallRequest) -> None:
        registry.guard(lambda request: Deny("late"))

    registry.guard(registers)
    tools = await registry.resolve(None, CONTEXT)
    assert tools.denied(REQUEST) == Deny("late")


async def test_guard_may_only_deny() -> None:
    registry = ToolRegistry()
    registry.guard(lambda request: True)  # type: ignore[arg-type,return-value]
    tools = await registry.resolve(None, CONTEXT)
    with pytest.raises(HookMisuseError, match="return Deny"):
        tools.denied(REQUEST)


def test_guard_must_be_synchronous() -> None:
    async def slow(request: CallRequest) -> None: ...

    for guard in (slow, "guard"):
        with pytest.raises(InvalidInputError, match="plain function"):
            ToolRegistry().guard(guard)  # type: ignore[arg-type]


async def test_guard_that_gives_a_coroutine_is_refused() -> None:
    async def slow() -> None: ...

    registry = ToolRegistry()
    registry.guard(lambda request: slow())  # type: ignore[arg-type,return-value]
    tools = await registry.resolve(None, CONTEXT)
    with pytest.raises(HookMisuseError):
        tools.denied(REQUEST)
