"""What may happen while an agent's creation is told (S1, H5; LIF-09, LIF-10, LIF-22)."""

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import pending, types
from trioloop.agent.notifications import Created
from trioloop.errors import AgentDisposedError
from trioloop.testing import ScriptedModel, Text, open_test_runtime


async def test_a_listener_that_raises_at_the_creation_leaves_the_agent(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    def boom(created: Created) -> None:
        raise ValueError("boom")

    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        runtime.on("created", boom)
        agent = await runtime.create_agent("a")
        assert (await agent.ask("one")).text == "hi"
    assert "boom" in caplog.text


async def test_a_listener_may_inject_a_context_that_the_first_request_has(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([Text("hi")])
    async with open_test_runtime(model=model) as runtime:
        runtime.on("created", lambda one: runtime.agents[one.agent].inject("context"))
        agent = await runtime.create_agent("a")
        assert pending(agent) == ["context"]
        await agent.ask("one")
    assert len(model.requests[0].history) == 2


async def test_a_disposal_from_the_creation_leaves_a_log_without_turns(
    autojump_clock: MockClock,
) -> None:
    async with (
        open_test_runtime(model=ScriptedModel([])) as runtime,
        trio.open_nursery() as nursery,
    ):
        runtime.on("created", lambda one: nursery.start_soon(runtime.agents[one.agent].dispose))
        agent = await runtime.create_agent("a")
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(AgentDisposedError):
            agent.followup("one")
        assert types(agent) == []
        assert runtime.agents == {}


async def test_a_listener_that_is_removed_as_it_hears_of_it_hears_no_more(
    autojump_clock: MockClock,
) -> None:
    heard: list[str] = []

    def once(created: Created) -> None:
        heard.append(created.agent)
        registration.close()

    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        registration = runtime.on("created", once)
        runtime.on("created", lambda one: heard.append(f"other: {one.agent}"))
        await runtime.create_agent("a")
        await runtime.create_agent("b")
        registration.close()
    assert heard == ["a", "other: a", "other: b"]
