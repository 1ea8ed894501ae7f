"""Which tools a step has: registrations, conditions, shadowing, guards.

A `ResolvedToolSet` is made once for each proposed step and governs its declarations, its calls and
its retries. Registering while a step runs changes the next step's set; removing takes effect at
once, for the calls of the step that haven't started.
"""

import difflib
import inspect
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeAlias

import attrs

from trioloop.errors import (
    DuplicateToolError,
    HookMisuseError,
    InvalidInputError,
    ToolActivationError,
    ToolSetDisposedError,
)
from trioloop.events import ToolDeclaration
from trioloop.handles import AgentHandle
from trioloop.hooks import CallRequest, Deny, Registration
from trioloop.tools.tool import Function, Tool, tool


@attrs.frozen
class ToolConditionContext:
    """What a tool's condition is asked about.

    Attributes:
        agent: whose step is proposed.
        provider: of the last request, else the agent's own.
        model: of the last request, else the agent's own.
    """

    agent: AgentHandle
    provider: str
    model: str


Condition: TypeAlias = Callable[[ToolConditionContext], bool | Awaitable[bool]]
Guard: TypeAlias = Callable[[CallRequest], Deny | None]


@attrs.define(eq=False)
class _Entry:
    """One registration; `live` until it is removed."""

    tool: Tool
    condition: Condition | None
    live: bool = True


class ToolRegistry:
    """The tools and guards of one scope: a runtime's, or an agent's, which shadows by name."""

    __slots__ = ("_entries", "_guards")

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._guards: list[Guard] = []

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Tool]:
        """The registered tools, whatever their conditions say."""
        return iter([entry.tool for entry in self._entries.values()])

    def find(self, name: str) -> Tool | None:
        """The registered tool of a name, whatever its condition says; None: there is none."""
        entry = self._entries.get(name)
        return None if entry is None else entry.tool

    def register(self, tool_: Tool | Function, when: Condition | None = None) -> Registration:
        """Add a tool to this scope.

        Args:
            tool_: a tool, or a function to make one of with `@tool`'s defaults.
            when: asked once for each proposed step, sync or async; False leaves the tool out of
                it. A tool that is left out still shadows a wider one of its name.

        Returns:
            The handle that removes it.

        Raises:
            DuplicateToolError: this scope has a tool of that name.
            ToolSchemaError: the function can't be declared to a model.
            InvalidInputError: the condition can't be called.
        """
        made = tool_ if isinstance(tool_, Tool) else tool(tool_)
        if when is not None and not callable(when):
            raise InvalidInputError(
                f"the condition of {made.name!r} must be callable, not {when!r}"
            )
        if made.name in self._entries:
            raise DuplicateToolError(
                f"this scope has a tool {made.name!r} already: close its registration first, "
                "or name the new one otherwise"
            )
        entry = self._entries[made.name] = _Entry(made, when)

        def remove() -> None:
            entry.live = False
            self._entries.pop(entry.tool.name, None)

        return Registration(remove)

    def guard(self, guard: Guard) -> Registration:
        """Add a guard: a synchronous look at a call's final arguments, which may only deny.

        Returns:
            The handle that removes it.

        Raises:
            InvalidInputError: it isn't callable, or is async.
        """
        if not callable(guard) or inspect.iscoroutinefunction(guard):
            raise InvalidInputError(
                f"a guard must be a plain function, not {guard!r}: use the pre_execute hook to wait"
            )
        self._guards.append(guard)
        return Registration(lambda: self._remove_guard(guard))

    def _remove_guard(self, guard: Guard) -> None:
        for index, kept in enumerate(self._guards):
            if kept is guard:
                del self._guards[index]
                return

    async def resolve(
        self, wider: "ToolRegistry | None", context: ToolConditionContext
    ) -> "ResolvedToolSet":
        """Ask the conditions, once, and give the tools of a step.

        A checkpoint only where a condition waits. Registrations that change meanwhile count for
        the next step, removals at once.

        Args:
            wider: the registry that this one's tools shadow.
            context: what the conditions are asked about.

        Raises:
            ToolActivationError: a condition raised, or gave something that is no bool; it names
                the tool.
        """
        entries = {**(wider._entries if wider is not None else {}), **self._entries}
        guards = (wider._guards if wider is not None else [], self._guards)
        active = {
            name: entry
            for name, entry in entries.items()
            if entry.condition is None or await _holds(entry.tool, entry.condition, context)
        }
        return ResolvedToolSet(active, guards)


async def _holds(tool_: Tool, condition: Condition, context: ToolConditionContext) -> bool:
    try:
        answer: object = condition(context)
        if inspect.isawaitable(answer):
            answer = await answer
    except Exception as error:
        raise ToolActivationError(
            f"the condition of the tool {tool_.name!r} failed: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(answer, bool):
        raise ToolActivationError(
            f"the condition of the tool {tool_.name!r} gave {answer!r}: return True or False"
        )
    return answer


class ResolvedToolSet:
    """The tools of one step. Every use after `dispose` raises `ToolSetDisposedError`."""

    __slots__ = ("_declarations", "_entries", "_guards")

    def __init__(self, entries: dict[str, _Entry], guards: tuple[list[Guard], list[Guard]]) -> None:
        self._entries: dict[str, _Entry] | None = entries
        self._guards = guards
        self._declarations = tuple(entry.tool.declaration for entry in entries.values())

    @property
    def declarations(self) -> tuple[ToolDeclaration, ...]:
        """What the step's requests declare; the same for all its attempts."""
        self._usable()
        return self._declarations

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools that a call may still be made to."""
        return tuple(name for name, entry in self._usable().items() if entry.live)

    def lookup(self, name: str) -> Tool | None:
        """The tool of a name; None where the set has none, or it was removed or replaced since."""
        entry = self._usable().get(name)
        return entry.tool if entry is not None and entry.live else None

    def near(self, name: str) -> tuple[str, ...]:
        """At most three names of this set that a wrong name may have meant, the nearest first."""
        by_folded = {known.lower(): known for known in self.names}
        found = difflib.get_close_matches(name.lower(), by_folded, n=3)
        return tuple(by_folded[folded] for folded in found)

    @property
    def has_guards(self) -> bool:
        """Whether any guard would be asked."""
        return any(self._guards)

    def denied(self, request: CallRequest) -> Deny | None:
        """Ask the guards about a call's final arguments, the wider scope's first.

        A guard that a guard registers is asked in the same pass.

        Returns:
            The first denial; None: all let it through.

        Raises:
            HookMisuseError: a guard gave something else than `Deny` or None.
            Exception: whatever a guard raised.
        """
        self._usable()
        for guards in self._guards:
            for guard in guards:  # the list itself, so that it may grow while it is asked
                answer: object = guard(request)
                if isinstance(answer, Deny):
                    return answer
                if answer is not None:
                    _refuse_answer(guard, answer)
        return None

    def dispose(self) -> None:
        """End the set, as its step ends or its proposal fails. Disposing again does nothing."""
        self._entries = None

    def _usable(self) -> dict[str, _Entry]:
        if self._entries is None:
            raise ToolSetDisposedError("this tool set's step is over: resolve a new one")
        return self._entries


def _refuse_answer(guard: Guard, answer: object) -> None:
    if inspect.iscoroutine(answer):
        answer.close()
    name = getattr(guard, "__qualname__", repr(guard))
    raise HookMisuseError(f"the guard {name} gave {answer!r}: return Deny(reason) or None")
