"""One run of a script: everything that lives in it, from the opening of a runtime to its end."""

import hashlib
import logging
import random
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any

import attrs
import trio
from trio.testing import MockClock

from tests.simulation.answerers import Approver, Models, Reading
from tests.simulation.bodies import Started, Toolbox
from tests.simulation.coverage import Coverage
from tests.simulation.deeds import ScriptedError, mark_cancel, observe
from tests.simulation.listeners import Listener
from tests.simulation.lives import Life
from tests.simulation.policies.children import Children
from tests.simulation.policies.opening import Policies
from tests.simulation.schedule import TaskOrder, living_tasks, seeded_schedule
from tests.simulation.script import Script
from tests.simulation.stores import ScriptedStore
from tests.simulation.users import run_user
from trioloop import (
    Agent,
    ByteEstimator,
    Event,
    Limits,
    Runtime,
    Section,
    Session,
    open_runtime,
)
from trioloop.codec import encode_event
from trioloop.events import TurnEnded
from trioloop.handles import AgentHandle
from trioloop.log.fold import fold
from trioloop.plugins import Approvals, compaction, pruning, retry
from trioloop.runtime.open import Plugin
from trioloop.testing import Answer, seeded_ids

LIMITS = Limits(
    block_warning_s=None,
    grace_s=2,
    post_s=1,
    close_s=3,
    retry_turns_max=2,
    continuations_max=3,
    pauses_max=2,
    queue_messages_max=30,
)
# Bodies have their time, then each part of the end: settling, releasing, writing, unlocking.
LEFT_WITHIN_S = LIMITS.grace_s + LIMITS.post_s + LIMITS.close_s
DONE_AFTER_S = 300.0  # more than any script takes, but for models that stall


