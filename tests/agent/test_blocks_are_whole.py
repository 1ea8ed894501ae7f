"""Whoever observes the first event of a block finds all of it in the log: it is one append."""

import trio
from trio.testing import MockClock

from tests.agent.listening import retrying
from tests.agent.reading import types
from trioloop.agent.agent import Agent
from trioloop.events import Event, EventData, InboxSpliced, StepStarted, TurnEnded, TurnStarted
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import Decision, PreStep
from trioloop.testing import Fail, ScriptedModel, Text, open_test_runtime


def log_at(agent: Agent, kind: type[EventData]) -> list[list[str]]:
    """The types of the log's events, each time that an event of a class is observed."""
    seen: list[list[str]] = []

    def observe(event: Event) -> None:
        if isinstance(event.data, kind):
            seen.append([one.type for one in agent.session.events()])

    agent.session.observe(observe)
    return seen


async def test_a_turn_starts_with_its_first_claim(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        seen = log_at(agent, TurnStarted)
        await agent.ask("one")
    assert seen == [
        ["session/opened", "agent/inbox/spliced", "turn/start", "agent/inbox/spliced"],
    ]


async def test_a_step_is_admitted_whole(autojump_clock: MockClock) -> None:
    model = ScriptedModel([Text("hi")])
    async with open_test_runtime(model=model, system="You are terse.") as runtime:
        agent = await runtime.create_agent("a")
        seen = log_at(agent, StepStarted)
        await agent.ask("one")
    assert seen[0][-5:] == [
        "step/start",
        "system/message",
        "user/message",
        "request/header",
        "request/context",
    ]


async def test_a_turn_ends_as_the_one_that_repeats_it_starts(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Fail("SERVER"), Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        seen = log_at(agent, TurnEnded)
        agent.hooks.request_error.add(retrying(fresh_turn=True))
        await agent.ask("one")
    assert seen[0][-2:] == ["turn/end", "turn/start"]


async def test_what_goes_back_does_so_as_the_turn_ends(autojump_clock: MockClock) -> None:
    async def wait(step: PreStep, next: Next[Decision]) -> Decision:
        await trio.sleep_forever()
        return await next()

    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(wait)
        agent.followup("one")
        await trio.sleep(1)
        seen = log_at(agent, InboxSpliced)
        agent.cancel()
        await agent.wait_idle()
        assert types(agent) == ["turn/start", "turn/end"]
    assert [log[-2:] for log in seen] == [["agent/inbox/spliced", "turn/end"]]
