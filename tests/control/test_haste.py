"""What is appended becomes durable soon where somebody looks on, whoever of them leaves."""

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trioloop.control.haste import Haste
from trioloop.testing import ScriptedModel, open_test_runtime


async def test_who_looks_on_is_hurried_for_and_so_are_those_who_stay(
    autojump_clock: MockClock,
) -> None:
    async with (
        open_test_runtime(model=ScriptedModel([])) as runtime,
        trio.open_nursery() as nursery,
    ):
        agent = await runtime.create_agent("a")
        haste, first, second = Haste(), trio.CancelScope(), trio.CancelScope()

        async def look(scope: trio.CancelScope) -> None:
            with scope:
                await haste.hurry(agent)

        async def is_durable_soon() -> bool:
            agent.inject("something")
            behind = agent.session.durable_seq < agent.session.seq
            await trio.sleep(0.2)
            return behind and agent.session.durable_seq == agent.session.seq

        for scope in (first, second):
            nursery.start_soon(look, scope)
            await wait_all_tasks_blocked()
        assert await is_durable_soon()
        first.cancel()
        assert await is_durable_soon()
        second.cancel()
        await wait_all_tasks_blocked()
        assert not await is_durable_soon()
