"""Whose context variables a driver runs in (R9)."""

from contextvars import ContextVar

import trio
from trio.testing import MockClock

from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import Decision, PreStep, TurnStopping
from trioloop.testing import ScriptedModel, Text, ToolCall, open_test_runtime
from trioloop.tools.tool import tool

who: ContextVar[str] = ContextVar("who", default="nobody")


async def test_a_driver_runs_in_the_agents_own_context_not_the_senders(
    autojump_clock: MockClock,
) -> None:
    seen: list[str] = []

    async def look(step: PreStep, next: Next[Decision]) -> Decision:
        seen.append(who.get())
        return await next()

    async with open_test_runtime(model=ScriptedModel(lambda _: Text("x"))) as runtime:
        runtime.hooks.pre_step.add(look)
        who.set("creator of a")
        agent = await runtime.create_agent("a")
        who.set("creator of b")
        other = await runtime.create_agent("b")
        who.set("sender")
        await agent.ask("one")
        await other.ask("one")
        agent.followup("two")
        await agent.wait_idle()
    assert seen == ["creator of a", "creator of b", "creator of a"]


async def test_what_a_turn_sets_does_not_reach_another_agent(autojump_clock: MockClock) -> None:
    seen: list[str] = []

    async def mark(step: PreStep, next: Next[Decision]) -> Decision:
        who.set(step.agent.name)
        await trio.sleep(1)
        seen.append(f"{step.agent.name} sees {who.get()}")
        return await next()

    async with open_test_runtime(model=ScriptedModel(lambda _: Text("x"))) as runtime:
        runtime.hooks.pre_step.add(mark)
        agents = [await runtime.create_agent(name) for name in ("a", "b")]
        for agent in agents:
            agent.followup("one")
        await runtime.wait_idle()
        assert who.get() == "nobody"
    assert sorted(seen) == ["a sees a", "b sees b"]


async def test_a_call_runs_in_its_turns_context(autojump_clock: MockClock) -> None:
    seen: list[str] = []

    @tool(effects="read-only")
    async def look() -> str:
        seen.append(who.get())
        who.set("a call")
        return "seen"

    async def mark(step: PreStep, next: Next[Decision]) -> Decision:
        who.set("the turn")
        return await next()

    async def stopping(turn: TurnStopping) -> None:
        seen.append(who.get())

    model = ScriptedModel([[ToolCall("look"), ToolCall("look")], Text("x")])
    async with open_test_runtime(model=model, tools=[look]) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(mark)
        agent.hooks.turn_stopping.add(stopping)
        await agent.ask("one")
    assert seen == ["the turn", "the turn", "the turn"]
