"""Reading a live log from a cursor, and waiting until it is durable (D1, D2, G11)."""

import pytest
import trio
from trio.testing import MockClock

from trioloop.agent.agent import Agent
from trioloop.errors import InvalidInputError
from trioloop.events import EventData, event
from trioloop.messages import Json
from trioloop.testing import ScriptedModel, Text, open_test_runtime


@event("test/session-mark", ignorable=True)
class Mark(EventData):
    """A fact of the tests' own."""

    text: str
    more: dict[str, Json] | None = None


async def test_a_subscriber_reads_from_its_cursor_and_waits_for_more(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        session = (await runtime.create_agent("a")).session
        session.append(Mark("a"), Mark("b"))
        async with session.subscribe(after=1) as events:
            assert (await events.__anext__()).seq == 2
            with trio.move_on_after(1) as scope:
                await events.__anext__()
            assert scope.cancelled_caught
            session.append(Mark("c"))
            assert (await events.__anext__()).seq == 3


@pytest.mark.parametrize("after", [-2, 1, 100])
async def test_a_cursor_outside_the_log_is_refused(after: int, autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        session = (await runtime.create_agent("a")).session
        with pytest.raises(InvalidInputError):
            async with session.subscribe(after=after):
                pass


async def test_a_hundred_subscribers_that_never_read_change_nothing(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        async with trio.open_nursery() as nursery:

            async def hold() -> None:
                async with agent.session.subscribe():
                    await trio.sleep(1)

            for _ in range(100):
                nursery.start_soon(hold)
            assert (await agent.ask("one")).reason == "completed"


@pytest.mark.parametrize("durable", [False, True])
async def test_a_subscriber_gets_the_whole_log_and_ends_with_the_agent(
    durable: bool, autojump_clock: MockClock
) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        read: list[int] = []

        async def follow() -> None:
            async with agent.session.subscribe(durable=durable) as events:
                async for one in events:
                    if durable:
                        assert one.seq <= agent.session.durable_seq
                    read.append(one.seq)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            await agent.ask("one")
            await agent.wait_idle()
            agent.inject("context")
            await agent.dispose()
        assert read == list(range(agent.session.seq + 1))


async def test_breaking_out_of_a_subscription_leaves_no_task(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        session = (await runtime.create_agent("a")).session
        await trio.testing.wait_all_tasks_blocked()  # by now all services have begun
        before = trio.lowlevel.current_statistics().tasks_living
        async with session.subscribe() as events:
            async for _ in events:
                break
        assert trio.lowlevel.current_statistics().tasks_living == before


# Durability


async def durable_of(agent: Agent) -> tuple[int, int]:
    """The last durable and the last appended seq."""
    return agent.session.durable_seq, agent.session.seq


async def test_a_checkpoint_waits_until_all_is_durable(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.session.append(Mark("a"))
        assert await durable_of(agent) == (-1, 1)
        await agent.session.checkpoint()
        assert await durable_of(agent) == (1, 1)


async def test_what_nobody_waits_for_becomes_durable_by_age(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.session.append(Mark("a"))
        await trio.sleep(runtime.limits.commit_age_s + 0.5)
        assert await durable_of(agent) == (1, 1)


async def test_a_cancelled_checkpoint_is_made_durable_anyway(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.session.append(Mark("a"))
        with trio.CancelScope() as scope:
            scope.cancel()
            await agent.session.checkpoint()
        assert scope.cancelled_caught
        await trio.sleep(0.01)
        assert await durable_of(agent) == (1, 1)
