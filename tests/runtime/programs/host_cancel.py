"""A host application that cancels its own nursery at random times, and times how it gets out.

    python host_cancel.py FOLDER SEED RUNS

Each run prints one JSON line: how long leaving took, the limits that bound it, what the reopened
log says. Bodies: one sleeps, one sits in a thread that can't be told, one finishes late. A commit
takes a second.
"""

import json
import random
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import trio

from trioloop import Limits, SqliteStore, check, open_runtime, read_session, tool
from trioloop.errors import UnknownSessionError
from trioloop.events import TurnEnded
from trioloop.ports import Append, CommitAnswer
from trioloop.testing import ScriptedModel, Text, ToolCall

LIMITS = Limits(grace_s=0.5, post_s=0.5, close_s=4)
COMMIT_S = 1.0
LONGEST_S = LIMITS.grace_s + LIMITS.post_s + LIMITS.close_s


class SlowStore(SqliteStore):
    """A store whose disk takes a second for each commit."""

    async def commit(self, appends: Sequence[Append]) -> list[CommitAnswer]:
        await trio.to_thread.run_sync(time.sleep, COMMIT_S)
        return await super().commit(appends)


@tool(effects="read-only")
async def sleep() -> str:
    """Sleep."""
    await trio.sleep(60)
    return "slept"


@tool(effects="read-only")
def sit_in_a_thread() -> str:
    """Sit in a thread that nobody can cancel."""
    time.sleep(2)
    return "sat"


@tool(effects="read-only", on_cancel="finish")
async def finish_late() -> str:
    """Finish, even when cancelled, a little later."""
    await trio.sleep(0.3)
    return "finished"


async def run_once(path: Path, after_s: float) -> float:
    """One run of the host; how long it took from its cancel until control was back."""
    bodies = [ToolCall("sleep"), ToolCall("sit_in_a_thread"), ToolCall("finish_late")]
    began = 0.0
    with trio.CancelScope() as host:

        async def cancel_later() -> None:
            nonlocal began
            await trio.sleep(after_s)
            began = trio.current_time()
            host.cancel()

        async with (
            trio.open_nursery() as nursery,
            open_runtime(
                model=ScriptedModel([bodies, Text("done")]),
                tools=[sleep, sit_in_a_thread, finish_late],
                store=SlowStore(path),
                limits=LIMITS,
            ) as runtime,
        ):
            nursery.start_soon(cancel_later)
            agent = await runtime.create_agent("host")
            await agent.ask("work")
            await trio.sleep_forever()
    took = trio.current_time() - began
    left = trio.lowlevel.current_task().child_nurseries
    assert not left, f"tasks are left: {left}"
    return took


def main(folder: Path, seed: int, runs: int) -> None:
    """Run the host `runs` times and print a line for each."""
    chance = random.Random(seed)
    for number in range(runs):
        path = folder / f"{seed}-{number}.db"
        after_s = chance.uniform(0, 4 * COMMIT_S)
        took = trio.run(run_once, path, after_s)
        print(json.dumps({"after_s": after_s, "took_s": took, "most_s": LONGEST_S} | log(path)))
    sys.stdout.flush()
    stray = [one.name for one in threading.enumerate() if not one.daemon]
    assert stray == ["MainThread"], stray


def log(path: Path) -> dict[str, object]:
    """What the reopened log says: how many events, and how its last turn ended."""
    try:
        events = read_session(path, "host")
    except UnknownSessionError:
        return {"events": 0, "ended": None}
    check(events)
    ends = [event.data for event in events if isinstance(event.data, TurnEnded)]
    starts = sum(event.type == "turn/start" for event in events)
    return {
        "events": len(events),
        "open_turns": starts - len(ends),
        "ended": [ends[-1].reason, ends[-1].cause] if ends else None,
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
