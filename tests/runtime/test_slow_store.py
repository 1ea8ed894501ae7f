"""A store that takes 5 s a commit slows durable steps alone; all else goes on unhindered."""

from collections.abc import Sequence

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import ends, facts, reasons
from trioloop import Limits, tool
from trioloop.agent.notifications import StreamChunks
from trioloop.events import StepStarted, ToolResultLogged, TurnEnded
from trioloop.ports import Append, CommitAnswer
from trioloop.store import MemoryStore
from trioloop.testing import ScriptedModel, Stall, Text, ToolCall, Wait, open_test_runtime

COMMIT_S = 5.0


class _Slow(MemoryStore):
    """Each commit takes its time; how many there were is counted."""

    def __init__(self, commit_s: float = COMMIT_S) -> None:
        super().__init__()
        self.commits = 0
        self._commit_s = commit_s

    async def commit(self, appends: Sequence[Append]) -> list[CommitAnswer]:
        self.commits += 1
        await trio.sleep(self._commit_s)
        return await super().commit(appends)


def words(count: int) -> list[Wait | Text]:
    """An answer of so many words, one a second."""
    return [item for number in range(count) for item in (Wait(1), Text(f"{number} "))]


async def test_other_agents_streams_go_on_while_a_commit_takes_its_time(
    autojump_clock: MockClock,
) -> None:
    came: list[float] = []
    model = ScriptedModel([words(30), *[Text("at once")] * 3])
    async with open_test_runtime(model=model, store=_Slow()) as runtime:
        streaming = await runtime.create_agent("streaming")
        busy = await runtime.create_agent("busy")
        streaming.on(StreamChunks.kind, lambda _: came.append(trio.current_time()))
        streaming.followup("stream")
        await trio.sleep(10)
        for number in range(3):  # each turn waits for commits, under way all the time
            await busy.ask(f"turn {number}")
        await streaming.wait_idle()
        assert reasons(busy) == ["completed"] * 3
    assert came[:30] == pytest.approx([came[0] + number for number in range(30)])


async def test_other_agents_cancels_end_their_turns_at_once(autojump_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: Stall())
    async with open_test_runtime(model=model, store=_Slow()) as runtime:
        stalled = await runtime.create_agent("stalled")
        stalled.followup("stall")
        await trio.sleep(20)
        busy = await runtime.create_agent("busy")
        busy.followup("wait for a commit")
        await trio.sleep(1)
        assert busy.session.durable_seq < busy.session.seq
        began = trio.current_time()
        stalled.cancel()
        while not ends(stalled):
            await trio.testing.wait_all_tasks_blocked()
            assert trio.current_time() == began
        assert ends(stalled)[0].reason == "aborted"


async def test_a_cancel_ends_the_wait_for_a_slow_commit(autojump_clock: MockClock) -> None:
    model = ScriptedModel([])
    async with open_test_runtime(model=model, store=_Slow(3_600)) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("never sent")
        await trio.sleep(1)
        agent.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert [end.reason for end in facts(agent, TurnEnded)] == ["aborted"]
        assert trio.current_time() == 1


@tool(effects="read-only", timeout_s=3)
async def look() -> str:
    """Look at something."""
    await trio.sleep(2)
    return "seen"


@tool(timeout_s=3)
async def write() -> str:
    """Change something."""
    await trio.sleep(2)
    return "done"


async def _two_steps(name: str, commit_s: float) -> tuple[int, float, list[str | None]]:
    """Commits, seconds and codes of results of a turn that calls a tool in its first step."""
    store = _Slow(commit_s)
    model = ScriptedModel([[ToolCall(name)], Text("there")])
    limits = Limits(commit_age_s=1_000)  # only what somebody waits for is committed
    async with open_test_runtime(
        model=model, tools=[look, write], store=store, limits=limits
    ) as runtime:
        agent = await runtime.create_agent("a")
        await agent.session.checkpoint()
        before, began = store.commits, trio.current_time()
        settled = await agent.ask("go")
        assert settled.text == "there"
        assert len(facts(agent, StepStarted)) == 2
        took = trio.current_time() - began
        codes = [result.code for result in facts(agent, ToolResultLogged)]
        return store.commits - before, took, codes


async def test_a_step_with_read_only_tools_takes_one_commit(autojump_clock: MockClock) -> None:
    commits, took, codes = await _two_steps("look", COMMIT_S)
    assert commits == 3  # one a step, and one before the turn is settled
    assert took == 2 + 3 * COMMIT_S
    assert codes == [None]


async def test_a_step_with_a_once_tool_takes_two(autojump_clock: MockClock) -> None:
    commits, took, codes = await _two_steps("write", COMMIT_S)
    assert commits == 4
    assert took == 2 + 4 * COMMIT_S
    assert codes == [None]  # its deadline counts from its body, not from the wait for the commit


async def test_ten_calls_share_the_commit_that_they_wait_for(autojump_clock: MockClock) -> None:
    @tool(mode="concurrent")
    async def send() -> str:
        """Send something."""
        return "sent"

    store = _Slow()
    model = ScriptedModel([[ToolCall("send")] * 10, Text("there")])
    limits = Limits(commit_age_s=1_000)
    async with open_test_runtime(model=model, tools=[send], store=store, limits=limits) as runtime:
        agent = await runtime.create_agent("a")
        await agent.session.checkpoint()
        before = store.commits
        await agent.ask("go")
        assert store.commits - before == 4