class World:
    """What runs, and what is seen of it.

    Attributes:
        violations: what broke a promise while it ran.
        chronicle: the events of all lives, as they came.
        transcript: who did what when, for people.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.order = TaskOrder()
        self.store = ScriptedStore(script.faults, self.pass_waits)
        self.models = Models(self)
        self.toolbox = Toolbox(self)
        self.coverage = Coverage()
        self.policies = Policies(self)
        self.children = Children(self)
        self.lives: list[Life] = []
        self.chronicle: list[tuple[Life, Event]] = []
        self.started: list[Started] = []
        self.violations: list[str] = []
        self.transcript: list[str] = []
        self.sent = 0
        self.causes = 0
        self.forks = 0
        self.left = False
        self.left_at_s = 0.0
        self._hand: trio.MemorySendChannel[trio.MemorySendChannel[None]] | None = None

    # What everybody here uses

    def tell(self, what: str) -> None:
        """Take down what happens."""
        self.transcript.append(f"{trio.current_time():8.3f}  {what}")

    def life(self, number: int) -> Life | None:
        """The last life of an agent of the script; None: it has none yet."""
        wanted = number % len(self.script.agents)
        own = (life for life in reversed(self.lives) if not life.depth)
        return next((life for life in own if life.number == wanted), None)

    def of(self, agent: AgentHandle) -> Life:
        """The life of a handle."""
        return next(life for life in reversed(self.lives) if life.agent is agent)

    def session_of(self, agent: AgentHandle) -> Session:
        """The log of a handle."""
        return self.of(agent).agent.session

    def answers_of(self, session: str) -> tuple[Answer, ...]:
        """What models answer to a session."""
        life = next(life for life in self.lives if life.agent.name == session)
        answers = self.script.agents[life.number].answers
        return answers[life.depth :][:2] if life.depth else answers

    async def pass_waits(self, seconds: float = 0) -> None:
        """Pass two waits; the second hands over a value, so a cancel can come too late for it."""
        await trio.sleep(seconds)
        assert self._hand is not None
        give, take = trio.open_memory_channel[None](0)
        self._hand.send_nowait(give)
        await take.receive()

    async def stray_cancelled(self) -> trio.Cancelled:
        """A `Cancelled` that belongs to no open scope any more."""
        with trio.CancelScope() as scope:
            scope.cancel()
            try:
                await trio.lowlevel.checkpoint()
            except trio.Cancelled as stray:
                kept = stray
                raise
        return kept

    # The run

    async def run(self) -> None:
        """Run the script to its end."""
        before = living_tasks()
        self._hand, asked = trio.open_memory_channel[trio.MemorySendChannel[None]](1000)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_hand_over, asked)
            try:
                await self._run_in_scope()
            finally:
                self.left_at_s = trio.current_time()
                self._hand.close()
        if living_tasks() != before:
            self.violations.append(f"tasks are left: {living_tasks() - before} (G6)")

    async def _run_in_scope(self) -> None:
        ending = self.script.ending
        error = ScriptedError("the block")
        with trio.CancelScope() as host:
            try:
                async with (
                    self._open() as runtime,
                    AsyncExitStack() as stack,
                    trio.open_nursery() as users,
                ):
                    self._furnish(runtime)
                    await self.policies.open(runtime)
                    stack.push_async_callback(self.policies.close)
                    users.start_soon(self.policies.answer_questions)
                    users.start_soon(self._close_policies)
                    for number in range(len(self.script.agents)):
                        await self.create(runtime, number)
                    if ending.does in ("host", "raise"):
                        users.start_soon(self._end, host, error)
                    await self._let_users_act(runtime)
                    if ending.does == "idle":
                        await self._until_idle(runtime)
                    users.cancel_scope.cancel()
                    self._leave()
            except ScriptedError as raised:
                if raised is not error:
                    self.violations.append(f"{raised!r} came out of the runtime")
            except ExceptionGroup as group:
                if group.exceptions != (error,):
                    self.violations.append(f"{group!r} came out of the runtime")
        self._check_leaving()

    def _open(self) -> Any:  # Any: an async context manager of a runtime
        settings = self.script.settings
        limits = attrs.evolve(
            LIMITS,
            calls_max=settings.calls_max,
            runtime_calls_max=settings.runtime_calls_max,
            result_bytes_max=1000 if self.script.policies.spills else LIMITS.result_bytes_max,
        )
        jitter = random.Random(self.script.seed).random
        return open_runtime(
            model=self.models.first,
            models=[self.models.second],
            store=self.store,
            limits=limits,
            plugins=self._plugins(jitter),
            system=[Section(one.name, Reading(self, one)) for one in self.script.sections],
            approver=self._approver(),
            ids=seeded_ids(self.script.seed),
            clock=lambda: round(trio.current_time() * 1000),
            strict=True,
        )

    def _approver(self) -> Approver | Approvals | None:
        answer = self.script.settings.approves
        if answer is None:
            return None
        return self.policies.approvals or Approver(self, answer)

    def _plugins(self, jitter: Callable[[], float]) -> list[Plugin]:
        settings = self.script.settings
        window = settings.window_tokens
        plugins: list[Plugin] = []
        if settings.retries:
            plugins.append(partial(retry, random=jitter))
        if settings.prunes:
            plugins.append(partial(pruning, window_tokens=window, keep=0, result_chars_max=100))
        if settings.compacts:
            dear = ByteEstimator(message_tokens=20)  # so that a summary of two messages is cheaper
            plugins.append(
                partial(
                    compaction, window_tokens=window, keep=0.1, recoveries_max=2, estimator=dear
                )
            )
        return plugins

    def _furnish(self, runtime: Runtime) -> None:
        runtime.on("created", lambda one: self.children.take_up(runtime.agents[one.agent]))
        self.toolbox.furnish_runtime(runtime)
        for hook in self.script.hooks:
            if hook.agent is None:
                Listener(self, hook).register(runtime.hooks)

    async def create(self, runtime: Runtime, number: int) -> None:
        """Make an agent of the script."""
        agent = await runtime.create_agent(f"a{number}")
        self.take_up(agent, number)
        await self.policies.take_up(agent, number)

    def take_up(self, agent: Agent, number: int, *, depth: int = 0) -> Life:
        """Furnish an agent that has just come to life, and watch it."""
        life = Life(agent, number, agent.session.events(), depth=depth)
        self.lives.append(life)
        self.tell(f"{agent.name} begins at event {agent.session.seq}")
        life.watch()
        agent.session.observe(partial(self._watch, life))
        if not depth:
            self.toolbox.furnish_agent(agent, number)
        for hook in self.script.hooks:
            if hook.agent is not None and hook.agent % len(self.script.agents) == number:
                Listener(self, hook).register(agent.hooks)
        for one in self.script.observers:
            if one.agent % len(self.script.agents) == number and not depth:
                observe(self, agent, one)
        return life

    def _watch(self, life: Life, event: Event) -> None:
        session = life.agent.session
        self.chronicle.append((life, event))
        self.transcript.append(
            f"{trio.current_time():8.3f}  {session.name} {event.seq} {event.type}"
        )
        if isinstance(event.data, TurnEnded) and fold(session.events()) != session.state:
            self.violations.append(f"folding {session.name} to {event.seq} differs (G9)")

    async def _close_policies(self) -> None:
        """Close the policies while agents work, if the script says so."""
        at_s = self.script.policies.closed_at_s
        if at_s is not None:
            await trio.sleep(at_s)
            self.tell("the policies are closed")
            self.policies.closed_early = True
            await self.policies.close()

    async def _let_users_act(self, runtime: Runtime) -> None:
        async with trio.open_nursery() as nursery:
            for number, user in enumerate(self.script.users):
                name = f"user {number}"
                nursery.start_soon(run_user, self, runtime, user, name, name=name)

    async def _until_idle(self, runtime: Runtime) -> None:
        """Wait until all is done. What doesn't get done, since a model stalls, is cancelled."""
        with trio.move_on_after(DONE_AFTER_S):
            await runtime.wait_idle()
        for _ in range(100):
            if all(life.agent.status == "idle" for life in self.lives):
                return
            for life in self.lives:
                mark_cancel(self, life.agent, "the end", cause="the end")
                life.agent.cancel("the end")
            with trio.move_on_after(LEFT_WITHIN_S):
                await runtime.wait_idle()
        self.violations.append("an agent works on and on, whatever is cancelled")

    async def _end(self, host: trio.CancelScope, error: Exception) -> None:
        await trio.sleep(self.script.ending.at_s)
        self._leave()
        if self.script.ending.does == "raise":
            raise error
        for life in self.lives:
            mark_cancel(self, life.agent, "host", cause=None)
        host.cancel()

    def _leave(self) -> None:
        self.left = True
        self.left_at_s = trio.current_time()
        self.tell(f"the runtime is left: {self.script.ending.does}")

    def _check_leaving(self) -> None:
        took = trio.current_time() - self.left_at_s
        if took > LEFT_WITHIN_S:
            self.violations.append(f"leaving the runtime took {took:g} s (R9)")
        for life in self.lives:
            if life.agent.status != "idle":
                self.violations.append(f"{life.agent.name} is left {life.agent.status}")


