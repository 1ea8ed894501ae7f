"""What a tree has spent is known at the cost of what is new, however many children there were."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from trio.testing import MockClock

from tests.plugins.together import PACKAGE, counted
from trioloop import Agent, MemoryStore, Request, Runtime
from trioloop.events import AgentDelegated
from trioloop.messages import TextBlock, UserMessage
from trioloop.plugins import Budget, limits, subagents
from trioloop.plugins.limits import Spending, Spent
from trioloop.plugins.spending import accounts
from trioloop.testing import Answer, ScriptedModel, Text, ToolCall, open_test_runtime


def answer(request: Request) -> Any:
    """A parent gives as many tasks as it is asked to; each child gives one to a child of its own.

    That answers at once.
    """
    last = request.history[len(request.history) - 1]
    if not isinstance(last, UserMessage) or not isinstance(last.content[0], TextBlock):
        return Text("done")
    what, _, number = last.content[0].text.partition(" ")
    if what == "give":
        return Answer([ToolCall("delegate", task="dig") for _ in range(int(number))])
    return ToolCall("delegate", task="fill") if what == "dig" else Text("done")


@asynccontextmanager
async def opened(store: MemoryStore | None = None) -> AsyncIterator[tuple[Runtime, Spending]]:
    """A runtime that delegates, and limits its trees."""
    async with (
        open_test_runtime(
            model=ScriptedModel(answer),
            store=store,
            plugins=[partial(subagents, depth_max=2)],
        ) as runtime,
        limits(runtime, tree=Budget(steps=10_000)) as spending,
    ):
        yield runtime, spending


async def cost(agent: Agent) -> int:
    """Calls of functions in a turn without any delegation."""
    with counted(PACKAGE) as calls:
        assert (await agent.ask("go on")).reason == "completed"
    return calls[0]


async def counts_right(runtime: Runtime, spending: Spending, agent: Agent) -> bool:
    """Whether it is what every log of the tree comes to, read from its first event."""
    told, read = await spending.tree(agent), await _read(runtime, agent.name)
    return (told.steps, told.calls, told.tokens) == (read.steps, read.calls, read.tokens)


async def _read(runtime: Runtime, name: str) -> Spent:
    log = await runtime.events_of(name)
    spent = accounts({})(log).session
    children = {event.data.child for event in log if isinstance(event.data, AgentDelegated)}
    for child in children:
        spent += await _read(runtime, child)
    return spent


async def test_a_step_costs_the_same_behind_any_number_of_children(
    autojump_clock: MockClock,
) -> None:
    async with opened() as (runtime, spending):
        costs = []
        for name, turns in (("few", 1), ("many", 30)):
            agent = await runtime.create_agent(name)
            for _ in range(turns):
                await agent.ask("give 5")
            costs.append(await cost(agent))
            assert await counts_right(runtime, spending, agent)
    few, many = costs
    assert many <= 1.05 * few, costs


async def test_the_logs_of_earlier_children_are_read_once(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    async with opened(store) as (runtime, _):
        await (await runtime.create_agent("p")).ask("give 20")
    async with opened(store) as (runtime, spending):
        agent = await runtime.resume_agent("p")
        first, second, third = [await cost(agent) for _ in range(3)]
        assert await counts_right(runtime, spending, agent)
    assert first > 2 * second
    assert third <= 1.05 * second


async def test_a_fork_counts_the_children_that_it_was_forked_with(
    autojump_clock: MockClock,
) -> None:
    async with opened() as (runtime, spending):
        agent = await runtime.create_agent("p")
        await agent.ask("give 3")
        fork = await runtime.fork_agent("p", "q")
        await fork.ask("give 2")
        for one in (agent, fork):
            assert await counts_right(runtime, spending, one)
        await agent.dispose()
        assert await counts_right(runtime, spending, fork)
        again = await runtime.resume_agent("p")
        await again.ask("give 1")
        assert await counts_right(runtime, spending, again)
        assert await counts_right(runtime, spending, fork)


async def test_a_child_that_is_resumed_by_itself_is_a_tree_of_its_own(
    autojump_clock: MockClock,
) -> None:
    async with opened() as (runtime, spending):
        agent = await runtime.create_agent("p")
        await agent.ask("give 2")
        log = agent.session.events()
        name = next(event.data.child for event in log if isinstance(event.data, AgentDelegated))
        await agent.dispose()
        child = await runtime.resume_agent(name)
        await child.ask("go on")
        assert await counts_right(runtime, spending, child)
        parent = await runtime.resume_agent("p")
        await child.ask("go on")
        assert await counts_right(runtime, spending, parent)
        assert await spending.tree(child) == await spending.tree(parent)
