"""An agent that waits for its failed store, with no turn open, can still be stopped (D3, R9)."""

from collections.abc import Sequence

import trio
from trio.testing import MockClock

from tests.agent.reading import pending, reasons, status
from trioloop.agent.agent import Agent
from trioloop.errors import StoreFailedError
from trioloop.ports import Append, CommitAnswer
from trioloop.runtime.runtime import Runtime
from trioloop.store import MemoryStore
from trioloop.testing import ScriptedModel, Text, open_test_runtime


class _Store(MemoryStore):
    """Its second commit fails; each later one takes a year."""

    def __init__(self) -> None:
        super().__init__()
        self._commits = 0

    async def commit(self, appends: Sequence[Append]) -> list[CommitAnswer]:
        self._commits += 1
        if self._commits == 2:
            raise StoreFailedError("the disk is gone")
        if self._commits > 2:
            await trio.sleep(365 * 24 * 3600)
        return await super().commit(appends)


async def _waiting(runtime: Runtime) -> Agent:
    """An agent that is woken while its store has failed, and now hangs."""
    agent = await runtime.create_agent("a")
    agent.followup("one")
    await agent.wait_idle()
    agent.followup("two")
    await trio.sleep(1)
    assert status(agent) == "running"
    assert agent.turn is None
    return agent


async def test_a_cancel_ends_the_wait_and_no_turn_opens(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("hi")]), store=_Store()) as runtime:
        agent = await _waiting(runtime)
        agent.cancel()
        await agent.wait_idle()
        assert trio.current_time() == 1
        assert pending(agent) == ["two"]
        assert len(reasons(agent)) == 1


async def test_disposal_ends_the_wait(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("hi")]), store=_Store()) as runtime:
        agent = await _waiting(runtime)
        await agent.dispose()
        assert trio.current_time() <= 1 + runtime.limits.close_s


async def test_leaving_the_runtime_ends_the_wait(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("hi")]), store=_Store()) as runtime:
        await _waiting(runtime)
    assert trio.current_time() <= 1 + 3 * runtime.limits.close_s
