"""`delegate` gives tasks to children, whose answers are results (R9, T14; B07, B21)."""

from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import ends, facts
from trioloop import CallConfig, Event, Limits, MemoryStore, Request, Runtime, events, tool
from trioloop.events import AgentDelegated, ToolResultLogged
from trioloop.messages import text_of
from trioloop.models.scripted import Entry
from trioloop.plugins import Budget, Delegate, limits, subagents
from trioloop.plugins.subagents import ORIGIN, ChildOpened, ChildSettled
from trioloop.runtime.open import Plugin
from trioloop.testing import Fail, ScriptedModel, Stall, Text, ToolCall, open_test_runtime


class Family(ScriptedModel):
    """A model of a parent, which answers as scripted, and of children, which answer their task.

    Attributes:
        tasks: what children were asked, in order.
    """

    def __init__(self, *answers: Entry, **options: Any) -> None:
        super().__init__(self._answer, **options)
        self.tasks: list[str] = []
        self._answers = iter(answers)
        self._tasks: dict[str, Entry] = {
            "hang": Stall(),
            "fail": Fail("AUTH", message="the key is wrong"),
            "look": ToolCall("look"),
            "deeper": ToolCall("delegate", task="dig"),
        }

    def _answer(self, request: Request) -> Entry:
        if request.session == "p":
            return next(self._answers)
        last = list(request.messages)[-1]
        text = text_of(last.content)  # type: ignore[union-attr]
        self.tasks.append(text)
        return self._tasks.get(text, Text(f"did {text}"))


def delegate(task: str, **more: str) -> ToolCall:
    """A call that gives a task."""
    return ToolCall("delegate", task=task, **more)


def children(log: tuple[Event, ...]) -> list[str]:
    """The children that a log names, in order."""
    return [event.data.child for event in log if isinstance(event.data, AgentDelegated)]


async def test_a_childs_answer_is_the_result_of_its_call() -> None:
    model = Family([delegate("dig"), delegate("fill")], Text("done"))
    async with open_test_runtime(model=model, plugins=[subagents]) as runtime:
        agent = await runtime.create_agent("p")
        assert (await agent.ask("go")).text == "done"
        first, second = facts(agent, ToolResultLogged)
        assert text_of(first.content).startswith("did dig\n\n[s")
        assert text_of(second.content).startswith("did fill\n\n[s")
        settled = facts(agent, ChildSettled)
        assert {one.reason for one in settled} == {"completed"}
        assert sorted(one.child for one in settled) == sorted(children(agent.session.events()))
        assert all(one.usage.output_tokens == 5 for one in settled)
        log = await runtime.events_of(settled[0].child)
        assert ORIGIN(log) == ChildOpened(settled[0].call, "delegate", 1)


async def test_a_child_that_fails_concerns_its_call_alone() -> None:
    model = Family([delegate("dig"), delegate("fail"), delegate("fill")], Text("done"))
    async with open_test_runtime(model=model, plugins=[subagents]) as runtime:
        agent = await runtime.create_agent("p")
        assert (await agent.ask("go")).text == "done"
        results = facts(agent, ToolResultLogged)
        assert [one.code for one in results] == [None, "SUBAGENT_FAILED", None]
        assert [one.is_error for one in results] == [False, True, False]
        told = text_of(results[1].content)
        assert "was stopped by an error (AUTH): the key is wrong" in told
        assert "Traceback" not in told
        assert sorted(model.tasks) == ["dig", "fail", "fill"]


async def test_a_later_call_goes_on_with_a_child_also_in_another_life() -> None:
    store = MemoryStore()
    model = Family(delegate("dig"), Text("done"))
    async with open_test_runtime(model=model, store=store, plugins=[subagents]) as runtime:
        agent = await runtime.create_agent("p")
        await agent.ask("go")
        (child,) = children(agent.session.events())
    model = Family(delegate("fill", agent=child), Text("done"))
    async with open_test_runtime(model=model, store=store, plugins=[subagents]) as runtime:
        agent = await runtime.resume_agent("p")
        await agent.ask("go on")
        assert children(agent.session.events()) == [child, child]
        (asked,) = [one for one in model.requests if one.session == child]
        assert [text_of(one.content) for one in asked.messages] == ["dig", "did dig", "fill"]  # type: ignore[union-attr]
        assert [one.turn for one in facts(agent, ChildSettled)] == [1, 2]


