"""Two logs compared without times and identifiers (G10)."""

from collections.abc import Sequence

import pytest
import trio
from trio.testing import MockClock

from trioloop import diff, tool
from trioloop.events import Event
from trioloop.testing import (
    Fail,
    ScriptedModel,
    Text,
    ToolCall,
    Wait,
    open_test_runtime,
    seeded_ids,
)


@tool(effects="read-only")
async def look(at: str) -> str:
    """Look."""
    return at


async def run(
    *, name: str = "a", seed: int = 0, wire: str = "w1", wait: float = 0, say: str = "hi"
) -> Sequence[Event]:
    """A run with a call, a queue and a failure."""
    calls = [ToolCall("look", at="x", wire_id=wire), ToolCall("look", at="y", wire_id=f"{wire}b")]
    model = ScriptedModel([calls, [Text("a"), Wait(wait), Text("b")], Fail("SERVER"), Text(say)])
    async with open_test_runtime(model=model, tools=[look], ids=seeded_ids(seed)) as runtime:
        agent = await runtime.create_agent(name)
        await trio.sleep(wait)
        agent.followup("one")
        agent.followup("two")
        await agent.wait_idle()
        await agent.ask("three")
        return agent.session.events()


async def test_equal_runs_are_equal_in_every_reading(autojump_clock: MockClock) -> None:
    one = await run()
    for times in (True, False):
        for ids in (True, False):
            assert diff(one, one, times=times, ids=ids) is None


async def test_times_may_be_ignored(autojump_clock: MockClock) -> None:
    one, other = await run(), await run(wait=3)
    assert diff(one, other) == 1
    assert diff(one, other, times=False) is None
    assert diff(one, other, ids=False) == 1


async def test_identifiers_may_be_ignored(autojump_clock: MockClock) -> None:
    one = await run()
    for other in (await run(seed=7), await run(wire="x9"), await run(name="b")):
        assert diff(one, other, times=False) is not None
        assert diff(one, other, times=False, ids=False) is None


async def test_what_was_said_is_never_ignored(autojump_clock: MockClock) -> None:
    one, other = await run(), await run(say="ho", seed=3, wait=2)
    seq = diff(one, other, times=False, ids=False)
    assert seq is not None
    assert one[seq].type == "assistant/message"


async def test_identifiers_that_are_used_in_another_way_differ(autojump_clock: MockClock) -> None:
    one, other = await run(), await run(seed=5)
    swapped = [*other[:2], other[3], other[2], *other[4:]]
    assert diff(one, swapped, times=False, ids=False) is not None


@pytest.mark.parametrize("cut", [0, 1, 10])
async def test_a_log_that_goes_on_further_differs_where_the_other_ends(
    cut: int, autojump_clock: MockClock
) -> None:
    one = await run()
    assert diff(one, one[:cut], times=False, ids=False) == cut
