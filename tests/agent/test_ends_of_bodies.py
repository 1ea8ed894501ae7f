"""Watchers learn that a body has ended though its result still waits for its turn (H5, T4)."""

import trio
from trio.testing import MockClock

from tests.agent.reading import facts
from trioloop import tool
from trioloop.agent.agent import Agent
from trioloop.events import ToolResultLogged
from trioloop.ids import CallId
from trioloop.testing import ScriptedModel, Text, ToolCall, open_test_runtime


@tool(effects="read-only")
async def work(seconds: float) -> str:
    """Work for some time."""
    await trio.sleep(seconds)
    return "done"


def _told(agent: Agent) -> list[tuple[CallId, float]]:
    """Which bodies ended when, as it is told."""
    told: list[tuple[CallId, float]] = []
    agent.on("tool-body-end", lambda one: told.append((one.call, trio.current_time())))
    return told


async def test_the_end_of_a_body_is_told_while_its_result_waits(
    autojump_clock: MockClock,
) -> None:
    calls = [ToolCall("work", seconds=3), ToolCall("work", seconds=1)]
    async with open_test_runtime(model=ScriptedModel([calls, Text("ok")]), tools=[work]) as runtime:
        agent = await runtime.create_agent("a")
        told = _told(agent)
        await agent.ask("go")
        slow, quick = [fact.call for fact in facts(agent, ToolResultLogged)]
        assert told == [(quick, 1), (slow, 3)]
        results = [event for event in agent.session.events() if event.type == "tool/result"]
        assert [event.time for event in results] == [3000, 3000]


async def test_each_body_that_ran_is_told_to_have_ended_once(autojump_clock: MockClock) -> None:
    calls = [ToolCall("work", seconds=1), ToolCall("work", seconds=9), ToolCall("nowhere")]
    async with open_test_runtime(model=ScriptedModel([calls]), tools=[work]) as runtime:
        agent = await runtime.create_agent("a")
        told = _told(agent)
        agent.followup("go")
        await trio.sleep(2)
        agent.cancel()
        await agent.wait_idle()
        done, cancelled, unknown = facts(agent, ToolResultLogged)
        assert unknown.code == "UNKNOWN_TOOL"
        assert told == [(done.call, 1), (cancelled.call, 2)]


async def test_a_watcher_of_the_runtime_hears_whose_body_ended(autojump_clock: MockClock) -> None:
    model = ScriptedModel([ToolCall("work", seconds=1), Text("ok")])
    async with open_test_runtime(model=model, tools=[work]) as runtime:
        whose: list[str] = []
        runtime.on("tool-body-end", lambda one: whose.append(one.agent))
        agent = await runtime.create_agent("a")
        await agent.ask("go")
        assert whose == ["a"]
