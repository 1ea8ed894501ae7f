"""The runtime: owns a nursery, the agents in it, and what they share.

`open_runtime` opens services (the store's writer, which ends only when it is closed), then the
nursery of the agents; it leaves in reverse (R9). What an agent does is in `agent/`.
"""

import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import trio

from trioloop.agent.agent import Agent
from trioloop.agent.notifications import Created, Notifications, Watch
from trioloop.agent.resources import Surroundings
from trioloop.agent.signal import HOST_CANCELLED
from trioloop.errors import (
    InvalidInputError,
    RuntimeClosedError,
    SessionExistsError,
    SessionLockedError,
)
from trioloop.events import CallConfig, Event
from trioloop.hooks.dispatch import Registration
from trioloop.hooks.points import Hooks
from trioloop.ids import Ids, SessionId, session_id
from trioloop.limits import Limits
from trioloop.ports import Approver, Closable, Durability, Model, SessionStore
from trioloop.prompt import Prompt, Section
from trioloop.runtime.models import ModelSource, default_config, loaded, table
from trioloop.runtime.opening import SessionOpener
from trioloop.session import Session
from trioloop.store import MemoryStore, SqliteStore
from trioloop.store.writer import StoreWriter
from trioloop.tools.places import Places
from trioloop.tools.registry import ToolRegistry
from trioloop.tools.threads import ToolThreads
from trioloop.tools.tool import Function, Tool

Plugin: TypeAlias = Callable[["Runtime"], AbstractAsyncContextManager[object]]
HookSetup: TypeAlias = Callable[[Hooks], object]


def wall_clock() -> int:
    """Unix milliseconds."""
    return time.time_ns() // 1_000_000


