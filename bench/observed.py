"""A runtime as applications have it: with a listener on each hook, a subscriber and a watcher."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import trio

import trioloop
from trioloop.models import ScriptedModel


async def _pass_on(payload: object, next: Any) -> Any:  # whatever the hook's answer is
    return await next()


async def _look(payload: object) -> None: ...


def listen(hooks: trioloop.Hooks) -> None:
    """Register a listener on each hook."""
    for waterfall in (
        hooks.pre_step,
        hooks.request,
        hooks.request_error,
        hooks.assemble,
        hooks.stream,
        hooks.pre_execute,
        hooks.execute,
        hooks.post_execute,
    ):
        waterfall.add(_pass_on)
    hooks.turn_stopping.add(_look)


@asynccontextmanager
async def observed_agent(
    model: ScriptedModel, tools: Iterable[trioloop.Tool], limits: trioloop.Limits
) -> AsyncIterator[trioloop.Agent]:
    """An agent in a runtime of its own, its session subscribed to and itself watched."""
    async with (
        trioloop.open_runtime(model=model, tools=tools, limits=limits, hooks=[listen]) as runtime,
        trio.open_nursery() as nursery,
    ):
        agent = await runtime.create_agent("bench")
        nursery.start_soon(_subscribe, agent)
        nursery.start_soon(_watch, agent)
        yield agent
        nursery.cancel_scope.cancel()


async def _subscribe(agent: trioloop.Agent) -> None:
    async with agent.session.subscribe() as events:
        async for _ in events:
            pass


async def _watch(agent: trioloop.Agent) -> None:
    async with agent.watch() as feed:
        async for _ in feed:
            pass
