"""An application that Ctrl-C reaches in the middle of a turn, with nothing of its own to catch it.

    python interrupted.py DATABASE WHERE

Prints "there" when its turn is where it shall be and every task waits, then waits for the signal.
WHERE is one of `hook`, `stream`, `tool`, `thread`, `idle`. Tells of each clean-up that ran.
"""

import sys
import threading
from collections.abc import Callable

import trio
from trio.testing import wait_all_tasks_blocked

from trioloop import Limits, open_runtime, tool
from trioloop.hooks import Decision, Next, PreStep
from trioloop.testing import ScriptedModel, Stall, Text, ToolCall

LIMITS = Limits(grace_s=0.5, post_s=0.5, close_s=5)
hold = threading.Event()


reached = trio.Event()


async def tell() -> None:
    """Say that the signal may come."""
    await reached.wait()
    await wait_all_tasks_blocked(0.01)
    print("there", flush=True)


@tool(effects="read-only")
async def wait() -> str:
    """Wait for ever."""
    reached.set()
    try:
        await trio.sleep_forever()
    finally:
        print("cleaned up", flush=True)
    return "never"


@tool(effects="read-only")
def wait_in_a_thread() -> str:
    """Wait in a thread, for a while."""
    trio.from_thread.run_sync(reached.set)
    hold.wait(1)
    return "waited"


async def wait_in_a_hook(step: PreStep, next: Next[Decision]) -> Decision:
    """Wait before the step."""
    reached.set()
    try:
        await trio.sleep_forever()
    finally:
        print("cleaned up", flush=True)
    return await next()


def stall(_: object) -> Stall:
    """Give nothing."""
    reached.set()
    return Stall()


SCRIPTS: dict[str, list[Callable[[object], object]]] = {
    "stream": [stall],
    "tool": [lambda _: [ToolCall("wait"), ToolCall("wait_in_a_thread")]],
    "thread": [lambda _: ToolCall("wait_in_a_thread")],
}


async def main(database: str, where: str) -> None:
    """Work until Ctrl-C."""
    model = ScriptedModel(SCRIPTS.get(where, [lambda _: Text("hi")]))
    tools = [wait, wait_in_a_thread]
    trio.lowlevel.spawn_system_task(tell)  # no nursery of ours around what comes out
    async with open_runtime(model=model, tools=tools, store=database, limits=LIMITS) as runtime:
        agent = await runtime.create_agent("a")
        if where == "hook":
            agent.hooks.pre_step.add(wait_in_a_hook)
        agent.followup("work")
        agent.followup("more work")
        await agent.wait_idle()
        reached.set()
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(main, sys.argv[1], sys.argv[2])
