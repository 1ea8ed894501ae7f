"""A child works inside its parent's call: whatever ends the call ends the child (R9, B21, T14)."""

from collections.abc import Sequence

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import ends, facts, types
from trioloop import (
    Event,
    Limits,
    MemoryStore,
    Request,
    Runtime,
    Tool,
    ToolContext,
    ToolOutcome,
    events,
    tool,
)
from trioloop.errors import SessionLockedError, UnknownSessionError
from trioloop.events import AgentDelegated, ToolResultLogged
from trioloop.ids import call_id
from trioloop.messages import text_of
from trioloop.models.scripted import Entry
from trioloop.testing import ScriptedModel, Stall, Text, ToolCall, open_test_runtime


def delegating(runtime: Runtime) -> Tool:
    """A tool that gives a task to a child."""

    @tool(mode="concurrent")
    async def delegate(task: str, context: ToolContext, child: str | None = None) -> ToolOutcome:
        """Let a child do it."""
        async with context.lend_place(), runtime.delegate(context, child) as agent:
            settled = await agent.ask(task)
            return ToolOutcome(content=f"{agent.name}: {settled.reason} {settled.text}")

    return delegate


class Family:
    """A model of a parent, which answers as scripted, and of children, which do as they are told.

    Attributes:
        model: the model.
        tasks: what children were asked, in order.
    """

    def __init__(self, *answers: Entry) -> None:
        self.model = ScriptedModel(self._answer)
        self.tasks: list[str] = []
        self._answers = iter(answers)

    def _answer(self, request: Request) -> Entry:
        if request.session == "p":
            return next(self._answers)
        task = text_of(list(request.messages)[-1].content)  # type: ignore[union-attr]
        self.tasks.append(task)
        return Stall() if task == "hang" else Text(f"did {task}")


def delegations(*tasks: str) -> list[ToolCall]:
    """Calls that give tasks to new children."""
    return [ToolCall("delegate", task=task) for task in tasks]


def children_of(log: Sequence[Event]) -> list[str]:
    """The children that a log names."""
    return [event.data.child for event in log if isinstance(event.data, AgentDelegated)]


async def test_a_child_answers_its_parents_call_and_both_logs_name_the_other() -> None:
    family = Family(delegations("dig"), Text("done"))
    async with open_test_runtime(model=family.model) as runtime:
        runtime.tools.register(delegating(runtime))
        agent = await runtime.create_agent("p")
        assert (await agent.ask("go")).text == "done"
        (child,) = children_of(agent.session.events())
        assert list(runtime.agents) == ["p"]
        (result,) = facts(agent, ToolResultLogged)
        assert text_of(result.content) == f"{child}: completed did dig"
        opened = (await runtime.events_of(child))[0].data
        assert isinstance(opened, events.SessionOpened)
        assert (opened.parent, opened.fork_seq, opened.depth) == ("p", None, 1)
        order = [kind for kind in types(agent) if kind.startswith(("tool/", "agent/"))]
        assert order == ["tool/call", "agent/delegated", "tool/result"]


@pytest.mark.parametrize("how", ["cancel", "dispose"])
async def test_children_end_as_aborted_by_their_parent_before_its_turn_does(
    how: str, autojump_clock: MockClock
) -> None:
    family = Family(delegations("hang", "hang"))
    order: list[str] = []
    async with open_test_runtime(model=family.model) as runtime:
        runtime.tools.register(delegating(runtime))
        agent = await runtime.create_agent("p")
        runtime.on("settled", lambda one: order.append(f"{one.agent} {one.cause}"))
        agent.followup("go")
        await trio.sleep(1)
        assert len(runtime.agents) == 3
        if how == "cancel":
            agent.cancel("enough")
            await agent.wait_idle()
        else:
            await agent.dispose()
        cause = "enough" if how == "cancel" else "disposed"
        children = children_of(agent.session.events())
        assert sorted(order[:2]) == sorted(f"{child} parent" for child in children)
        assert order[2:] == [f"p {cause}"]
        assert len(family.model.requests) == 3
        assert set(runtime.agents) <= {"p"}
        for child in children:
            (end,) = [
                event.data
                for event in await runtime.events_of(child)
                if isinstance(event.data, events.TurnEnded)
            ]
            assert (end.reason, end.cause) == ("aborted", "parent")


