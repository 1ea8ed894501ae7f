"""How a runtime is left: what it closes, what it waits for, and what comes out (R9, R10, P18)."""

import contextlib
from collections.abc import Callable

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import ends, pass_waits, pending, reasons
from trioloop.agent.agent import Agent
from trioloop.errors import AgentDisposedError, RuntimeClosedError
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import Decision, PreStep
from trioloop.runtime.runtime import Runtime
from trioloop.store import MemoryStore
from trioloop.testing import ScriptedModel, Stall, Text, Wait, open_test_runtime


class OwnError(BaseException):
    """An exception of the application's that is no Exception."""


class OwnCodeError(Exception):
    """An exception of the application's."""


RAISED: list[Callable[[], BaseException]] = [
    lambda: ValueError("mine"),
    lambda: OwnCodeError("mine"),
    lambda: OwnError("mine"),
    lambda: KeyboardInterrupt("mine"),
    lambda: SystemExit(3),
    lambda: ExceptionGroup("mine", [ValueError("a"), KeyError("b")]),
    lambda: ExceptionGroup("mine", [ValueError("alone")]),
    lambda: BaseExceptionGroup("mine", [KeyboardInterrupt(), ValueError("b")]),
    lambda: StopAsyncIteration("mine"),
    lambda: RuntimeError("mine"),
]


@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize("make", RAISED)
async def test_an_exception_of_the_block_comes_out_as_it_went_in(
    make: Callable[[], BaseException], busy: bool, autojump_clock: MockClock
) -> None:
    error = make()
    agents: list[Agent] = []

    async def run() -> None:
        async with open_test_runtime(model=ScriptedModel([Stall()])) as runtime:
            agents.append(await runtime.create_agent("a"))
            if busy:
                agents[0].followup("one")
                await trio.sleep(1)
            raise error

    with pytest.raises(BaseException) as caught:  # noqa: PT011 - all kinds, compared below
        await run()
    assert caught.value is error
    assert caught.value.__cause__ is None
    if busy:
        assert [(one.reason, one.cause) for one in ends(agents[0])] == [("aborted", "disposed")]
        assert trio.current_time() == 1


