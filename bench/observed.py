"""A runtime as applications have it: with a listener on each hook, a subscriber and a watcher."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import trio

import trioloop
from trioloop.ports import Model

HookSetup = Callable[[trioloop.Hooks], object]


async def pass_on(payload: object, next: Any) -> Any:  # whatever the hook's answer is
    """The listener that changes nothing."""
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
        waterfall.add(pass_on)
    hooks.turn_stopping.add(_look)


@asynccontextmanager
async def observed_runtime(
    model: Model,
    tools: Iterable[trioloop.Tool] = (),
    *,
    hooks: Sequence[HookSetup] = (listen,),
    watched: bool = True,
    **limits: int,
) -> AsyncIterator[trioloop.Runtime]:
    """A runtime with a listener on each hook, watched.

    Args:
        model: what its agents ask.
        tools: of every agent.
        hooks: what registers listeners.
        watched: whether somebody reads all notifications.
        limits: those that differ from the defaults.
    """
    async with (
        trioloop.open_runtime(
            model=model,
            tools=tools,
            limits=trioloop.Limits(session_events_warn=10**9, **limits),
            hooks=hooks,
        ) as runtime,
        trio.open_nursery() as nursery,
    ):
        if watched:
            await nursery.start(_watch, runtime)
        yield runtime
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def observed_agent(
    model: Model,
    tools: Iterable[trioloop.Tool] = (),
    *,
    hooks: Sequence[HookSetup] = (listen,),
    watched: bool = True,
    subscribed: bool = True,
    **limits: int,
) -> AsyncIterator[trioloop.Agent]:
    """An agent in a runtime of its own, its session subscribed to and itself watched."""
    async with (
        observed_runtime(model, tools, hooks=hooks, watched=False, **limits) as runtime,
        trio.open_nursery() as nursery,
    ):
        agent = await runtime.create_agent("bench")
        if subscribed:
            await nursery.start(subscribe, agent)
        if watched:
            await nursery.start(_watch, agent)
        yield agent
        nursery.cancel_scope.cancel()


async def subscribe(
    agent: trioloop.Agent, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Read an agent's log as it grows."""
    async with agent.session.subscribe() as events:
        task_status.started()
        async for _ in events:
            pass


async def _watch(
    watched: trioloop.Agent | trioloop.Runtime,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    async with watched.watch() as feed:
        task_status.started()
        async for _ in feed:
            pass
