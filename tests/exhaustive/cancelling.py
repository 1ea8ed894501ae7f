"""Ways to end work, one run of a scene that is ended at a point, and sweeps of them."""

import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache
from itertools import count as numbers

import attrs
import trio
import trio.testing

from tests.exhaustive.checks import (
    Ledger,
    Mark,
    check_durable,
    check_end,
    check_marked,
    check_undisturbed,
)
from tests.exhaustive.points import EventPoint, line_of_point
from tests.exhaustive.scenes import SCENES, Scene, Stage
from trioloop.agent.agent import Agent
from trioloop.errors import AgentDisposedError
from trioloop.testing import CancelPoint, cancel_at_every_checkpoint

POINTS = int(os.environ.get("TRIOLOOP_SWEEP_POINTS", "20000"))
"""About how many points all sweeps together may have: fewer leave some out, more begin anew.

By hand, give 200000.
"""

GOES_ON_EVERY = 4
"""Of so many points one goes on with what it left pending: that is the same work once more."""


def _cancel(stage: Stage, host: trio.CancelScope) -> None:
    stage.agent.cancel("why")


def _discard(stage: Stage, host: trio.CancelScope) -> None:
    stage.agent.cancel("why", discard_inbox=True)


def _cancel_first_call(stage: Stage, host: trio.CancelScope) -> None:
    _cancel_call(stage, 0)


def _cancel_last_call(stage: Stage, host: trio.CancelScope) -> None:
    _cancel_call(stage, -1)


def _cancel_call(stage: Stage, index: int) -> None:
    step = stage.agent.session.state.step
    if step is not None and step.unanswered:
        stage.agent.cancel_call(step.unanswered[index].call)


def _dispose(stage: Stage, host: trio.CancelScope) -> None:
    stage.agent.begin_disposal("disposed")


def _cancel_host(stage: Stage, host: trio.CancelScope) -> None:
    host.cancel()


@attrs.frozen
class Way:
    """A way to end work.

    Attributes:
        act: does it.
        cause: the cause of a turn that it ends; None: it ends none.
        goes_on: the agent can go on behind it.
    """

    act: Callable[[Stage, trio.CancelScope], None]
    cause: str | None
    goes_on: bool = True


WAYS = {
    "turn": Way(_cancel, "why"),
    "discard": Way(_discard, "why"),
    "first call": Way(_cancel_first_call, None),
    "last call": Way(_cancel_last_call, None),
    "dispose": Way(_dispose, "disposed", goes_on=False),
    "host": Way(_cancel_host, "host-cancelled", goes_on=False),
}
COMBINATIONS = [
    (scene, way)
    for scene in SCENES
    for way in WAYS
    if not way.endswith("call") or scene in ("tools", "contexts", "approval")
]


@attrs.define
class Sweep:
    """What one sweep came through.

    Attributes:
        lines: how many of its points fell in which line.
        before_admission: points from a claim to its admission, behind which the log was compared.
        seconds: of the processor that it took.
    """

    lines: Counter[str] = attrs.field(factory=Counter)
    before_admission: int = 0
    seconds: float = 0

    @property
    def points(self) -> int:
        """How many points were reached."""
        return self.lines.total()


class Run:
    """One run of a scene, ended at a point."""

    def __init__(self, scene: Scene, way: Way, sweep: Sweep) -> None:
        self._scene = scene
        self._way = way
        self._sweep = sweep
        self._mark: Mark | None = None

    async def __call__(self, point: CancelPoint | EventPoint) -> None:
        """Run the scene, end it at the point, and check what is left."""
        with trio.CancelScope() as host:
            async with self._scene.open() as stage:
                ledger = Ledger(stage)
                if isinstance(point, EventPoint):
                    stage.agent.session.observe(point.observe)
                point.arm(lambda: self._end(point, ledger, host))
                with suppress(AgentDisposedError):
                    await self._scene.act(stage.agent)
                await stage.agent.wait_idle()
                point.disarm()
                self._check(point, ledger)
                if self._way.goes_on and point.number % GOES_ON_EVERY == 0:
                    await go_on(stage.agent)
                elif point.reached:
                    await stage.agent.dispose()
        point.disarm()
        assert not host.cancelled_caught or point.reached
        self._check(point, ledger)
        check_end(ledger)
        check_durable(ledger)

    def _end(self, point: CancelPoint | EventPoint, ledger: Ledger, host: trio.CancelScope) -> None:
        line = line_of_point(point, ledger.stage.agent, max(ledger.settled, default=0))
        self._sweep.lines[line] += 1
        self._mark = Mark.of(ledger.stage, line)
        if self._mark.is_before_admission and self._way.cause is not None:
            self._sweep.before_admission += 1
        self._way.act(ledger.stage, host)

    def _check(self, point: CancelPoint | EventPoint, ledger: Ledger) -> None:
        if self._mark is None or self._way.cause is None:
            check_undisturbed(ledger, self._scene, calls_only=self._mark is not None)
        else:
            check_marked(ledger, self._scene, self._mark, self._way.cause)


async def go_on(agent: Agent) -> None:
    """Wake an agent until nothing is pending."""
    for _ in range(10):
        if not len(agent.session.state.inbox):
            return
        agent.wake()
        await agent.wait_idle()
    raise AssertionError("messages stay pending, however often their agent is woken")


# Sweeps


@cache
def swept(scene: str, way: str) -> Sweep:
    """A scene, ended in some way before every task step of it."""
    sweep = Sweep()

    async def run(point: CancelPoint) -> None:
        await Run(SCENES[scene], WAYS[way], sweep)(point)

    began = time.process_time()
    for _ in range(rounds()):
        cancel_at_every_checkpoint(run, every=every())
    sweep.seconds = time.process_time() - began
    return sweep


@cache
def swept_by_events(scene: str, way: str) -> Sweep:
    """A scene, ended in some way by an observer of each of its events."""
    sweep = Sweep()
    for number in numbers(1):
        point = EventPoint(number)
        clock = trio.testing.MockClock(autojump_threshold=0)
        try:
            trio.run(Run(SCENES[scene], WAYS[way], sweep), point, clock=clock)
        except BaseException as error:
            error.add_note(f"at event {number}")
            raise
        if not point.reached:
            break
    return sweep


@cache
def all_points() -> int:
    """About how many points all sweeps have, each once."""
    return sum(_points(scene) for scene, _ in COMBINATIONS)


@cache
def _points(scene: str) -> int:
    point = CancelPoint(1_000_000_000)
    run: Callable[[CancelPoint], Awaitable[None]] = Run(SCENES[scene], WAYS["turn"], Sweep())
    clock = trio.testing.MockClock(autojump_threshold=0)
    trio.run(run, point, clock=clock, instruments=[point])
    return point.passed


def every() -> int:
    """Every which task step is a point, so that there are no more than `POINTS`."""
    return max(1, -(-all_points() // POINTS))


def rounds() -> int:
    """How often each sweep runs; Trio shuffles its tasks anew each time."""
    return max(1, POINTS // all_points())
