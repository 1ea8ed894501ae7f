"""One run, cancelled before its first task step, its second, and so on."""

from collections.abc import Sequence
from functools import cache

import attrs
import trio

from tests.second_fold.recording import Recording
from tests.second_fold.runs_of_calls import TOOLS
from trioloop.events import Event
from trioloop.plugins.retry import retry
from trioloop.testing import (
    CancelPoint,
    Fail,
    Reasoning,
    Text,
    ToolCall,
    cancel_at_every_checkpoint,
)

SCRIPT = (
    [Reasoning("hm"), Text("I look"), ToolCall("look"), ToolCall("rest", seconds=1)],
    [Text("half"), Fail("SERVER")],
    [ToolCall("write", text="x"), ToolCall("look")],
    Text("done"),
    Text("and on"),
    Text("and over"),
)


@attrs.frozen
class Swept:
    """The log of each point, and what the models of all of them received, one after the other."""

    logs: Sequence[list[Event]]
    received: Sequence[bytes]


@cache
def swept() -> Swept:
    """What the sweep left behind; it runs once."""
    logs: list[list[Event]] = []
    received: list[bytes] = []

    async def run(point: CancelPoint) -> None:
        recording = Recording()
        await _run(recording, point)
        logs.append(recording.logs["swept"])
        received.extend(recording.received["swept"])

    cancel_at_every_checkpoint(run)
    return Swept(logs, received)


async def _run(recording: Recording, point: CancelPoint) -> None:
    async with recording.runtime(SCRIPT, tools=TOOLS, system="s", plugins=[retry]) as runtime:
        agent = await runtime.create_agent("swept")
        agent.inject("context")
        point.arm(agent.cancel)
        agent.followup("go")
        await trio.sleep(0.5)
        agent.steer("steer")
        await agent.wait_idle()
        point.disarm()
        agent.followup("and on")
        await agent.wait_idle()