@pytest.mark.parametrize("name", ["nobody", "other", "Not a name!"])
async def test_an_agent_that_is_no_child_can_not_be_gone_on_with(name: str) -> None:
    model = Family(delegate("spy", agent=name), Text("done"))
    async with open_test_runtime(model=model, plugins=[subagents]) as runtime:
        await (await runtime.create_agent("other")).dispose()
        agent = await runtime.create_agent("p")
        await agent.ask("go")
        (result,) = facts(agent, ToolResultLogged)
        assert result.is_error
        assert f"there is no agent {name!r}" in text_of(result.content)
        assert model.tasks == []


async def test_the_parents_cancel_ends_all_children_first(autojump_clock: MockClock) -> None:
    model = Family([delegate("hang"), delegate("hang")])
    order: list[str] = []
    async with open_test_runtime(model=model, plugins=[subagents]) as runtime:
        agent = await runtime.create_agent("p")
        runtime.on("settled", lambda one: order.append(f"{one.reason} {one.cause}"))
        agent.followup("go")
        await trio.sleep(1)
        agent.cancel()
        await agent.wait_idle()
        assert order == ["aborted parent", "aborted parent", "aborted user"]
        assert len(model.requests) == 3
        assert list(runtime.agents) == ["p"]


async def test_a_task_may_have_a_time_limit(autojump_clock: MockClock) -> None:
    model = Family([delegate("hang"), delegate("dig")], Text("done"))
    plugin = partial(_with, Delegate(timeout_s=5))
    async with open_test_runtime(model=model, plugins=[plugin]) as runtime:
        agent = await runtime.create_agent("p")
        assert (await agent.ask("go")).text == "done"
        codes = [one.code for one in facts(agent, ToolResultLogged)]
        assert codes == ["TOOL_TIMEOUT", None]
        assert trio.current_time() == 5


def _with(kind: Delegate, runtime: Runtime) -> Any:
    return subagents(runtime, kind)


@pytest.mark.parametrize(("depth_max", "deep"), [(1, False), (2, True)])
async def test_delegating_goes_no_deeper_than_it_may(depth_max: int, deep: bool) -> None:
    model = Family(delegate("deeper"), Text("done"))
    plugin = partial(subagents, depth_max=depth_max)
    async with open_test_runtime(model=model, plugins=[plugin]) as runtime:
        agent = await runtime.create_agent("p")
        await agent.ask("go")
        (child,) = children(agent.session.events())
        grandchildren = children(tuple(await runtime.events_of(child)))
        assert bool(grandchildren) is deep
        declared = {str(one.session): len(one.tools) for one in model.requests}
        assert declared["p"] == 1
        assert declared[child] == int(deep)
        for one in grandchildren:
            origin = ORIGIN(await runtime.events_of(one))
            assert origin is not None
            assert origin.depth == 2


async def test_a_fork_of_a_conversation_is_as_deep_as_that_was() -> None:
    model = Family(delegate("dig"), Text("done"))
    plugin = partial(subagents, depth_max=1)
    async with open_test_runtime(model=model, plugins=[plugin]) as runtime:
        agent = await runtime.create_agent("p")
        await agent.ask("go")
        (child,) = children(agent.session.events())
        await (await runtime.fork_agent("p", "f")).ask("hi")
        await (await runtime.fork_agent(child, "g")).ask("hi")
        declared = {str(one.session): len(one.tools) for one in model.requests}
        assert (declared["f"], declared["g"]) == (1, 0)


async def test_a_budget_of_a_tree_is_that_of_children_too() -> None:
    @tool(effects="read-only")
    async def look() -> str:
        """Look."""
        return "look"  # which makes the model look again

    model = Family(delegate("look"), Text("done"))
    plugins: list[Plugin] = [subagents, partial(limits, tree=Budget(steps=4))]
    async with open_test_runtime(model=model, tools=[look], plugins=plugins) as runtime:
        agent = await runtime.create_agent("p")
        settled = await agent.ask("go")
        assert settled.code == "TREE_STEPS_LIMIT"
        assert len(model.requests) == 4
        (result,) = facts(agent, ToolResultLogged)
        assert "(TREE_STEPS_LIMIT)" in text_of(result.content)


