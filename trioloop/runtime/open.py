"""`open_runtime`: from what users type to a running runtime."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import trio

from trioloop.agent.closing import Closing
from trioloop.agent.stuck import StuckTurns
from trioloop.errors import InvalidInputError
from trioloop.events import CallConfig
from trioloop.hooks.points import Hooks
from trioloop.ids import Ids
from trioloop.limits import Limits
from trioloop.ports import Approver, Durability, Model, SessionStore
from trioloop.prompt import Section
from trioloop.runtime.lifetime import lifetime
from trioloop.runtime.models import ModelSource, checked_config, default_config, loaded, table
from trioloop.runtime.opening import SessionOpener
from trioloop.runtime.runtime import Runtime, wall_clock
from trioloop.store import MemoryStore, SqliteStore
from trioloop.store.writer import StoreWriter
from trioloop.tools.tool import Function, Tool

Plugin: TypeAlias = Callable[[Runtime], AbstractAsyncContextManager[object]]
HookSetup: TypeAlias = Callable[[Hooks], object]


@asynccontextmanager
async def open_runtime(
    *,
    model: ModelSource | None = None,
    models: Iterable[ModelSource] = (),
    tools: Iterable[Tool | Function] = (),
    system: str | Sequence[Section] = (),
    store: SessionStore | str | Path | None = None,
    durability: Durability = "step",
    limits: Limits | None = None,
    plugins: Iterable[Plugin] = (),
    hooks: Iterable[HookSetup] = (),
    config: CallConfig | None = None,
    approver: Approver | None = None,
    ids: Ids | None = None,
    clock: Callable[[], int] = wall_clock,
    strict: bool = False,
) -> AsyncIterator[Runtime]:
    """Open a runtime; leaving the block disposes of its agents in bounded time (R9).

    It may be opened inside any nursery, under any cancel scope or deadline, in guest mode, and
    several times in one program. Leaving doesn't wait for work: `await runtime.wait_idle()` does.
    Exceptions of the block come out as they went in.

    Args:
        model: what agents ask unless they are told otherwise; a model or its name.
        models: further models that a listener of `agent.request` may choose.
        tools: of every agent.
        system: the system prompt, as one text or as sections.
        store: where sessions are kept; a path is a SQLite file, None is memory.
        durability: `step` survives power loss, `relaxed` the death of the process; for a path.
        limits: the limits that differ from the defaults.
        plugins: policies, each a function of the runtime that gives an async context manager.
        hooks: functions that register listeners on the runtime's hooks.
        config: the settings of requests; left out, those that name `model`.
        approver: answers the questions of pre-policies.
        ids: makes identifiers; a seeded one makes equal runs write equal logs.
        clock: Unix milliseconds for the events' times.
        strict: raise faults of trioloop's own out of the block, for tests.

    Raises:
        InvalidInputError: an argument can't be used.
        StoreUnreadableError: the path is no store.
    """
    limits = limits or Limits()
    main = loaded(model)
    known = table([*([] if main is None else [main]), *map(_required, models)])
    settings = checked_config(config)
    home = _store(store, durability)

    def make_runtime(
        nursery: trio.Nursery, writer: StoreWriter, closing: Closing, stuck: StuckTurns
    ) -> Runtime:
        return Runtime(
            nursery=nursery,
            opener=SessionOpener(home, writer, clock, limits),
            models=known,
            config=settings or default_config(main),
            limits=limits,
            ids=ids or Ids(),
            approver=approver,
            closing=closing,
            stuck=stuck,
        )

    living = lifetime(make_runtime, store=home, models=known.values(), limits=limits)
    async with living as runtime, AsyncExitStack() as stack:
        _furnish(runtime, tools, system, hooks)
        for plugin in plugins:
            await stack.enter_async_context(plugin(runtime))
        yield runtime
    if strict and runtime.faults:
        raise runtime.faults[0]


def _required(source: ModelSource) -> Model:
    model = loaded(source)
    if model is None:
        raise InvalidInputError("models= holds None: give models, or their names")
    return model


def _store(store: SessionStore | str | Path | None, durability: Durability) -> SessionStore:
    if isinstance(store, str | Path):
        return SqliteStore(store, durability=durability)
    return store if store is not None else MemoryStore()


def _furnish(
    runtime: Runtime,
    tools: Iterable[Tool | Function],
    system: str | Sequence[Section],
    hooks: Iterable[HookSetup],
) -> None:
    for tool in tools:
        runtime.tools.register(tool)
    for section in [Section("system", system)] if isinstance(system, str) else system:
        runtime.prompt.add(section)
    for setup in hooks:
        setup(runtime.hooks)