async def test_leaving_disposes_of_every_agent_and_keeps_what_is_pending(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    async with open_test_runtime(model=ScriptedModel(lambda _: Stall()), store=store) as runtime:
        agents = [await runtime.create_agent(name) for name in ("a", "b", "c")]
        for agent in agents:
            agent.followup("one")
            agent.followup("two")
        await trio.sleep(1)
    assert trio.current_time() == 1
    assert [one.cause for agent in agents for one in ends(agent)] == ["disposed"] * 3
    async with open_test_runtime(model=ScriptedModel(lambda _: Text("x")), store=store) as runtime:
        again = await runtime.resume_agent("b")
        assert pending(again) == ["two"]


async def test_leaving_does_not_wait_for_work(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([[Wait(50), Text("x")]])) as runtime:
        (await runtime.create_agent("a")).followup("one")
        await trio.sleep(1)
    assert trio.current_time() == 1


async def test_waiting_for_idle_waits_for_all_agents(autojump_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: [Wait(5), Text("x")])
    async with open_test_runtime(model=model) as runtime:
        await runtime.wait_idle()
        agents = [await runtime.create_agent(name) for name in ("a", "b")]
        agents[0].followup("one")
        agents[1].followup("one")
        agents[1].followup("two")
        await runtime.wait_idle()
        assert trio.current_time() == 10
        assert [reasons(agent) for agent in agents] == [["completed"], ["completed"] * 2]


async def test_a_left_runtime_makes_no_agents_and_its_agents_take_nothing(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
    with pytest.raises(RuntimeClosedError):
        await runtime.create_agent("b")
    with pytest.raises(AgentDisposedError):
        agent.followup("one")
    await agent.dispose()


async def test_no_task_of_a_runtime_outlives_it(autojump_clock: MockClock) -> None:
    await trio.testing.wait_all_tasks_blocked()
    before = trio.lowlevel.current_statistics().tasks_living
    async with open_test_runtime(model=ScriptedModel(lambda _: Stall())) as runtime:
        for name in "abc":
            (await runtime.create_agent(name)).followup("one")
        await trio.sleep(1)
    assert trio.lowlevel.current_statistics().tasks_living == before


# Hosts that cancel


async def test_a_hosts_cancel_closes_turns_as_host_cancelled(autojump_clock: MockClock) -> None:
    agents: list[Agent] = []
    with trio.move_on_after(1) as host:
        async with open_test_runtime(model=ScriptedModel(lambda _: Stall())) as runtime:
            for name in "ab":
                agents.append(await runtime.create_agent(name))
                agents[-1].followup("one")
            await trio.sleep_forever()
    assert host.cancelled_caught
    assert trio.current_time() == 1
    for agent in agents:
        assert [(one.reason, one.cause) for one in ends(agent)] == [("aborted", "host-cancelled")]
        assert agent.session.durable_seq == agent.session.seq


async def test_a_store_is_closed_under_a_cancelled_host(autojump_clock: MockClock) -> None:
    closed: list[bool] = []

    class SlowToClose(MemoryStore):
        async def aclose(self) -> None:
            await trio.sleep(0.1)
            await super().aclose()
            closed.append(True)

    with trio.move_on_after(1) as host:
        async with open_test_runtime(model=ScriptedModel([]), store=SlowToClose()) as runtime:
            await runtime.create_agent("a")
            await trio.sleep_forever()
    assert host.cancelled_caught
    assert closed == [True]


async def test_a_cancel_that_comes_as_the_block_ends_comes_out_alone(
    autojump_clock: MockClock,
) -> None:
    came: list[BaseException] = []
    with trio.CancelScope() as host:
        try:
            async with open_test_runtime(model=ScriptedModel([])):
                host.cancel()
        except BaseException as error:
            came.append(error)
            raise
    assert [type(error) for error in came] == [trio.Cancelled]


async def test_a_nursery_around_the_runtime_may_cancel_it(autojump_clock: MockClock) -> None:
    agents: list[Agent] = []

    async def host() -> None:
        async with open_test_runtime(model=ScriptedModel(lambda _: Stall())) as runtime:
            agents.append(await runtime.create_agent("a"))
            agents[0].followup("one")
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(host)
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert [one.cause for one in ends(agents[0])] == ["host-cancelled"]


async def test_a_sibling_that_raises_beside_the_runtime_comes_out_alone(
    autojump_clock: MockClock,
) -> None:
    async def host() -> None:
        async with open_test_runtime(model=ScriptedModel(lambda _: Stall())) as runtime:
            (await runtime.create_agent("a")).followup("one")
            await trio.sleep_forever()

    async def sibling() -> None:
        await trio.sleep(1)
        raise ValueError("sibling")

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(host)
            nursery.start_soon(sibling)

    with pytest.raises(ExceptionGroup) as caught:  # noqa: ASYNC401 - as a caller does
        await run()
    assert [str(error) for error in caught.value.exceptions] == ["sibling"]


async def test_a_host_cancelled_in_preparation_puts_the_message_back(
    autojump_clock: MockClock,
) -> None:
    async def slow(step: PreStep, next: Next[Decision]) -> Decision:
        await pass_waits()
        await trio.sleep_forever()
        return await next()

    agents: list[Agent] = []
    with trio.move_on_after(1):
        async with open_test_runtime(model=ScriptedModel([])) as runtime:
            agents.append(await runtime.create_agent("a"))
            agents[0].hooks.pre_step.add(slow)
            agents[0].followup("one")
            await trio.sleep_forever()
    assert pending(agents[0]) == ["one"]


async def test_a_runtime_opened_under_a_cancelled_host_leaves_at_once(
    autojump_clock: MockClock,
) -> None:
    with trio.CancelScope() as host:
        host.cancel()
        async with open_test_runtime(model=ScriptedModel([])) as runtime:
            await runtime.create_agent("a")
            raise AssertionError
    assert host.cancelled_caught


async def test_a_host_that_takes_an_asker_along_is_the_cause(autojump_clock: MockClock) -> None:
    """Whichever task sees the cancel first, which is Trio's to choose: so more than once."""
    agents: list[Agent] = []
    for name in "abcdefgh":
        with trio.move_on_after(1):
            async with open_test_runtime(model=ScriptedModel([Stall()])) as runtime:
                agents.append(await runtime.create_agent(name))
                await agents[-1].ask("one")
    told = [(end.reason, end.cause) for agent in agents for end in ends(agent)]
    assert told == [("aborted", "host-cancelled")] * len(agents)


async def test_runtimes_nest_and_stand_side_by_side(autojump_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: Text("x"))
    async with open_test_runtime(model=model) as outer, open_test_runtime(model=model) as inner:
        agents = [await runtime.create_agent("a") for runtime in (outer, inner)]
        for agent in agents:
            assert (await agent.ask("one")).reason == "completed"


# Plugins


async def test_plugins_are_entered_in_order_and_left_in_reverse(autojump_clock: MockClock) -> None:
    order: list[str] = []

    def plugin(mark: str) -> Callable[[Runtime], contextlib.AbstractAsyncContextManager[None]]:
        @contextlib.asynccontextmanager
        async def entered(runtime: Runtime):  # type: ignore[no-untyped-def]
            order.append(f"{mark} in")
            yield
            order.append(f"{mark} out")

        return entered

    async with open_test_runtime(plugins=[plugin("a"), plugin("b")]):
        order.append("block")
    assert order == ["a in", "b in", "block", "b out", "a out"]


async def test_a_plugin_that_fails_to_open_comes_out_as_it_is(autojump_clock: MockClock) -> None:
    @contextlib.asynccontextmanager
    async def broken(runtime: Runtime):  # type: ignore[no-untyped-def]
        raise ValueError("plugin")
        yield

    async def run() -> None:
        async with open_test_runtime(plugins=[broken]):
            raise AssertionError

    with pytest.raises(ValueError, match="plugin"):
        await run()
