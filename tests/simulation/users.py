"""Users: tasks of the host that send, cancel, ask, dispose of agents and take them up again."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import trio

from tests.simulation.deeds import ScriptedError, do, mark_cancel, message
from tests.simulation.script import Deed, UserAct, UserScript, Wait
from trioloop import Runtime
from trioloop.errors import GrammarError, InternalError, ModelFailure, TrioloopError
from trioloop.plugins.compaction import SummaryError

if TYPE_CHECKING:
    from tests.simulation.lives import Life
    from tests.simulation.world import World

ACCEPTABLE = {
    "AGENT_DISPOSED",
    "DISCARDED",
    "PARKED",
    "QUEUE_FULL",
    "RUNTIME_CLOSED",
    "SESSION_EXISTS",
    "SESSION_LOCKED",
    "STORE_FAILED",
    "FENCED",
    "UNKNOWN_SESSION",
}
"""Codes that whoever waits for something may be told."""


async def run_user(world: "World", runtime: Runtime, user: UserScript, name: str) -> None:
    """Do one act after the other."""
    for act in user.acts:
        await world.pass_waits(act.after_s)
        if not isinstance(act.does, Deed):
            await _wait(world, runtime, act, act.does, name)
        elif act.after_steps:
            world.order.after(act.after_steps, partial(_do, world, act.does, "point"))
        else:
            _do(world, act.does, name)


def _do(world: "World", deed: Deed, name: str) -> None:
    try:
        do(world, deed, name)
    except ScriptedError:
        world.tell(f"{name}: raised, which concerns nobody")


async def _wait(world: "World", runtime: Runtime, act: UserAct, what: Wait, name: str) -> None:
    life = world.life(act.agent)
    if life is None:
        return
    world.tell(f"{name}: {what} {life.agent.name}")
    with trio.move_on_after(act.patience_s) as patience:
        try:
            await _WAITS[what](world, runtime, life)
        except (InternalError, GrammarError) as error:
            world.violations.append(f"{what} by {name} raised {error!r}")
        except TrioloopError as error:
            world.tell(f"{name}: {what} raised {error.code}")
            nothing_stored = what == "fork" and error.code == "INVALID_INPUT" and world.store.failed
            if error.code not in ACCEPTABLE and not nothing_stored:
                world.violations.append(f"{what} raised {error!r}")
    if patience.cancelled_caught:
        world.tell(f"{name}: {what} was given up")


# What is waited for


async def _ask(world: "World", runtime: Runtime, life: "Life") -> None:
    question = message(world)
    settled = await life.agent.ask(question)
    life.taken.append(question.id)
    world.tell(f"{question.id} settled: turn {settled.turn}, {settled.reason} {settled.code or ''}")


async def _dispose(world: "World", runtime: Runtime, life: "Life") -> None:
    if not life.disposing:
        mark_cancel(world, life.agent, "disposal", cause="disposed")
        life.disposing = True
    await life.agent.dispose()
    if life.agent.status != "idle" or runtime.agents.get(life.agent.name) is life.agent:
        world.violations.append(f"{life.agent.name} was disposed of, and lives on (I7)")


async def _resume(world: "World", runtime: Runtime, life: "Life") -> None:
    """Dispose of an agent, and take its session up again."""
    await _dispose(world, runtime, life)
    agent = await runtime.resume_agent(life.agent.name)
    world.take_up(agent, life.number)
    await world.policies.take_up(agent, life.number)
    agent.wake()


async def _idle(world: "World", runtime: Runtime, life: "Life") -> None:
    await life.agent.wait_idle()


async def _maintain(world: "World", runtime: Runtime, life: "Life") -> None:
    if world.script.settings.compacts:
        with suppress(ModelFailure, SummaryError):
            await life.agent.compact()
        return

    async def job() -> None:
        if life.agent.turn is not None:
            world.violations.append("maintenance runs in a turn (I7)")
        await world.pass_waits(0.5)
        if life.agent.turn is not None:
            world.violations.append("a turn opened during maintenance (I7)")

    await life.agent.run_maintenance(job)


async def _checkpoint(world: "World", runtime: Runtime, life: "Life") -> None:
    session = life.agent.session
    seq = session.seq
    await session.checkpoint()
    if session.durable_seq < seq:
        world.violations.append(f"a checkpoint returned before event {seq} was durable (D2)")


async def _fork(world: "World", runtime: Runtime, life: "Life") -> None:
    """A child begins where an agent is, and works once on its own."""
    world.forks += 1
    child = await runtime.fork_agent(life.agent.name, f"fork{world.forks}")
    world.take_up(child, life.number)
    await world.policies.take_up(child, life.number)
    child.followup(message(world))
    await child.wait_idle()


async def _spent(world: "World", runtime: Runtime, life: "Life") -> None:
    await world.policies.compare_trees(life)


_WAITS: Mapping[Wait, Callable[["World", Runtime, "Life"], Awaitable[None]]] = {
    "ask": _ask,
    "dispose": _dispose,
    "resume": _resume,
    "idle": _idle,
    "maintain": _maintain,
    "checkpoint": _checkpoint,
    "fork": _fork,
    "spent": _spent,
}
