"""What follows the end of work shares one `close_s`: flush, unlock, connections (P18, R9)."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import reasons
from trioloop import Limits, tool
from trioloop.agent.agent import Agent
from trioloop.ports import Append, CommitAnswer, Lease
from trioloop.store import MemoryStore
from trioloop.testing import ScriptedModel, Stall, Text, ToolCall, open_test_runtime

LIMITS = Limits(grace_s=2, post_s=3, close_s=10)
Hang = Literal["commit", "release", "aclose"]


class _Hanging(MemoryStore):
    """Hangs in some of its methods, from when it is told to."""

    def __init__(self, *where: Hang, commit_s: float = 0) -> None:
        super().__init__()
        self.hangs = False
        self.closed = False
        self._where = where
        self._commit_s = commit_s

    async def _pass(self, method: Hang) -> None:
        if self.hangs and method in self._where:
            await trio.sleep_forever()

    async def commit(self, appends: Sequence[Append]) -> list[CommitAnswer]:
        await self._pass("commit")
        if self.hangs:
            await trio.sleep(self._commit_s)
        return await super().commit(appends)

    async def release(self, lease: Lease) -> None:
        await self._pass("release")
        await super().release(lease)

    async def aclose(self) -> None:
        await self._pass("aclose")
        await super().aclose()
        self.closed = True


class _Connected(ScriptedModel):
    """A model whose connections don't close."""

    async def aclose(self) -> None:
        """Never return."""
        await trio.sleep_forever()


async def _stalled(agent: Agent) -> None:
    agent.followup("go")
    await trio.sleep(1)


async def _idle(agent: Agent) -> None:
    agent.followup("go")
    await agent.wait_idle()
    agent.inject("something to flush")


@pytest.mark.parametrize("agents", [1, 3])
@pytest.mark.parametrize("work", [_stalled, _idle])
@pytest.mark.parametrize(
    "where",
    [("commit",), ("release",), ("aclose",), ("commit", "release", "aclose")],
    ids="+".join,
)
async def test_a_hanging_store_holds_up_leaving_once(
    where: tuple[Hang, ...],
    work: Callable[[Agent], Awaitable[None]],
    agents: int,
    autojump_clock: MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR)
    script = Stall() if work is _stalled else Text("hi")
    store = _Hanging(*where)
    model = _Connected([lambda _: script] * agents)
    async with open_test_runtime(model=model, store=store, limits=LIMITS) as runtime:
        for number in range(agents):
            agent = await runtime.create_agent(f"a{number}")
            await work(agent)
        store.hangs = True
        left = trio.current_time()
    assert trio.current_time() - left <= LIMITS.close_s


async def test_one_agents_disposal_is_held_up_once(autojump_clock: MockClock) -> None:
    store = _Hanging("commit", "release")
    model = ScriptedModel([Stall()])
    async with open_test_runtime(model=model, store=store, limits=LIMITS) as runtime:
        agent = await runtime.create_agent("a")
        await _stalled(agent)
        store.hangs = True
        began = trio.current_time()
        await agent.dispose()
        assert trio.current_time() - began <= LIMITS.close_s
        assert reasons(agent) == ["aborted"]


@tool(effects="read-only", on_cancel="finish")
async def finish_late() -> str:
    """Goes on for as long as it may."""
    await trio.sleep(60)
    return "late"


async def test_a_body_that_finishes_has_its_grace_before(autojump_clock: MockClock) -> None:
    store = _Hanging("commit")
    model = ScriptedModel([[ToolCall("finish_late")]])
    async with open_test_runtime(
        model=model, tools=[finish_late], store=store, limits=LIMITS
    ) as runtime:
        agent = await runtime.create_agent("a")
        await _stalled(agent)
        store.hangs = True
        left = trio.current_time()
    took = trio.current_time() - left
    assert LIMITS.grace_s < took <= LIMITS.grace_s + LIMITS.post_s + LIMITS.close_s
    assert reasons(agent) == ["aborted"]


async def test_a_slow_store_is_flushed_and_still_closed(autojump_clock: MockClock) -> None:
    """Of `close_s` a part is kept, so that a store that was only slow is unlocked."""
    store = _Hanging(commit_s=0.8 * LIMITS.close_s)
    model = ScriptedModel([Stall()])
    async with open_test_runtime(model=model, store=store, limits=LIMITS) as runtime:
        agent = await runtime.create_agent("a")
        await _stalled(agent)
        store.hangs = True
    assert store.closed
    assert agent.session.durable_seq == agent.session.seq
