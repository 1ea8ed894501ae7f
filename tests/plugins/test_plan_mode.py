"""Plan mode is logged, guides, and ends with an approved plan; the plugin and its twin alike.

PLN-01, 03, 04, 07, 09, 11, S1-28.
"""

from collections.abc import Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from examples.plan_first import Planning
from examples.plan_first import plan_mode as twin
from tests.agent.reading import ends, facts, types
from trioloop import Agent, AgentHandle, CallId, MemoryStore, Request, Runtime, tool
from trioloop.events import RequestHeaderLogged, SystemMessageLogged, ToolResultLogged
from trioloop.messages import text_of
from trioloop.models.scripted import Entry
from trioloop.plugins import plan_mode, retry
from trioloop.plugins.plan_mode import PlanModeSet
from trioloop.ports import Capabilities
from trioloop.testing import Fail, ScriptedModel, Text, ToolCall, Wait, open_test_runtime

MODES: dict[str, tuple[Callable[..., Any], type[Any]]] = {
    "plugin": (plan_mode, PlanModeSet),
    "twin": (twin, Planning),
}


class Case:
    """One of the two, and how its events are read."""

    def __init__(self, name: str) -> None:
        self.over, self.kind = MODES[name]

    def logged(self, agent: Agent) -> list[bool]:
        """What the log says of the mode, in order."""
        return [fact.active for fact in facts(agent, self.kind)]


@pytest.fixture(params=MODES)
def case(request: pytest.FixtureRequest) -> Case:
    return Case(request.param)


@tool(effects="read-only")
async def look() -> str:
    """Look."""
    return "seen"


@tool
async def write() -> str:
    """Write."""
    return "written"


class Reviewer:
    """Answers what it is asked, after some time.

    Attributes:
        asked: the questions.
    """

    def __init__(self, *answers: bool | str, takes_s: float = 0) -> None:
        self._answers = iter(answers)
        self._takes_s = takes_s
        self.asked: list[str] = []

    async def ask(self, agent: AgentHandle, call: CallId, question: str) -> bool | str:
        """Whether a plan is fine."""
        self.asked.append(question)
        await trio.sleep(self._takes_s)
        return next(self._answers)


def declared(request: Request) -> list[str]:
    """The names of the tools that a request declares."""
    return [one.name for one in request.tools]


def guided(request: Request) -> bool:
    """Whether a request tells of plan mode."""
    return "exit_plan_mode" in str([part.text for part in request.system])


PLAN = ToolCall("exit_plan_mode", plan="first this, then that")


async def test_between_turns_it_is_logged_at_once_and_the_next_step_has_it(case: Case) -> None:
    model = ScriptedModel([Text("1"), Text("2"), Text("3")])
    async with open_test_runtime(model=model) as runtime, case.over(runtime) as mode:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        mode.select(agent, active=True)
        assert case.logged(agent) == [True]
        await agent.ask("two")
        mode.select(agent, active=False)
        assert case.logged(agent) == [True, False]
        await agent.ask("three")
        assert [guided(one) for one in model.requests] == [False, True, False]
        assert [declared(one) for one in model.requests] == [[], ["exit_plan_mode"], []]


async def test_before_the_first_request_nothing_else_tells_of_it(case: Case) -> None:
    model = ScriptedModel([Text("1")])
    async with open_test_runtime(model=model) as runtime, case.over(runtime) as mode:
        agent = await runtime.create_agent("a")
        mode.select(agent, active=True)
        await agent.ask("one")
        assert len(facts(agent, SystemMessageLogged)) == 1
        assert [fact.why for fact in facts(agent, RequestHeaderLogged)] == ["initial"]


async def test_in_a_turn_a_selection_waits_for_the_next_step(case: Case) -> None:
    model = ScriptedModel([[Wait(1), ToolCall("look")], Text("2")])
    async with open_test_runtime(model=model, tools=[look]) as runtime, case.over(runtime) as mode:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await wait_all_tasks_blocked()
        mode.select(agent, active=True)
        assert (mode.is_active(agent), mode.is_selected(agent)) == (False, True)
        await agent.wait_idle()
        assert [guided(one) for one in model.requests] == [False, True]
        kinds = types(agent)
        second = len(kinds) - kinds[::-1].index("step/start") - 1
        mine = "plan/mode" if case.kind is PlanModeSet else "example/planning"
        assert kinds.index(mine) > second
        assert kinds.index(mine) < len(kinds) - kinds[::-1].index("assistant/message") - 1