class Runtime:
    """What `open_runtime` gives: agents by name, and what they share.

    Attributes:
        hooks: wrap those of each agent.
        tools: every agent has them, unless its own shadow them by name.
        prompt: sections of every agent, unless its own shadow them by name.
        limits: the limits it was opened with.
    """

    def __init__(
        self,
        *,
        nursery: trio.Nursery,
        opener: SessionOpener,
        models: Mapping[tuple[str, str], Model],
        config: CallConfig | None,
        limits: Limits,
        ids: Ids,
        approver: Approver | None,
    ) -> None:
        self.hooks = Hooks()
        self.tools = ToolRegistry()
        self.prompt = Prompt()
        self.limits = limits
        self.notifications = Notifications(limits.watch_notifications_max)
        self.faults: list[BaseException] = []
        self._agents: dict[SessionId, Agent] = {}
        self._opening: set[SessionId] = set()
        self._closing = False
        self._config = config
        self._opener = opener
        self._surroundings = Surroundings(
            nursery=nursery,
            token=trio.lowlevel.current_trio_token(),
            hooks=self.hooks,
            prompt=self.prompt,
            tools=self.tools,
            models=models,
            limits=limits,
            notifications=self.notifications,
            ids=ids,
            threads=ToolThreads(limits),
            places=Places(limits.runtime_calls_max) if limits.runtime_calls_max else None,
            approver=approver,
            forget=self._forget,
            fault=self._fault,
        )

    @property
    def agents(self) -> Mapping[SessionId, Agent]:
        """The live agents, by name."""
        return dict(self._agents)

    async def create_agent(
        self,
        name: str | None = None,
        *,
        tools: Iterable[Tool | Function] = (),
        config: CallConfig | None = None,
    ) -> Agent:
        """A new agent on a new session. A checkpoint.

        Args:
            name: of the session; left out, one is made.
            tools: of this agent alone.
            config: the settings of its requests; left out, the runtime's.

        Raises:
            InvalidInputError: the name has a form that no session's may have.
            SessionExistsError: a live agent or the store has it.
            SessionLockedError: another process writes the store.
        """
        chosen = self._surroundings.ids.session() if name is None else session_id(name)
        return await self._open(
            chosen, lambda: self._opener.create(chosen, cwd=os.getcwd()), tools, config
        )

    async def resume_agent(
        self,
        name: str,
        *,
        tools: Iterable[Tool | Function] = (),
        config: CallConfig | None = None,
    ) -> Agent:
        """An agent that goes on with a stored session, repaired if it was interrupted (D4).

        A checkpoint. It starts nothing by itself: `wake()` or the next waking message does (I5).

        Raises:
            InvalidInputError: the name has a form that no session's may have.
            UnknownSessionError: the store has no such session.
            SessionLockedError: a live agent or another process writes it.
            LogError: it can't be read as a log.
        """
        chosen = session_id(name)
        if chosen in self._agents:
            raise SessionLockedError(f"session {name!r}", "an agent of this runtime")
        return await self._open(chosen, lambda: self._opener.resume(chosen), tools, config)

    async def fork_agent(
        self,
        parent: str,
        name: str | None = None,
        *,
        at_seq: int | None = None,
        tools: Iterable[Tool | Function] = (),
        config: CallConfig | None = None,
    ) -> Agent:
        """A new agent that begins where another session was, pending messages left out (D6).

        A checkpoint. The parent may be live; it isn't changed.

        Args:
            parent: the name of the session to begin with.
            name: of the new session; left out, one is made.
            at_seq: the last event to inherit; left out, the last one outside of a turn.
            tools: of the new agent alone.
            config: the settings of its requests; left out, the runtime's.

        Raises:
            InvalidInputError: the parent has no event `at_seq`, or a name has a wrong form.
            OpenTurnError: `at_seq` lies inside a turn.
            SessionExistsError: a live agent or the store has the new name.
            UnknownSessionError: there is no such parent.
        """
        chosen = self._surroundings.ids.session() if name is None else session_id(name)
        events = await self._events_of(session_id(parent))
        return await self._open(
            chosen,
            lambda: self._opener.fork(chosen, events, at_seq=at_seq, cwd=os.getcwd()),
            tools,
            config,
        )

    async def _events_of(self, name: SessionId) -> Sequence[Event]:
        live = self._agents.get(name)
        return await self._opener.read(name) if live is None else live.session.events()

    async def _open(
        self,
        name: SessionId,
        opening: Callable[[], Awaitable[Session]],
        tools: Iterable[Tool | Function],
        config: CallConfig | None,
    ) -> Agent:
        self._check_open()
        if name in self._agents or name in self._opening:
            raise SessionExistsError(f"an agent {name!r} is live already: choose another name")
        self._opening.add(name)
        try:
            session = await opening()
        finally:
            self._opening.discard(name)
        if self._closing:  # meanwhile: nobody else would give the lease back
            await session.release()
            self._check_open()
        agent = Agent(session, self._surroundings, config or self._config)
        for tool in tools:
            agent.tools.register(tool)
        self._agents[name] = agent
        self.notifications.send(Created(name))
        return agent

    def _check_open(self) -> None:
        if self._closing:
            raise RuntimeClosedError("this runtime was left: open another one")

    async def wait_idle(self) -> None:
        """Wait until no agent of this runtime works. A checkpoint."""
        while busy := [agent for agent in self._agents.values() if agent.status == "running"]:
            await busy[0].wait_idle()
        await trio.lowlevel.checkpoint()

    def on(self, kind: str, listener: Callable[[Any], None]) -> Registration:
        """Call `listener(notification)` for each notification of a kind from any agent.

        Raises:
            InvalidInputError: there is no such kind.
        """
        return self.notifications.on(kind, listener)

    def watch(self) -> Watch:
        """Live notifications of all agents, as `Agent.watch` gives those of one."""
        return self.notifications.watch()

    def _forget(self, name: SessionId) -> None:
        self._agents.pop(name, None)

    def _fault(self, name: SessionId, error: BaseException) -> None:
        error.add_note(f"a fault of trioloop's own, in the driver of {name!r}; please report it")
        self.faults.append(error)

    def begin_closing(self, cause: str) -> None:
        """Dispose of every agent; the nursery waits for them."""
        self._closing = True
        for agent in self._agents.values():
            agent.begin_disposal(cause)


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
    main_model = loaded(model)
    known = table([*([main_model] if main_model is not None else []), *map(_required, models)])
    opened_store = _store(store, durability)
    left_with: BaseException | None = None
    faults: list[BaseException] = []
    try:
        async with (
            _closing(known.values(), limits),
            _writing(opened_store, limits) as writer,
            trio.open_nursery() as nursery,
        ):
            runtime = Runtime(
                nursery=nursery,
                opener=SessionOpener(opened_store, writer, clock),
                models=known,
                config=config or default_config(main_model),
                limits=limits,
                ids=ids or Ids(),
                approver=approver,
            )
            faults = runtime.faults
            try:
                _furnish(runtime, tools, system, hooks)
                async with AsyncExitStack() as stack:
                    for plugin in plugins:
                        await stack.enter_async_context(plugin(runtime))
                    yield runtime
            except BaseException as error:  # raised below, without our own layers around it
                left_with = error
            cancelled = isinstance(left_with, trio.Cancelled)
            runtime.begin_closing(HOST_CANCELLED if cancelled else "disposed")
    except BaseException as layered:  # what the agents' tasks came out with
        raise left_with or _without_layers(layered) from None
    if left_with is not None:
        raise left_with
    if strict and faults:
        raise faults[0]


def _without_layers(error: BaseException) -> BaseException:
    """What our own nurseries have wrapped: one exception, or a group of several."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


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


@asynccontextmanager
async def _closing(models: Iterable[Model], limits: Limits) -> AsyncIterator[None]:
    """Models whose connections are closed in the end; they open anew when they are next asked."""
    try:
        yield
    finally:
        # Sockets must close even where the host has been cancelled; bounded by close_s.
        with trio.CancelScope(shield=True, deadline=trio.current_time() + limits.close_s):
            for model in models:
                if isinstance(model, Closable):
                    await model.aclose()


@asynccontextmanager
async def _writing(store: SessionStore, limits: Limits) -> AsyncIterator[StoreWriter]:
    """The store's writer, which outlives every agent; then the store is closed."""
    writer = StoreWriter(store, limits)
    try:
        async with trio.open_nursery() as services:
            await services.start(writer.run)
            try:
                yield writer
            finally:
                writer.close()
    finally:
        # Unlocking must happen even where the host has been cancelled; bounded by close_s.
        with trio.CancelScope(shield=True, deadline=trio.current_time() + limits.close_s):
            await store.aclose()