async def test_cancelling_one_call_ends_its_child_alone(autojump_clock: MockClock) -> None:
    family = Family(delegations("hang", "dig"), Text("done"))
    async with open_test_runtime(model=family.model) as runtime:
        runtime.tools.register(delegating(runtime))
        agent = await runtime.create_agent("p")
        agent.followup("go")
        await trio.sleep(1)
        assert agent.cancel_call(call_id(1, 1, 0))
        await agent.wait_idle()
        assert [end.reason for end in ends(agent)] == ["completed"]
        codes = [result.code for result in facts(agent, ToolResultLogged)]
        assert codes == ["TOOL_CANCELLED", None]


async def test_a_host_that_cancels_ends_parent_and_child(autojump_clock: MockClock) -> None:
    family = Family(delegations("hang"))
    store = MemoryStore()
    with trio.move_on_after(2):
        async with open_test_runtime(model=family.model, store=store) as runtime:
            runtime.tools.register(delegating(runtime))
            agent = await runtime.create_agent("p")
            await agent.ask("go")
    assert [end.cause for end in ends(agent)] == ["host-cancelled"]
    assert trio.current_time() == 2


async def test_a_child_goes_on_by_its_name() -> None:
    family = Family(delegations("dig"), Text("done"))
    async with open_test_runtime(model=family.model) as runtime:
        runtime.tools.register(delegating(runtime))
        agent = await runtime.create_agent("p")
        await agent.ask("go")
        (child,) = children_of(agent.session.events())
        family._answers = iter([[ToolCall("delegate", task="fill", child=child)], Text("done")])
        await agent.ask("again")
        assert children_of(agent.session.events()) == [child, child]
        history = [text_of(one.content) for one in family.model.requests[-2].history]  # type: ignore[union-attr]
        assert history == ["dig", "did dig", "fill"]


async def test_only_a_parents_own_children_go_on() -> None:
    family = Family([ToolCall("delegate", task="spy", child="other")], Text("done"))
    async with open_test_runtime(model=family.model) as runtime:
        runtime.tools.register(delegating(runtime))
        await (await runtime.create_agent("other")).dispose()
        agent = await runtime.create_agent("p")
        await agent.ask("go")
        (result,) = facts(agent, ToolResultLogged)
        assert result.code == "TOOL_FAILED"
        assert UnknownSessionError.__name__ in text_of(result.content)
        assert family.tasks == []


async def test_two_calls_can_not_work_with_one_child() -> None:
    family = Family(delegations("dig"), Text("done"))
    async with open_test_runtime(model=family.model) as runtime:
        runtime.tools.register(delegating(runtime))
        agent = await runtime.create_agent("p")
        await agent.ask("go")
        (child,) = children_of(agent.session.events())
        both = [ToolCall("delegate", task="fill", child=child) for _ in range(2)]
        family._answers = iter([both, Text("done")])
        await agent.ask("again")
        codes = [result.code for result in facts(agent, ToolResultLogged)]
        assert sorted(map(str, codes)) == ["None", "None", "TOOL_FAILED"]
        (failed,) = [one for one in facts(agent, ToolResultLogged) if one.is_error]
        assert SessionLockedError.__name__ in text_of(failed.content)


async def test_a_child_has_its_parents_place(autojump_clock: MockClock) -> None:
    @tool
    async def work() -> str:
        """Work."""
        return "worked"

    def answer(request: Request) -> Entry:
        if len(request.history) > 1:
            return Text("done")
        return ToolCall("delegate", task="dig") if request.session == "p" else ToolCall("work")

    limits = Limits(calls_max=1, runtime_calls_max=1)
    model = ScriptedModel(answer)
    async with open_test_runtime(model=model, tools=[work], limits=limits) as runtime:
        runtime.tools.register(delegating(runtime))
        agent = await runtime.create_agent("p")
        with trio.fail_after(10):
            assert (await agent.ask("go")).text == "done"


async def test_a_failing_child_concerns_its_call_alone() -> None:
    family = Family(delegations("dig", "fill"), Text("done"))
    async with open_test_runtime(model=family.model) as runtime:

        @tool(mode="concurrent")
        async def delegate(task: str, context: ToolContext) -> str:
            """Let a child do it, badly."""
            async with runtime.delegate(context) as child:
                await child.ask(task)
                if task == "dig":
                    raise ValueError("on purpose")
                return "fine"

        runtime.tools.register(delegate)
        agent = await runtime.create_agent("p")
        assert (await agent.ask("go")).reason == "completed"
        codes = [result.code for result in facts(agent, ToolResultLogged)]
        assert codes == ["TOOL_FAILED", None]
        assert list(runtime.agents) == ["p"]
