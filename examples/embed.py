"""Agents inside a Trio application: its own nursery, its own deadline, its own screen.

A weather desk asks two agents at once while a clock of its own ticks. Everything lives in the
application's nursery, so that its deadline ends the agents like any other task, and their logs are
closed when it does. No key is needed: the embedded demonstration model answers.

    python examples/embed.py
"""

import trio

import trioloop
from trioloop.agent.notifications import StreamEnded, ToolProgress
from trioloop.models import DemonstrationModel

TEMPERATURES = {"Paris": 21.5, "Oslo": 9.0, "Rome": 27.0}


@trioloop.tool(effects="read-only")
async def temperature(city: str, context: trioloop.ToolContext) -> str:
    """Current temperature of a city.

    Args:
        city: its name in English.
    """
    context.report_progress(f"asking the station in {city}")
    await trio.sleep(0.2)
    if city not in TEMPERATURES:
        raise trioloop.ToolError(f"there is no station in {city}")
    return f"{TEMPERATURES[city]} degrees Celsius"


async def main() -> None:
    """The application."""
    with trio.move_on_after(30) as deadline:
        async with (
            trio.open_nursery() as nursery,
            trioloop.open_runtime(model=DemonstrationModel(), tools=[temperature]) as runtime,
        ):
            nursery.start_soon(tick)
            async with trio.open_nursery() as desk:
                desk.start_soon(report, runtime, "north", "How warm is Oslo?")
                desk.start_soon(
                    report, runtime, "south", "How warm is Rome, and how warm is Paris?"
                )
            nursery.cancel_scope.cancel()
    if deadline.cancelled_caught:
        print("the deadline passed; the logs of both agents are closed")


async def tick() -> None:
    """Something else that the application does meanwhile."""
    while True:
        await trio.sleep(0.25)
        print("(tick)")


async def report(runtime: trioloop.Runtime, name: str, question: str) -> None:
    """Ask an agent of that name, and print what it is doing while it does."""
    agent = await runtime.create_agent(name)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch, agent)
        settled = await agent.ask(question)
        print(f"{name}: {settled.reason}\n{settled.text}")
        nursery.cancel_scope.cancel()


async def watch(agent: trioloop.Agent) -> None:
    """Print some of an agent's notifications."""
    async with agent.watch() as feed:
        async for notification in feed:
            if isinstance(notification, ToolProgress):
                print(f"{agent.name}: {notification.message}")
            elif isinstance(notification, StreamEnded):
                print(f"{agent.name}: answered, event {notification.seq} of its log")


if __name__ == "__main__":
    trio.run(main)
