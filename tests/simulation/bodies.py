"""Tools whose bodies do what a script says, and the ledger of those that started (G8)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs
import trio

from tests.simulation.deeds import Note, ScriptedError, do, message
from tests.simulation.script import BodyAct, ToolScript
from trioloop import Agent, Runtime, Session, Tool, ToolContext, ToolError, ToolOutcome
from trioloop.hooks import CallRequest, Deny
from trioloop.hooks.dispatch import Registration
from trioloop.tools import NestedCall, ToolConditionContext, ToolRegistry

if TYPE_CHECKING:
    from tests.simulation.world import World

PARAMETERS = {
    "properties": {"wide": {"type": "boolean"}},
    "additionalProperties": False,
}


@attrs.frozen
class Started:
    """A body that started.

    Attributes:
        session: whose.
        call: for which call.
        name: of the tool.
        effects: of the tool.
        durable: the seq that the next durable event of its session had.
        seq: of the last event of its session.
    """

    session: Session
    call: str
    name: str
    effects: str
    durable: int
    seq: int


@attrs.define(eq=False)
class ScriptedTool:
    """One tool of a script."""

    world: "World"
    script: ToolScript
    asked: int = 0

    @property
    def tool(self) -> Tool:
        """The tool, as it is registered."""
        script = self.script
        return Tool.from_schema(
            script.name,
            f"Does {len(script.acts)} things.",
            PARAMETERS,
            self.body,
            effects=script.effects,
            mode=_mode_of if script.mode == "function" else script.mode,
            timeout_s=script.timeout_s,
            on_cancel=script.on_cancel,
        )

    async def condition(self, context: ToolConditionContext) -> bool:
        """Whether a step has it."""
        await self.world.pass_waits()
        self.asked += 1
        if self.script.condition == "raises" and self.asked == 3:
            raise ScriptedError("condition")
        return self.script.condition != "flips" or self.asked % 2 == 1

    async def body(self, context: ToolContext, wide: bool = False) -> object:
        """The body: it is noted that it started, then it acts."""
        session = self.world.session_of(context.agent)
        durable = self.world.store.durable.get(session.name, 0)
        script = self.script
        self.world.started.append(
            Started(session, context.call, script.name, script.effects, durable, session.seq)
        )
        await self.world.pass_waits()
        words = 20 if self.world.script.settings.prunes else 1
        words = 200 if self.world.script.policies.spills else words
        outcome: object = f"{self.script.name} is through" * words
        for act in self.script.acts:
            given = await self._act(act, context)
            outcome = outcome if given is None else given
        return outcome

    async def _act(self, act: BodyAct, context: ToolContext) -> object:
        await self.world.pass_waits(act.seconds)
        await self._raise(act)
        match act.does:
            case "context":
                context.add_context(message(self.world))
            case "note":
                context.append(Note(f"of {context.call}"))
            case "progress":
                context.report_progress("half", done=1, total=2)
            case "task":
                context.nursery.start_soon(trio.sleep_forever)
            case "deed" if act.deed is not None:
                do(self.world, act.deed, "body")
            case "contexts":
                return ToolOutcome(content="two", additional_contexts=(message(self.world),))
            case "conclude":
                return ToolOutcome(content="the end", concludes_turn=True)
            case "unencodable":
                return {"a set": {1}}
            case "nest":
                await self._call_others(context)
        return None

    async def _raise(self, act: BodyAct) -> None:
        match act.does:
            case "fail":
                raise ToolError("the script says so")
            case "crash":
                raise ExceptionGroup("two", [ScriptedError("body"), ValueError("body")])
            case "exit":
                raise SystemExit(3)
            case "leak":
                raise await self.world.stray_cancelled()

    async def _call_others(self, context: ToolContext) -> None:
        """Call the tools before this one, so that it ends some time, and one that isn't there."""
        names = [script.name for script in self.world.script.tools]
        others = [*names[: names.index(self.script.name)], "nothing"]
        calls = [NestedCall(name, {"wide": False}) for name in others]
        outcomes = await context.call_tools(calls)
        if len(outcomes) != len(calls) or not outcomes[-1].is_error:
            self.world.violations.append(f"{context.call} called {others}, and got {outcomes}")


def _mode_of(arguments: Mapping[str, Any]) -> str:
    return "barrier" if arguments["wide"] else "concurrent"  # KeyError: a barrier, too


def _guard(request: CallRequest) -> Deny | None:
    return Deny("too wide") if request.arguments.get("wide") else None


class Toolbox:
    """The tools of a run, where they are registered."""

    def __init__(self, world: "World") -> None:
        self._tools = [ScriptedTool(world, script) for script in world.script.tools]
        self._registered: dict[int, tuple[ToolRegistry, Registration]] = {}

    def furnish_runtime(self, runtime: Runtime) -> None:
        """Register the runtime's."""
        for index, one in enumerate(self._tools):
            if one.script.agent is None:
                self._register(index, runtime.tools)
        if any(one.script.guarded for one in self._tools):
            runtime.tools.guard(_guard)

    def furnish_agent(self, agent: Agent, number: int) -> None:
        """Register those of one agent."""
        for index, one in enumerate(self._tools):
            if one.script.agent == number:
                self._register(index, agent.tools)

    def swap(self, pick: int) -> None:
        """Take back a tool's registration, or register it again."""
        if not self._registered:
            return
        index = sorted(self._registered)[pick % len(self._registered)]
        registry, registration = self._registered[index]
        registration.close()
        self._register(index, registry)

    def _register(self, index: int, registry: ToolRegistry) -> None:
        one = self._tools[index]
        condition = one.condition if one.script.condition is not None else None
        registration = registry.register(one.tool, when=condition)
        self._registered[index] = (registry, registration)