@pytest.mark.parametrize("at_first", [True, False])
async def test_selected_back_before_the_next_step_nothing_is_logged(
    case: Case, at_first: bool
) -> None:
    model = ScriptedModel([[Wait(1), ToolCall("look")], Text("2")])
    async with open_test_runtime(model=model, tools=[look]) as runtime, case.over(runtime) as mode:
        agent = await runtime.create_agent("a")
        mode.select(agent, active=at_first)
        agent.followup("one")
        await wait_all_tasks_blocked()
        mode.select(agent, active=not at_first)
        mode.select(agent, active=at_first)
        await agent.wait_idle()
        assert case.logged(agent) == ([True] if at_first else [])
        assert len(facts(agent, SystemMessageLogged)) == int(at_first)


async def test_a_selection_outlasts_a_step_that_is_not_accepted(
    case: Case, autojump_clock: MockClock
) -> None:
    async def slow(agent: AgentHandle) -> str:
        await trio.sleep(5)
        return "slow"

    model = ScriptedModel([Text("1"), Text("2")])
    async with open_test_runtime(model=model) as runtime, case.over(runtime) as mode:
        agent = await runtime.create_agent("a")
        agent.prompt.section("slow", slow)
        agent.followup("one")
        await trio.sleep(1)
        mode.select(agent, active=True)
        agent.cancel()
        await agent.wait_idle()
        assert (case.logged(agent), mode.is_selected(agent)) == ([], True)
        agent.wake()
        await agent.wait_idle()
        assert case.logged(agent) == [True]
        assert guided(model.requests[0])


async def test_out_of_plan_mode_there_is_no_tool_to_leave_it(case: Case) -> None:
    model = ScriptedModel([PLAN, Text("2")])
    async with open_test_runtime(model=model) as runtime, case.over(runtime):
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        (result,) = facts(agent, ToolResultLogged)
        assert result.code == "UNKNOWN_TOOL"


async def test_out_of_plan_mode_a_call_of_the_tool_that_is_still_declared_is_refused(
    case: Case,
) -> None:
    reviewer = Reviewer(True, True)
    model = ScriptedModel([[PLAN, PLAN], Text("2")])
    async with (
        open_test_runtime(model=model, approver=reviewer) as runtime,
        case.over(runtime) as mode,
    ):
        agent = await runtime.create_agent("a")

        @agent.hooks.pre_execute
        async def log_it(call: Any, next: Any) -> Any:
            if call.call.endswith("_1"):
                agent.session.append(case.kind(False))
            return await next()

        mode.select(agent, active=True)
        await agent.ask("one")
        codes = [result.code for result in facts(agent, ToolResultLogged)]
        assert codes == [None, "TOOL_DENIED"]


async def test_an_approved_plan_ends_it_with_the_next_step(case: Case) -> None:
    reviewer = Reviewer(True)
    model = ScriptedModel([PLAN, ToolCall("write"), Text("done")])
    async with (
        open_test_runtime(model=model, tools=[write], approver=reviewer) as runtime,
        case.over(runtime) as mode,
    ):
        agent = await runtime.create_agent("a")
        mode.select(agent, active=True)
        await agent.ask("one")
        assert "first this, then that" in reviewer.asked[0]
        assert [guided(one) for one in model.requests] == [True, False, False]
        assert case.logged(agent) == [True, False]
        assert [result.code for result in facts(agent, ToolResultLogged)] == [None, None]


async def test_a_refused_plan_leaves_it_on_and_the_model_is_told_why(case: Case) -> None:
    reviewer = Reviewer("think of the cat", True)
    model = ScriptedModel([PLAN, PLAN, Text("done")])
    async with (
        open_test_runtime(model=model, approver=reviewer) as runtime,
        case.over(runtime) as mode,
    ):
        agent = await runtime.create_agent("a")
        mode.select(agent, active=True)
        await agent.ask("one")
        first, second = facts(agent, ToolResultLogged)
        assert (first.code, second.code) == ("TOOL_DENIED", None)
        assert "think of the cat" in text_of(first.content)
        assert [guided(one) for one in model.requests] == [True, True, False]


async def test_with_nobody_to_approve_it_stays_on(case: Case) -> None:
    model = ScriptedModel([PLAN, Text("done")])
    async with open_test_runtime(model=model) as runtime, case.over(runtime) as mode:
        agent = await runtime.create_agent("a")
        mode.select(agent, active=True)
        await agent.ask("one")
        (result,) = facts(agent, ToolResultLogged)
        assert result.code == "TOOL_DENIED"
        assert mode.is_active(agent)


