"""Plan mode: an agent that looks and thinks, and does nothing before its plan is approved.

The mode is in the log. What is selected while a turn is open takes effect with the next step that
is accepted: it decides about that step's guidance and tools, and is logged behind its admission.
"""

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from weakref import WeakKeyDictionary

import attrs

from trioloop import (
    Agent,
    AgentHandle,
    Event,
    EventData,
    Fold,
    Runtime,
    SessionHandle,
    SessionId,
    Tool,
    ToolConditionContext,
    ToolContext,
    event,
    events,
    tool,
)
from trioloop.hooks import Allow, Ask, CallRequest, Deny, Next, PrePolicy, Registration
from trioloop.plugins.options import text

GUIDANCE = """\
# Plan mode
You are in plan mode: read and think, but change nothing. When you know what to do, call {tool} with
your plan, and wait for its approval. Only then carry it out."""


@event("plan/mode", ignorable=True)
class PlanModeSet(EventData):
    """Plan mode is on, or off, from here on.

    Attributes:
        active: whether it is on.
    """

    active: bool


def _set(active: bool, event: Event) -> bool:
    return event.data.active if isinstance(event.data, PlanModeSet) else active


ACTIVE: Fold[bool] = Fold(bool, _set)
"""Whether plan mode is on, by a log; call it with the events of any."""


@attrs.define
class _Choice:
    """What isn't in the log of a session.

    Attributes:
        selected: what the next step that is accepted shall go by; None: what the log says.
        proposed: what the step that is proposed goes by; None: none is.
        exits: the tools that leave plan mode, by their names.
    """

    selected: bool | None = None
    proposed: bool | None = None
    exits: set[str] = attrs.Factory(set)


_CHOICES: "WeakKeyDictionary[SessionHandle, _Choice]" = WeakKeyDictionary()
"""Of the sessions in whose turns somebody has chosen: a runtime's and an agent's own share one."""


def _choice(agent: AgentHandle) -> _Choice:
    return _CHOICES.setdefault(agent.session, _Choice())


@asynccontextmanager
async def plan_mode(
    over: Runtime | Agent,
    *,
    guidance: str = GUIDANCE,
    order: int = 50,
    tool_name: str = "exit_plan_mode",
    holds_effects: bool = True,
) -> AsyncIterator["PlanMode"]:
    """Offer plan mode while the block is open; `select` turns it on and off.

    While it is on, the prompt has a section of guidance, and the model has a tool to leave it,
    whose plan a person must approve: whoever answers the questions of pre-policies. Without
    anybody to ask, it stays on.

    Args:
        over: a runtime, for all its agents, or one agent. Both may be: an agent has one mode, which
            either turns on and off; its own says how it is told.
        guidance: the section's text; `{tool}` in it is the tool's name.
        order: the section's place.
        tool_name: of the tool that leaves plan mode.
        holds_effects: deny every call, but of that tool, that isn't read-only while it is on.

    Raises:
        InvalidInputError: there is one over that runtime, or that agent, already; or the guidance
            is no text.
    """
    text("guidance", guidance)
    mode = PlanMode(
        over, guidance.replace("{tool}", tool_name), tool_name, holds_effects=holds_effects
    )
    with ExitStack() as stack:
        stack.callback(mode.close)
        stack.enter_context(over.prompt.section("plan-mode", mode.section, order=order))
        stack.enter_context(over.tools.register(mode.exit_tool(), when=mode.declares))
        stack.enter_context(over.hooks.pre_execute.add(mode.before_call))
        stack.enter_context(over.on("created", lambda one: mode.watch(one.agent)))
        stack.enter_context(over.on("disposed", lambda one: mode.forget(one.agent)))
        yield mode


