"""One plan mode for all agents of a runtime, and one of an agent's own: they share the mode."""

import pytest
from trio.testing import MockClock

from tests.agent.reading import facts
from trioloop import Agent, AgentHandle, CallId, InvalidInputError, Request, Runtime, tool
from trioloop.events import ToolResultLogged
from trioloop.plugins import plan_mode
from trioloop.plugins.plan_mode import PlanModeSet
from trioloop.testing import ScriptedModel, Text, ToolCall, open_test_runtime


@tool
async def write() -> str:
    """Write."""
    return "written"


class Willing:
    """Somebody who approves of every plan."""

    async def ask(self, agent: AgentHandle, call: CallId, question: str) -> bool:
        """Yes."""
        return True


def prompt(request: Request) -> str:
    """The system prompt of a request."""
    return "\n".join(part.text for part in request.system)


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("exit_plan_mode", "exit_plan_mode"),
        ("hand_in", "hand_in"),
        ("hand_in", "exit_plan_mode"),
    ],
)
@pytest.mark.parametrize("selects", ["the runtime's", "the agent's"])
async def test_a_plan_that_is_approved_ends_both(
    name: str, called: str, selects: str, autojump_clock: MockClock
) -> None:
    plan = ToolCall(called, plan="first this")
    model = ScriptedModel([plan, ToolCall("write"), Text("done"), Text("hi")])
    async with (
        open_test_runtime(model=model, tools=[write], approver=Willing()) as runtime,
        plan_mode(runtime, guidance="Think.") as widest,
    ):
        agent = await runtime.create_agent("a")
        async with plan_mode(
            agent, guidance='Think twice. {tool}: {"plan": ""}', tool_name=name
        ) as own:
            mode = own if selects == "the agent's" else widest
            mode.select(agent, active=True)
            await agent.ask("one")
            assert facts(agent, PlanModeSet) == [PlanModeSet(True), PlanModeSet(False)]
            assert [one.code for one in facts(agent, ToolResultLogged)] == [None, None]
            assert [f'{name}: {{"plan": ""}}' in prompt(one) for one in model.requests] == [
                True,
                False,
                False,
            ]
            assert not own.is_selected(agent)
            assert not widest.is_selected(agent)


async def test_what_one_selects_in_a_turn_the_other_goes_by(autojump_clock: MockClock) -> None:
    model = ScriptedModel([ToolCall("write"), ToolCall("write"), Text("done")])
    async with (
        open_test_runtime(model=model, tools=[write]) as runtime,
        plan_mode(runtime) as widest,
    ):
        agent = await runtime.create_agent("a")
        async with plan_mode(agent) as own:
            with runtime.on("stream-start", lambda _: _select_once(own, agent)):
                await agent.ask("one")
            assert widest.is_active(agent)
            assert [one.code for one in facts(agent, ToolResultLogged)] == [None, "TOOL_DENIED"]


def _select_once(mode: object, agent: Agent) -> None:
    if not facts(agent, PlanModeSet):
        mode.select(agent, active=True)  # type: ignore[attr-defined]


async def test_two_in_one_scope_are_refused_by_name() -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime, plan_mode(runtime):
        await _is_refused(runtime)
        agent = await runtime.create_agent("a")
        async with plan_mode(agent):
            await _is_refused(agent)


async def _is_refused(over: Runtime | Agent) -> None:
    with pytest.raises(InvalidInputError, match="plan-mode"):
        async with plan_mode(over, tool_name="other"):
            pass