@pytest.mark.parametrize("how", ["cancel", "dispose"])
async def test_ended_while_the_plan_is_reviewed_it_stays_on(
    case: Case, how: str, autojump_clock: MockClock
) -> None:
    model = ScriptedModel([PLAN])
    async with (
        open_test_runtime(model=model, approver=Reviewer(True, takes_s=60)) as runtime,
        case.over(runtime) as mode,
    ):
        agent = await runtime.create_agent("a")
        mode.select(agent, active=True)
        agent.followup("one")
        await trio.sleep(1)
        if how == "cancel":
            agent.cancel()
            await agent.wait_idle()
        else:
            await agent.dispose()
        assert [end.reason for end in ends(agent)] == ["aborted"]
        assert case.logged(agent) == [True]
        (result,) = facts(agent, ToolResultLogged)
        assert result.is_error


async def test_while_it_is_on_only_reading_tools_run(case: Case) -> None:
    model = ScriptedModel([[ToolCall("look"), ToolCall("write")], Text("done")])
    async with (
        open_test_runtime(model=model, tools=[look, write]) as runtime,
        case.over(runtime) as mode,
    ):
        agent = await runtime.create_agent("a")
        mode.select(agent, active=True)
        await agent.ask("one")
        codes = [result.code for result in facts(agent, ToolResultLogged)]
        assert codes == [None, "TOOL_DENIED"]


async def test_it_is_on_still_in_the_next_life_of_the_session(case: Case) -> None:
    store = MemoryStore()
    silent = ScriptedModel([])
    async with open_test_runtime(model=silent, store=store) as runtime, case.over(runtime) as mode:
        mode.select(await runtime.create_agent("a"), active=True)
    model = ScriptedModel([Text("1")])
    async with open_test_runtime(model=model, store=store) as runtime, case.over(runtime) as mode:
        agent = await runtime.resume_agent("a")
        assert mode.is_active(agent)
        await agent.ask("one")
        assert guided(model.requests[0])


async def test_a_history_that_goes_on_is_told_of_both_changes(case: Case) -> None:
    model = ScriptedModel(
        [Text("1"), Text("2"), Text("3")], capabilities=Capabilities(system_update="in-history")
    )
    async with (
        open_test_runtime(model=model, system="Be brief.") as runtime,
        case.over(runtime) as mode,
    ):
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        mode.select(agent, active=True)
        await agent.ask("two")
        mode.select(agent, active=False)
        await agent.ask("three")
        told = [(one.placement, one.text is None) for one in facts(agent, SystemMessageLogged)]
        assert told == [("head", False), ("tail", False), ("tail", True)]


async def test_a_retried_step_goes_by_one_selection(case: Case, autojump_clock: MockClock) -> None:
    model = ScriptedModel([[Wait(1), Fail("SERVER")], ToolCall("look"), Text("2")])
    async with (
        open_test_runtime(model=model, tools=[look], plugins=[retry]) as runtime,
        case.over(runtime) as mode,
    ):
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await wait_all_tasks_blocked()
        mode.select(agent, active=True)
        await agent.wait_idle()
        assert [guided(one) for one in model.requests] == [False, False, True]
        assert case.logged(agent) == [True]


async def test_agents_have_modes_of_their_own(case: Case) -> None:
    def answer(request: Request) -> Entry:
        return Text("hi")

    model = ScriptedModel(answer)
    async with open_test_runtime(model=model) as runtime:
        one, other = await runtime.create_agent("a"), await runtime.create_agent("b")
        async with case.over(one) as mode:
            mode.select(one, active=True)
            await one.ask("go")
            await other.ask("go")
    assert [guided(request) for request in model.requests] == [True, False]


async def test_left_the_block_nothing_of_it_is_there(case: Case) -> None:
    model = ScriptedModel([Text("1")])

    async def check(runtime: Runtime) -> Agent:
        agent = await runtime.create_agent("a")
        async with case.over(runtime) as mode:
            mode.select(agent, active=True)
        await agent.ask("one")
        return agent

    async with open_test_runtime(model=model) as runtime:
        agent = await check(runtime)
        assert not guided(model.requests[0])
        assert declared(model.requests[0]) == []
        assert case.logged(agent) == [True]
