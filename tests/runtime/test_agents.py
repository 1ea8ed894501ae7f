"""Making, resuming and naming agents, and several of them at once (S1, I5, D5)."""

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import admitted, ends, pending, reasons, said, types
from trioloop.errors import (
    DuplicateToolError,
    InvalidInputError,
    SessionExistsError,
    SessionLockedError,
    UnknownSessionError,
)
from trioloop.events import CallConfig
from trioloop.limits import Limits
from trioloop.log.rebuild import Request
from trioloop.models.scripted import Entry
from trioloop.store import MemoryStore
from trioloop.testing import Fail, ScriptedModel, Stall, Text, Wait, open_test_runtime, seeded_ids
from trioloop.tools.tool import tool


@tool
async def look() -> str:
    """Look around."""
    return "seen"


async def test_a_name_is_made_where_none_is_given(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agents = [await runtime.create_agent() for _ in range(3)]
        assert len({agent.name for agent in agents}) == 3
        assert list(runtime.agents.values()) == agents


@pytest.mark.parametrize("name", ["", "A", "a b", "../a", "a" * 65, "-a", "é"])
async def test_a_name_of_another_form_is_refused(name: str, autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        with pytest.raises(InvalidInputError):
            await runtime.create_agent(name)
        with pytest.raises(InvalidInputError):
            await runtime.resume_agent(name)
        assert runtime.agents == {}


async def test_a_name_that_is_taken_is_refused(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        with pytest.raises(SessionExistsError):
            await runtime.create_agent("a")
        with pytest.raises(SessionLockedError):
            await runtime.resume_agent("a")
        await agent.dispose()
        with pytest.raises(SessionExistsError):
            await runtime.create_agent("a")
        with pytest.raises(UnknownSessionError):
            await runtime.resume_agent("nobody")


async def test_of_two_who_take_a_name_at_once_one_wins(autojump_clock: MockClock) -> None:
    outcomes: list[str] = []

    async with open_test_runtime(model=ScriptedModel([])) as runtime:

        async def create() -> None:
            try:
                await runtime.create_agent("a")
                outcomes.append("made")
            except SessionExistsError:
                outcomes.append("refused")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(create)
            nursery.start_soon(create)
        assert sorted(outcomes) == ["made", "refused"]
        assert list(runtime.agents) == ["a"]


async def test_an_agent_that_cant_be_made_leaves_its_name_free(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("x")])) as runtime:
        with pytest.raises(DuplicateToolError):
            await runtime.create_agent("a", tools=[look, look])
        assert runtime.agents == {}
        agent = await runtime.create_agent("a", tools=[look])
        assert (await agent.ask("one")).reason == "completed"


async def test_a_cancelled_creation_leaves_its_name_free(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        with trio.CancelScope() as scope:
            scope.cancel()
            await runtime.create_agent("a")
        assert runtime.agents == {}
        await runtime.create_agent("a")


async def test_resuming_goes_on_where_the_log_ends(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    async with open_test_runtime(model=ScriptedModel([Text("1"), Stall()]), store=store) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        agent.inject("context")
    model = ScriptedModel([Text("2")])
    async with open_test_runtime(model=model, store=store) as runtime:
        again = await runtime.resume_agent("a")
        await trio.sleep(10)
        assert reasons(again) == ["completed"]
        assert pending(again) == ["context"]
        seq = again.session.seq
        settled = await again.ask("two")
        assert settled.turn == 2
        assert again.session.events()[seq + 1].seq == seq + 1
        assert said(model.requests[0]) == ["U one", "A 1", "U context", "U two"]


async def test_resuming_twice_appends_nothing(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    async with open_test_runtime(model=ScriptedModel([Text("1")]), store=store) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        length = agent.session.seq
    for _ in range(2):
        async with open_test_runtime(model=ScriptedModel([]), store=store) as runtime:
            again = await runtime.resume_agent("a")
            assert again.session.seq == length


async def test_what_was_pending_runs_at_the_next_wake(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    async with open_test_runtime(model=ScriptedModel([Fail("AUTH")]), store=store) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        agent.followup("two")
        await agent.wait_idle()
    async with open_test_runtime(model=ScriptedModel([Text("2")]), store=store) as runtime:
        again = await runtime.resume_agent("a")
        again.wake()
        await again.wait_idle()
        assert admitted(again) == ["one", "two"]
        assert reasons(again) == ["error", "completed"]


async def test_a_wake_with_nothing_pending_does_nothing(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.wake()
        assert agent.status == "idle"
        await trio.sleep(1)
        assert types(agent) == []


async def test_a_wake_runs_an_injected_context(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("x")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.inject("context")
        agent.wake()
        await agent.wait_idle()
        assert admitted(agent) == ["context"]


async def test_agents_work_at_once_and_one_that_fails_hurts_no_other(
    autojump_clock: MockClock,
) -> None:
    def answer(request: Request) -> Entry:
        number = int(request.session[1:])
        if number % 3 == 0:
            return Fail("SERVER")
        return [Wait(5), Text(str(number))] if number % 3 == 1 else Stall()

    async with open_test_runtime(model=ScriptedModel(answer)) as runtime:
        agents = [await runtime.create_agent(f"a{number}") for number in range(30)]
        for agent in agents:
            agent.followup("one")
        await trio.sleep(10)
        for agent in agents[2::3]:
            agent.cancel()
        await runtime.wait_idle()
        assert trio.current_time() == 10
        for number, agent in enumerate(agents):
            assert reasons(agent) == [("error", "completed", "aborted")[number % 3]]


async def test_an_agents_tools_are_its_own(autojump_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: Text("x"))
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a", tools=[look])
        other = await runtime.create_agent("b")
        await agent.ask("one")
        await other.ask("one")
        assert [[one.name for one in request.tools] for request in model.requests] == [["look"], []]


async def test_equal_seeds_give_equal_logs(autojump_clock: MockClock) -> None:
    logs = []
    for _ in range(2):
        model = ScriptedModel([Fail("SERVER"), Text("x")])
        async with open_test_runtime(model=model, ids=seeded_ids(7), clock=lambda: 5) as runtime:
            agent = await runtime.create_agent()
            await agent.ask("one")
            await agent.ask("two")
            logs.append(agent.session.events())
    assert logs[0] == logs[1]


@pytest.mark.parametrize(
    "wrong", [{"calls_max": 0}, {"grace_s": -1}, {"close_s": float("nan")}, {"calls_max": 1.5}]
)
def test_a_limit_that_is_none_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises((InvalidInputError, TypeError)):
        Limits(**wrong)  # type: ignore[arg-type]


async def test_something_else_than_a_model_is_refused(autojump_clock: MockClock) -> None:
    async def run() -> None:
        async with open_test_runtime(model=5):  # type: ignore[arg-type]
            raise AssertionError

    with pytest.raises(InvalidInputError):
        await run()
    config = CallConfig(provider="x", model="y")
    async with open_test_runtime(config=config) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        assert ends(agent)[0].reason == "error"


async def test_stored_events_are_read_whether_or_not_the_session_is_live() -> None:
    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("hello")
        live = await runtime.stored_events("a", after=2, limit=2)
        await agent.dispose()
        assert [row.seq for row in live] == [3, 4]
        assert await runtime.stored_events("a", after=2, limit=2) == live
        assert [one.session for one in await runtime.stored_sessions()] == ["a"]
        with pytest.raises(UnknownSessionError):
            await runtime.stored_events("b")