async def _hand_over(asked: trio.MemoryReceiveChannel[trio.MemorySendChannel[None]]) -> None:
    """The other side of every wait that hands over a value; it ends with the run."""
    async for give in asked:
        with suppress(trio.WouldBlock):  # whoever waited was cancelled
            give.send_nowait(None)


@attrs.frozen
class Ran:
    """A run that is over.

    Attributes:
        world: all that was in it.
        digest: of every log, byte for byte, and of the transcript.
        order: of the sequence of task steps.
        steps: how many there were.
        error: what came out of it, which is a violation.
    """

    world: World
    digest: str
    order: str
    steps: int
    error: BaseException | None


def run_script(script: Script, *, schedule: int | None = None) -> Ran:
    """Run a script.

    Args:
        script: what happens.
        schedule: another seed for the task order than the script's own.
    """
    world = World(script)
    error: BaseException | None = None
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # failing observers are logged, which is slow
    try:
        with seeded_schedule(script.seed if schedule is None else schedule):
            trio.run(world.run, clock=MockClock(autojump_threshold=0), instruments=[world.order])
    except Exception as raised:  # whatever it is, it is what the run came to
        error = raised
    finally:
        logging.disable(level)
    return Ran(world, _digest(world), world.order.digest, world.order.steps, error)


def _digest(world: World) -> str:
    whole = hashlib.blake2b(digest_size=12)
    for life in world.lives:
        for event in life.agent.session.events():
            whole.update(encode_event(event))
    whole.update("\n".join(world.transcript).encode())
    return whole.hexdigest()
