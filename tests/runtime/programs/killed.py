"""An agent whose process is to be killed in the middle of a turn.

    python killed.py DATABASE

Prints "waiting" when its tool's body has begun, then waits for the end.
"""

import sys

import trio

from trioloop import open_runtime, tool
from trioloop.testing import ScriptedModel, Text, ToolCall


@tool
async def write_ledger(line: str) -> str:
    """Write a line into the ledger, and never come back."""
    print("waiting", flush=True)
    await trio.sleep_forever()
    return line


async def main(database: str) -> None:
    """Answer one question plainly, then get stuck in a tool."""
    model = ScriptedModel([Text("I remember."), [ToolCall("write_ledger", line="x")]])
    async with open_runtime(model=model, tools=[write_ledger], store=database) as runtime:
        agent = await runtime.create_agent("ledger")
        await agent.ask("remember 7")
        agent.followup("write it down")
        await runtime.wait_idle()


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
