"""A wall clock that jumps: `seq` orders events, their times never go back, no timeout fires."""

import pytest
import trio
from trio.testing import MockClock

from trioloop import Limits, tool
from trioloop.testing import ScriptedModel, Text, ToolCall, Wait, open_test_runtime

DAY_MS = 86_400_000
START_MS = 1_700_000_000_000


@tool(effects="read-only", timeout_s=30)
async def slow() -> str:
    """Work for a while."""
    await trio.sleep(5)
    return "done"


@pytest.mark.parametrize(
    "jumps",
    [
        (0, -DAY_MS),
        (0, 365 * DAY_MS),
        (0, 365 * DAY_MS, -DAY_MS, 0),
        (0,),
    ],
    ids=["back a day", "forward a year", "to and fro", "frozen"],
)
async def test_a_jumping_wall_clock_disturbs_neither_order_nor_timeouts(
    jumps: tuple[int, ...], autojump_clock: MockClock
) -> None:
    told = 0

    def clock() -> int:
        nonlocal told
        told += 1
        return START_MS + jumps[min(told * len(jumps) // 20, len(jumps) - 1)]

    model = ScriptedModel([[Wait(5), ToolCall("slow")], [Wait(5), Text("there")]])
    limits = Limits(grace_s=1)
    async with open_test_runtime(model=model, tools=[slow], clock=clock, limits=limits) as runtime:
        agent = await runtime.create_agent("a")
        assert (await agent.ask("one")).text == "there"
        events = agent.session.events()
    assert trio.current_time() == pytest.approx(15)
    assert told > 10
    assert [event.seq for event in events] == list(range(len(events)))
    times = [event.time for event in events]
    assert times == sorted(times)
    assert all(time >= START_MS for time in times)
