"""The end of an agent's registration, and waiting for it to be idle (I5, I7, S1, P18)."""

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import ends, pass_waits, pending, reasons, status, types
from trioloop.agent.notifications import Disposed, StatusChanged
from trioloop.errors import AgentDisposedError, SessionLockedError
from trioloop.events import TurnStarted
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import Decision, PreStep, TurnStopping
from trioloop.store import MemoryStore
from trioloop.testing import Fail, ScriptedModel, Stall, Text, Wait, open_test_runtime


async def test_waiting_for_an_idle_agent_returns_at_once(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        await agent.wait_idle()
        assert trio.current_time() == 0


async def test_waiting_for_idle_ends_behind_a_failing_turn(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([[Wait(3), Fail("AUTH")]])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("hello")
        await agent.wait_idle()
        assert trio.current_time() == 3
        assert reasons(agent) == ["error"]


async def test_idle_waits_for_the_whole_queue(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([[Wait(1), Text("x")]] * 3)) as runtime:
        agent = await runtime.create_agent("a")
        for text in "abc":
            agent.followup(text)
        await agent.wait_idle()
        assert trio.current_time() == 3


async def test_disposing_closes_the_turn_and_keeps_what_is_pending(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    async with open_test_runtime(model=ScriptedModel([Stall(), Text("2")]), store=store) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        agent.followup("two")
        await trio.sleep(1)
        await agent.dispose()
        assert trio.current_time() == 1
        assert [(end.reason, end.cause) for end in ends(agent)] == [("aborted", "disposed")]
        assert status(agent) == "idle"
        assert pending(agent) == ["two"]
        again = await runtime.resume_agent("a")
        assert pending(again) == ["two"]
        await trio.sleep(10)
        assert len(ends(again)) == 1
        again.wake()
        await again.wait_idle()
        assert reasons(again) == ["aborted", "completed"]


async def test_disposing_may_discard_what_is_pending(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Stall()])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        agent.followup("two")
        await trio.sleep(1)
        await agent.dispose(discard_inbox=True)
        assert pending(agent) == []


async def test_a_disposed_agent_takes_nothing_more(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        id = agent.inject("context")
        await agent.dispose()
        before = agent.session.seq
        with pytest.raises(AgentDisposedError):
            agent.followup("x")
        with pytest.raises(AgentDisposedError):
            agent.inject("x")
        with pytest.raises(AgentDisposedError):
            agent.wake()
        with pytest.raises(AgentDisposedError):
            agent.inbox.remove(id)
        with pytest.raises(AgentDisposedError):
            agent.inbox.clear()
        agent.cancel(discard_inbox=True)
        assert agent.session.seq == before
        assert "a" not in runtime.agents


async def test_sends_are_refused_from_the_moment_that_disposal_begins(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([Stall()])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.dispose)
            await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()
            with pytest.raises(AgentDisposedError):
                agent.steer("x")


async def test_the_log_of_a_disposed_agent_takes_nothing_more(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    async with open_test_runtime(model=ScriptedModel([Text("hi")]), store=store) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await agent.wait_idle()
        await agent.dispose()
        before = agent.session.events()
        with pytest.raises(AgentDisposedError, match="resume_agent"):
            agent.session.append(TurnStarted(2))
        assert agent.session.events() == before
        resumed = await runtime.resume_agent("a")
        assert resumed.session.events() == before


async def test_disposals_at_once_share_one_end(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Stall()])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        told: list[object] = []
        agent.on("disposed", told.append)
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(agent.dispose)
        await agent.dispose()
        assert told == [Disposed(agent.name)]
        assert trio.current_time() == 1


async def test_a_disposal_goes_on_when_its_caller_is_cancelled(autojump_clock: MockClock) -> None:
    async def hold(turn: TurnStopping) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(5)

    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.turn_stopping.add(hold)
        agent.followup("one")
        await trio.sleep(1)
        with trio.move_on_after(1):
            await agent.dispose()
        assert "a" in runtime.agents
        await trio.sleep(10)
        assert "a" not in runtime.agents
        assert ends(agent)[0].cause == "disposed"


async def test_a_name_is_free_again_only_once_disposal_is_over(autojump_clock: MockClock) -> None:
    async def hold(turn: TurnStopping) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(5)

    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.turn_stopping.add(hold)
        agent.followup("one")
        await trio.sleep(1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.dispose)
            await trio.sleep(1)
            with pytest.raises(SessionLockedError):
                await runtime.resume_agent("a")
        again = await runtime.resume_agent("a")
        assert again is not agent


async def test_an_agent_may_be_disposed_of_from_inside_its_turn(autojump_clock: MockClock) -> None:
    async def stopping(turn: TurnStopping) -> None:
        await agent.dispose()
        await trio.sleep(100)

    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.turn_stopping.add(stopping)
        settled = await agent.ask("one")
        assert (settled.reason, settled.cause) == ("aborted", "disposed")
        await agent.dispose()
        assert trio.current_time() == 0
        assert "a" not in runtime.agents


async def test_a_disposal_from_the_running_notification_opens_no_turn(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        told: list[StatusChanged] = []
        agent.on("status", told.append)
        with agent.on("status", lambda _: dispose()):

            def dispose() -> None:
                agent.begin_disposal("disposed")

            agent.followup("one")
            await agent.dispose()
        assert types(agent) == []
        assert pending(agent) == ["one"]
        assert [one.status for one in told] == ["running", "idle"]


async def test_a_users_cancel_before_the_disposal_stays_the_cause(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([Stall()])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel("user")
        await agent.dispose()
        assert ends(agent)[0].cause == "user"


async def test_a_disposal_in_preparation_commits_nothing(autojump_clock: MockClock) -> None:
    async def slow(step: PreStep, next: Next[Decision]) -> Decision:
        await trio.sleep(5)
        await pass_waits()
        return await next()

    chunks: list[object] = []
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(slow)
        agent.on("stream-chunk", chunks.append)
        agent.followup("one")
        await trio.sleep(1)
        await agent.dispose()
        assert types(agent) == ["turn/start", "turn/end"]
        assert pending(agent) == ["one"]
        assert trio.current_time() == 1
    assert chunks == []


async def test_no_task_of_an_agent_outlives_its_disposal(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Stall(), Text("x")])) as runtime:
        await pass_waits()
        before = trio.lowlevel.current_statistics().tasks_living
        agent = await runtime.create_agent("a")
        assert trio.lowlevel.current_statistics().tasks_living == before
        agent.followup("one")
        await trio.sleep(1)
        await agent.dispose()
        await trio.testing.wait_all_tasks_blocked()
        assert trio.lowlevel.current_statistics().tasks_living == before


# Between turns


async def test_maintenance_waits_for_the_open_turn_and_holds_the_next(
    autojump_clock: MockClock,
) -> None:
    at: list[float] = []

    async def job() -> str:
        at.append(trio.current_time())
        await trio.sleep(10)
        at.append(trio.current_time())
        return "done"

    async with open_test_runtime(model=ScriptedModel([[Wait(2), Text("x")]] * 2)) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        agent.followup("two")
        await trio.sleep(1)
        assert await agent.run_maintenance(job) == "done"
        assert at == [2, 12]
        await agent.wait_idle()
        assert trio.current_time() == 14
        assert reasons(agent) == ["completed", "completed"]


async def test_a_wake_during_maintenance_opens_its_turn_afterwards(
    autojump_clock: MockClock,
) -> None:
    async def job() -> None:
        await trio.sleep(10)

    async with open_test_runtime(model=ScriptedModel([Text("x")])) as runtime:
        agent = await runtime.create_agent("a")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.run_maintenance, job)
            await trio.sleep(1)
            agent.followup("one")
            await trio.sleep(1)
            assert ends(agent) == []
        await agent.wait_idle()
        assert reasons(agent) == ["completed"]
        assert trio.current_time() == 10


async def test_a_message_removed_during_maintenance_opens_no_turn(
    autojump_clock: MockClock,
) -> None:
    async def job() -> None:
        await trio.sleep(10)

    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.run_maintenance, job)
            await trio.sleep(1)
            message = agent.followup("one")
            await trio.sleep(1)
            agent.inbox.remove(message)
        await agent.wait_idle()
        assert ends(agent) == []


async def test_a_disposal_ends_the_maintenance_that_runs(autojump_clock: MockClock) -> None:
    async def dispose() -> None:
        await trio.sleep(1)
        await agent.dispose()
        assert trio.current_time() == 1

    async with open_test_runtime(model=ScriptedModel([])) as runtime, trio.open_nursery() as own:
        agent = await runtime.create_agent("a")
        own.start_soon(dispose)
        with pytest.raises(AgentDisposedError):
            await agent.run_maintenance(trio.sleep_forever)


async def test_what_a_maintenance_job_raises_comes_out_as_it_is(autojump_clock: MockClock) -> None:
    async def job() -> None:
        raise KeyError("mine")

    async with open_test_runtime(model=ScriptedModel([Text("x")])) as runtime:
        agent = await runtime.create_agent("a")
        with pytest.raises(KeyError, match="mine"):
            await agent.run_maintenance(job)
        assert (await agent.ask("one")).reason == "completed"


async def test_all_who_wait_for_idle_are_told(autojump_clock: MockClock) -> None:
    told: list[float] = []

    async def wait() -> None:
        await agent.wait_idle()
        told.append(trio.current_time())

    async with open_test_runtime(model=ScriptedModel([[Wait(1), Text("x")]])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(wait)
    assert told == [1, 1, 1]


async def test_a_disposal_opens_no_turn_for_what_was_sent_behind_a_cancel(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([Stall()])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel("why")
        agent.followup("late")
        await agent.dispose()
        assert [(end.reason, end.cause) for end in ends(agent)] == [("aborted", "why")]
        assert pending(agent) == ["late"]
