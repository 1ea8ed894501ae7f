"""A policy with a mode of its own: `trioloop.plugins.plan_mode`, written anew with public names.

While an agent plans it may read, but change nothing; it leaves that by handing in a plan that
somebody approves. The plugin's own tests run on this file, too. It shows how a policy keeps state:
what counts is an event in the log, and everything that is asked is read from there.

The demonstration needs no key: a scripted model is told to plan, tries to write nevertheless, hands
in two plans, and carries out the one that is approved.

    python examples/plan_first.py
"""

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

import trio

import trioloop
from trioloop import AgentHandle, CallId, ToolContext
from trioloop.hooks import Allow, Ask, CallRequest, Deny, Next, PrePolicy
from trioloop.testing import ScriptedModel, Text, ToolCall

PLAN_ONLY = "You are planning: change nothing before {tool} was called and its plan approved."


@trioloop.event("example/planning", ignorable=True)
class Planning(trioloop.EventData):
    """An agent plans from here on, or does so no more."""

    active: bool


def _last(active: bool, event: trioloop.Event) -> bool:
    return event.data.active if isinstance(event.data, Planning) else active


PLANNING = trioloop.Fold(bool, _last)


class Wish:
    """What one agent shall do.

    Attributes:
        pending: what was asked for while a turn was open; None: nothing is.
        proposed: what the step that is being prepared goes by.
    """

    def __init__(self, agent: trioloop.Agent) -> None:
        self.agent = agent
        self.pending: bool | None = None
        self.proposed: bool | None = None
        self.watching = agent.session.observe(self._accept)

    @property
    def logged(self) -> bool:
        """What its log says."""
        return self.agent.session.folded(PLANNING)

    def propose(self) -> bool:
        """What a step that begins to be prepared goes by."""
        self.proposed = self.logged if self.pending is None else self.pending
        return self.proposed

    def write(self, active: bool) -> None:
        """Note it in the log where it is news."""
        if active is not self.logged:
            self.agent.session.append(Planning(active))

    def _accept(self, event: trioloop.Event) -> None:
        if event.type == "step/start" and self.proposed is not None:
            if self.pending is self.proposed:
                self.pending = None
            self.write(self.proposed)


class Planner:
    """Who plans in a runtime, or whether one agent does."""

    def __init__(self, over: trioloop.Runtime | trioloop.Agent, tool_name: str) -> None:
        self.over = over
        self.tool_name = tool_name
        self.wishes: dict[str, Wish] = {}

    def of(self, handle: AgentHandle) -> Wish:
        """The wish of an agent; its log is watched from its first one on."""
        if handle.name not in self.wishes:
            agent = self.over
            if isinstance(agent, trioloop.Runtime):
                agent = agent.agents[handle.name]
            self.wishes[handle.name] = Wish(agent)
        return self.wishes[handle.name]

    def select(self, agent: trioloop.Agent, *, active: bool) -> None:
        """Let an agent plan, or stop it: at once between turns, else with its next step."""
        wish = self.of(agent)
        if agent.turn is None:
            wish.pending = None
            wish.write(active)
        else:
            wish.pending = active

    def is_active(self, agent: AgentHandle) -> bool:
        """Whether an agent plans, by its log."""
        return agent.session.folded(PLANNING)

    def is_selected(self, agent: AgentHandle) -> bool:
        """Whether it will with its next step."""
        pending = self.of(agent).pending
        return self.is_active(agent) if pending is None else pending

    def guide(self, agent: AgentHandle) -> str | None:
        """What the prompt says about it."""
        proposed = self.of(agent).proposed
        return PLAN_ONLY.format(tool=self.tool_name) if proposed else None

    async def judge(self, call: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
        """Hold what would change something, and let somebody read the plan."""
        answer = await next()
        planning = self.is_active(call.agent)
        if not isinstance(answer, Allow):
            return answer
        if call.name == self.tool_name:
            given = call.arguments if answer.arguments is None else answer.arguments
            return Ask(f"The plan:\n{given['plan']}") if planning else Deny("nobody is planning")
        if planning and call.effects != "read-only":
            return Deny(PLAN_ONLY.format(tool=self.tool_name))
        return answer

    def forget(self, name: str) -> None:
        """An agent is gone."""
        wish = self.wishes.pop(name, None)
        if wish is not None:
            wish.watching.close()


@asynccontextmanager
async def plan_mode(
    over: trioloop.Runtime | trioloop.Agent, *, tool_name: str = "exit_plan_mode"
) -> AsyncIterator[Planner]:
    """Let agents plan first, while the block is open."""
    planner = Planner(over, tool_name)

    @trioloop.tool(name=tool_name, effects="idempotent")
    async def leave(plan: str, context: ToolContext) -> str:
        """Hand in a plan; once it is approved, it is to be carried out.

        Args:
            plan: what is to be done.
        """
        planner.of(context.agent).pending = False
        return "Approved."

    with ExitStack() as stack:
        stack.enter_context(over.prompt.section("plan-first", planner.guide, order=50))
        stack.enter_context(
            over.tools.register(leave, when=lambda step: planner.of(step.agent).propose())
        )
        stack.enter_context(over.hooks.pre_execute.add(planner.judge))
        stack.enter_context(over.on("disposed", lambda told: planner.forget(told.agent)))
        try:
            yield planner
        finally:
            for name in list(planner.wishes):
                planner.forget(name)


# The demonstration


class Reviewer:
    """Somebody who refuses plans that don't speak of a copy."""

    async def ask(self, agent: AgentHandle, call: CallId, question: str) -> bool | str:
        """Whether a plan may be carried out."""
        good = "copy" in question
        print(f"reviewer: {question.splitlines()[-1]!r} {'is fine' if good else 'is careless'}")
        return good or "make a copy first"


@trioloop.tool
async def tidy(folder: str) -> str:
    """Tidy a folder."""
    return f"{folder} is tidy"


ANSWERS = (
    ToolCall("tidy", folder="attic"),
    ToolCall("exit_plan_mode", plan="throw everything away"),
    ToolCall("exit_plan_mode", plan="make a copy, then tidy the attic"),
    ToolCall("tidy", folder="attic"),
    Text("Done."),
)


async def main() -> None:
    """Plan, be refused, plan better, act."""
    model = ScriptedModel(ANSWERS)
    async with (
        trioloop.open_runtime(model=model, tools=[tidy], approver=Reviewer()) as runtime,
        plan_mode(runtime) as planner,
    ):
        agent = await runtime.create_agent("attic")
        planner.select(agent, active=True)
        settled = await agent.ask("Tidy up.")
        for one in agent.session.events():
            if isinstance(one.data, Planning):
                print(f"event {one.seq}: {'planning' if one.data.active else 'acting'}")
            elif isinstance(one.data, trioloop.events.ToolResultLogged):
                print(f"event {one.seq}: {one.data.code or 'fine'}")
        print(settled.text)


if __name__ == "__main__":
    trio.run(main)
