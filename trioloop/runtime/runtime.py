"""The runtime: owns a nursery, the agents in it, and what they share.

How it begins and ends is in `lifetime`, what an agent does in `agent/`.
"""

import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import attrs
import trio

from trioloop.agent.agent import Agent
from trioloop.agent.closing import Closing
from trioloop.agent.notifications import Created
from trioloop.agent.resources import Surroundings
from trioloop.agent.stuck import StuckTurns
from trioloop.agent.watching import Notifications, Watch
from trioloop.errors import (
    RuntimeClosedError,
    SessionExistsError,
    SessionLockedError,
)
from trioloop.events import CallConfig, Event
from trioloop.hooks.dispatch import Registration
from trioloop.hooks.points import Hooks
from trioloop.ids import Ids, SessionId, session_id
from trioloop.limits import Limits
from trioloop.log.state import OpenCall
from trioloop.ports import Approver, Model, SessionSummary, StoredRow, ToolOutcome
from trioloop.prompt import Prompt
from trioloop.runtime.keeping import KeptResult, keep_result
from trioloop.runtime.models import checked_config
from trioloop.runtime.opening import SessionOpener
from trioloop.runtime.subagents import PARENT_ENDED, known_child, working_for
from trioloop.session import Session
from trioloop.tools.context import ToolContext
from trioloop.tools.places import Places
from trioloop.tools.registry import ToolRegistry
from trioloop.tools.rerun import may_run_again
from trioloop.tools.threads import ToolThreads
from trioloop.tools.tool import Function, Tool


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
        approver: answers the questions of pre-policies.
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
        closing: Closing,
        stuck: StuckTurns,
    ) -> None:
        self.hooks = Hooks()
        self.tools = ToolRegistry()
        self.prompt = Prompt()
        self.limits = limits
        self.approver = approver
        self.notifications = Notifications(limits.watch_notifications_max)
        self.faults: list[BaseException] = []
        self._agents: dict[SessionId, Agent] = {}
        self._opening: set[SessionId] = set()
        self._children: set[SessionId] = set()  # those of the agents that work for a call
        self._closed = False
        self._closing = closing
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
            closing=closing,
            stuck=stuck,
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
        rerun: bool = False,
        tools: Iterable[Tool | Function] = (),
        config: CallConfig | None = None,
    ) -> Agent:
        """An agent that goes on with a stored session, repaired if it was interrupted (D4).

        A checkpoint. It starts nothing by itself, but for what `rerun` asks: `wake()` or the next
        waking message does (I5).

        Args:
            name: of the session.
            rerun: run calls again that had started when its process died and whose tools are
                read-only or idempotent, before the interrupted turn is closed. The tools must be
                among `tools` or the runtime's. Wait for that with `wait_idle()`.
            tools: of this agent alone.
            config: the settings of its requests; left out, the runtime's.

        Raises:
            InvalidInputError: the name has a form that no session's may have.
            UnknownSessionError: the store has no such session.
            SessionLockedError: a live agent or another process writes it.
            LogError: it can't be read as a log.
        """
        chosen = session_id(name)
        if chosen in self._agents:
            raise SessionLockedError(f"session {name!r}", "an agent of this runtime")
        own = _registry(tools) or ToolRegistry()

        def repeats(call: OpenCall) -> bool:
            return rerun and may_run_again(
                call, lambda name: own.find(name) or self.tools.find(name)
            )

        agent = await self._open(
            chosen, lambda: self._opener.resume(chosen, rerun=repeats), own, config
        )
        agent.end_interrupted_turn()
        return agent

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
        events = await self.events_of(parent)
        return await self._open(
            chosen,
            lambda: self._opener.fork(chosen, events, at_seq=at_seq, cwd=os.getcwd()),
            tools,
            config,
        )

    def delegate(
        self,
        context: ToolContext,
        child: str | None = None,
        *,
        tools: Iterable[Tool | Function] = (),
        config: CallConfig | None = None,
    ) -> AbstractAsyncContextManager[Agent]:
        """An agent that works for a call, the child of the call's own agent (R9).

        An async context manager for a tool's body. The child's tasks are the call's: whatever ends
        the call ends the child, its turn aborted with the cause `parent`. Left the block, it is
        disposed of; its session stays, and a later call of the same parent may go on with it. The
        parent's log names the child, the child's first event the parent.

        Args:
            context: as the body was given it; the body is async.
            child: the session to go on with; left out, a new one.
            tools: of the child alone, beside the runtime's.
            config: the settings of its requests; left out, the runtime's.

        Raises:
            UnknownSessionError: the parent has no such child.
            SessionLockedError: another call works with that child.
        """

        async def open_child() -> Agent:
            around = attrs.evolve(
                self._surroundings, nursery=context.nursery, host_cause=PARENT_ENDED
            )
            if child is None:
                opened = context.agent.session.state.session
                name = around.ids.session()
                opening = partial(self._opener.create, name, cwd=os.getcwd(), parent=opened)
            else:
                name = known_child(context.agent.session, child)
                if name in self._agents or name in self._opening:
                    raise SessionLockedError(f"session {name!r}", "another call of this runtime")
                opening = partial(self._opener.resume, name)
            return await self._open(name, opening, tools, config, around)

        return working_for(context, open_child)

    async def events_of(self, name: str) -> Sequence[Event]:
        """The events of a session, live or stored. A checkpoint where it is stored.

        Raises:
            InvalidInputError: the name has a form that no session's may have.
            UnknownSessionError: there is none of that name.
            LogError: it can't be read as a log.
        """
        live = self._agents.get(session_id(name))
        return await self._opener.read(session_id(name)) if live is None else live.session.events()

    async def _open(
        self,
        name: SessionId,
        opening: Callable[[], Awaitable[Session]],
        tools: Iterable[Tool | Function],
        config: CallConfig | None,
        around: Surroundings | None = None,
    ) -> Agent:
        self._check_open()
        own_tools, settings = _registry(tools), checked_config(config)
        if name in self._agents or name in self._opening:
            raise SessionExistsError(f"an agent {name!r} is live already: choose another name")
        self._opening.add(name)
        try:
            session = await opening()
        finally:
            self._opening.discard(name)
        if self._closed:  # meanwhile: nobody else would give the lease back
            await session.release(by=self._closing.flushed_by)
            self._check_open()
        agent = Agent(session, around or self._surroundings, settings or self._config, own_tools)
        self._agents[name] = agent
        if around is not None:
            self._children.add(name)
        if self.notifications.heard:
            self.notifications.send(Created(name))
        return agent

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeClosedError("this runtime was left: open another one")

    async def stored_sessions(self) -> list[SessionSummary]:
        """What the store has, by name. A checkpoint.

        Raises:
            StoreFailedError: the store fails.
        """
        return await self._opener.store.sessions()

    async def stored_events(
        self, name: str, *, after: int = -1, limit: int | None = None
    ) -> Sequence[StoredRow]:
        """Durable events of a session, live or not, as they are stored. A checkpoint.

        Args:
            name: of the session.
            after: the seq of the last event that the reader has.
            limit: events at most.

        Raises:
            InvalidInputError: the name has a form that no session's may have.
            UnknownSessionError: the store has no such session.
        """
        return await self._opener.store.read(session_id(name), after=after, limit=limit)

    async def keep_result(self, outcome: ToolOutcome, *, preview_bytes_max: int) -> KeptResult:
        """Keep the whole text of a tool's outcome in the store, durable when this returns.

        A checkpoint; a long text is made in a thread. Equal texts are kept once.

        Args:
            outcome: as a post-policy is given it, before it is cut to its size.
            preview_bytes_max: how much of it the preview has, head and tail.

        Raises:
            StoreError: the store can't keep it.
        """
        store = self._opener.store
        return await keep_result(store, outcome, preview_bytes_max=preview_bytes_max)

    async def read_kept(self, locator: str) -> bytes:
        """What `keep_result` kept. A checkpoint.

        Raises:
            StoreError: nothing was kept under that locator, or it is damaged.
        """
        return await self._opener.store.get_blob(locator)

    async def wait_idle(self) -> None:
        """Wait until no agent of this runtime works. A checkpoint."""
        while busy := [agent for agent in self._agents.values() if agent.status == "running"]:
            await busy[0].wait_idle()
        await trio.lowlevel.checkpoint()

    def on(self, kind: str, listener: Callable[[Any], object]) -> Registration:
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
        self._children.discard(name)

    def _fault(self, name: SessionId, error: BaseException) -> None:
        error.add_note(f"a fault of trioloop's own, in the driver of {name!r}; please report it")
        self.faults.append(error)

    async def name_stray_threads(self) -> None:
        """Name abandoned threads in `logging` until they end (T13); a service, to be cancelled."""
        await self._surroundings.threads.name_strays()

    def begin_closing(self, cause: str) -> None:
        """Dispose of every agent; the nursery waits for them."""
        self._closed = True
        self._closing.begin()
        for name, agent in self._agents.items():
            agent.begin_disposal(PARENT_ENDED if name in self._children else cause)


def _registry(tools: Iterable[Tool | Function]) -> ToolRegistry | None:
    """A registry of some tools; None: there are none."""
    registry: ToolRegistry | None = None
    for tool in tools:
        registry = ToolRegistry() if registry is None else registry
        registry.register(tool)
    return registry