async def test_what_a_tree_spent_is_read_from_its_logs_in_another_life() -> None:
    store = MemoryStore()
    model = Family([delegate("dig"), delegate("deeper")], Text("done"))
    async with (
        open_test_runtime(model=model, store=store, plugins=[subagents]) as runtime,
        limits(runtime) as spending,
    ):
        agent = await runtime.create_agent("p")
        await agent.ask("go")
        before = await spending.tree(agent)
    assert before.steps == len(model.requests) == 6
    model = Family(Text("again"))
    async with (
        open_test_runtime(model=model, store=store, plugins=[subagents]) as runtime,
        limits(runtime) as spending,
    ):
        agent = await runtime.resume_agent("p")
        after = await spending.tree(agent)
        assert (after.steps, after.tokens, after.calls) == (6, before.tokens, before.calls)
        await agent.ask("hm")
        assert (await spending.tree(agent)).steps == 7


async def test_a_child_that_goes_on_is_counted_once() -> None:
    store = MemoryStore()
    model = Family(delegate("dig"), Text("done"))
    async with (
        open_test_runtime(model=model, store=store, plugins=[subagents]) as runtime,
        limits(runtime) as spending,
    ):
        agent = await runtime.create_agent("p")
        await agent.ask("go")
        (child,) = children(agent.session.events())
        counts = [(await spending.tree(agent)).steps]
        seen: list[int] = []

        @runtime.hooks.turn_stopping
        async def count(turn: Any) -> None:
            seen.append((await spending.tree(turn.agent)).steps)

        model._answers = iter([delegate("fill", agent=child), Text("done")])
        await agent.ask("on")
        counts.append((await spending.tree(agent)).steps)
        assert (counts, seen) == ([3, 6], [5, 6])


async def test_kinds_have_tools_prompts_and_settings_of_their_own() -> None:
    @tool(effects="read-only")
    async def look() -> str:
        """Look."""
        return "seen"

    kinds = (
        Delegate(name="research", system="You search.", tools=[look]),
        Delegate(name="write", config=CallConfig(provider="scripted", model="other")),
    )
    model = Family([ToolCall("research", task="a"), ToolCall("write", task="b")], Text("done"))
    other = ScriptedModel(model._answer, name="other")
    async with (
        open_test_runtime(model=model, models=[other], system="Be brief.") as runtime,
        subagents(runtime, *kinds),
    ):
        agent = await runtime.create_agent("p")
        await agent.ask("go")
    research, write = model.requests[1], other.requests[0]
    assert {one.name for one in research.tools} == {"research", "write", "look"}
    assert [part.text for part in research.system] == ["Be brief.", "You search."]
    assert {one.name for one in write.tools} == {"research", "write"}
    assert [part.text for part in write.system] == ["Be brief."]


async def test_a_child_goes_on_by_the_tool_that_made_it() -> None:
    kinds = (Delegate(name="research"), Delegate(name="write"))
    model = Family(ToolCall("research", task="a"), Text("done"))
    async with open_test_runtime(model=model) as runtime, subagents(runtime, *kinds):
        agent = await runtime.create_agent("p")
        await agent.ask("go")
        (child,) = children(agent.session.events())
        model._answers = iter([ToolCall("write", task="b", agent=child), Text("done")])
        await agent.ask("on")
        result = facts(agent, ToolResultLogged)[-1]
        assert (
            text_of(result.content) == f"{child} was made by research: call that to go on with it"
        )
        assert list(runtime.agents) == ["p"]


async def test_one_place_is_enough_for_a_whole_tree(autojump_clock: MockClock) -> None:
    @tool
    async def look() -> str:
        """Look."""
        return "seen"

    model = Family([delegate("look"), delegate("deeper")], Text("done"))
    places = Limits(calls_max=1, runtime_calls_max=1)
    async with open_test_runtime(
        model=model, tools=[look], limits=places, plugins=[subagents]
    ) as runtime:
        with trio.fail_after(10):
            assert (await (await runtime.create_agent("p")).ask("go")).text == "done"


async def test_a_killed_child_goes_on_and_its_parents_log_names_it() -> None:
    store = MemoryStore()
    model = Family(delegate("hang"))
    with trio.move_on_after(0.2):
        async with open_test_runtime(model=model, store=store, plugins=[subagents]) as runtime:
            agent = await runtime.create_agent("p")
            await agent.ask("go")
    (child,) = children(agent.session.events())
    assert [end.cause for end in ends(agent)] == ["host-cancelled"]
    model = Family(delegate("dig", agent=child), Text("done"))
    async with open_test_runtime(model=model, store=store, plugins=[subagents]) as runtime:
        agent = await runtime.resume_agent("p")
        assert (await agent.ask("go on")).text == "done"
        (end, _) = [
            event.data
            for event in await runtime.events_of(child)
            if isinstance(event.data, events.TurnEnded)
        ]
        assert (end.reason, end.cause) == ("aborted", "parent")