class PlanMode:
    """Who is in plan mode, and who shall be."""

    def __init__(
        self, over: Runtime | Agent, guidance: str, tool_name: str, *, holds_effects: bool
    ) -> None:
        self._over = over
        self._guidance = guidance
        self._tool_name = tool_name
        self._holds_effects = holds_effects
        self._watched: dict[SessionId, Registration] = {}
        for agent in self._agents().values():
            self.watch(agent.name)

    def select(self, agent: Agent, *, active: bool) -> None:
        """Turn an agent's plan mode on or off; synchronous.

        Between turns it is logged at once. While a turn is open it waits for the next step that is
        accepted; selected back before that, nothing is logged.

        Raises:
            AgentDisposedError: the agent's registration has ended.
        """
        if agent.turn is not None:
            _choice(agent).selected = active
            return
        _choice(agent).selected = None
        self._log(agent, active)

    def is_active(self, agent: AgentHandle) -> bool:
        """Whether an agent is in plan mode, by its log."""
        return agent.session.folded(ACTIVE)

    def is_selected(self, agent: AgentHandle) -> bool:
        """Whether it will be with the next step that is accepted."""
        selected = _choice(agent).selected
        return self.is_active(agent) if selected is None else selected

    # What the loop asks

    def declares(self, context: ToolConditionContext) -> bool:
        """Whether a proposed step has the tool; the whole step goes by what is selected now."""
        choice = _choice(context.agent)
        choice.exits.add(self._tool_name)
        choice.proposed = self.is_selected(context.agent)
        return choice.proposed

    def section(self, agent: AgentHandle) -> str | None:
        """The guidance of a proposed step."""
        proposed = _choice(agent).proposed
        selected = self.is_selected(agent) if proposed is None else proposed
        return self._guidance if selected else None

    async def before_call(self, call: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
        """Ask a person about the plan, and hold what has effects until then."""
        answer = await next()
        if not isinstance(answer, Allow):
            return answer
        active = self.is_active(call.agent)
        if call.name == self._tool_name:
            plan = (answer.arguments or call.arguments).get("plan")
            question = f"Shall this plan be carried out?\n\n{plan}"
            return Ask(question, answer.arguments) if active else Deny("plan mode is off")
        held = self._holds_effects and call.effects != "read-only"
        if active and held and call.name not in _choice(call.agent).exits:
            return Deny(
                f"plan mode is on: nothing may be changed before {self._tool_name} was called and "
                "the plan approved"
            )
        return answer

    def exit_tool(self) -> Tool:
        """The tool that leaves plan mode."""

        @tool(name=self._tool_name, effects="idempotent")
        async def exit_plan_mode(plan: str, context: ToolContext) -> str:
            """Hand in the plan for approval; once it is approved, plan mode is off.

            Args:
                plan: what is to be done, step by step, with all that whoever approves must know.
            """
            _choice(context.agent).selected = False
            return "The plan is approved, and plan mode is off: carry the plan out."

        return exit_plan_mode

    # What the log tells

    def watch(self, name: SessionId) -> None:
        """Log what a step went by once it is accepted."""
        agent = self._agents()[name]
        self._watched[name] = agent.session.observe(partial(self._observe, agent))

    def _observe(self, agent: Agent, event: Event) -> None:
        if not isinstance(event.data, events.StepStarted):
            return
        choice = _choice(agent)
        if choice.proposed is None:  # another one was first
            return
        self._log(agent, choice.proposed)
        if choice.selected == choice.proposed:
            choice.selected = None
        choice.proposed = None

    def _log(self, agent: Agent, active: bool) -> None:
        if active != self.is_active(agent):
            agent.session.append(PlanModeSet(active))

    def forget(self, name: SessionId) -> None:
        """An agent works no more."""
        self._watched.pop(name).close()

    def close(self) -> None:
        """Watch nobody any more."""
        for registration in self._watched.values():
            registration.close()

    def _agents(self) -> dict[SessionId, Agent]:
        over = self._over
        return {over.name: over} if isinstance(over, Agent) else dict(over.agents)
