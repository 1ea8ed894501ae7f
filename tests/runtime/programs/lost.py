"""An agent whose process is to be killed with messages pending, which are durable.

    python lost.py DATABASE

Prints the ids of a steer and a follow-up when they are, then waits for the end.
"""

import sys

import trio

from trioloop import open_runtime, tool
from trioloop.testing import ScriptedModel, ToolCall


@tool(effects="read-only")
async def wait() -> str:
    """Wait for ever."""
    await trio.sleep_forever()
    return "never"


async def main(database: str) -> None:
    """Get stuck in a tool, and take two messages meanwhile."""
    model = ScriptedModel([ToolCall("wait")])
    async with open_runtime(model=model, tools=[wait], store=database) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("work")
        async with agent.session.subscribe() as events:
            async for event in events:
                if event.type == "tool/call":
                    break
        ids = agent.steer("steer"), agent.followup("later")
        await agent.session.checkpoint()
        print(*ids, flush=True)
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
