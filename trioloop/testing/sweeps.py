"""Sweeps: a scenario is run once for each place at which something may happen to it.

Each run is a `trio.run` of its own under a virtual clock, so a sweep is called from a plain
function. Trio shuffles its tasks, so that each run may take another order.
"""

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import ParamSpec, Protocol, TypeVar, cast

import attrs
import trio
import trio.testing

from trioloop.errors import InvalidInputError
from trioloop.store.memory import MemoryStore
from trioloop.testing.stores import FaultyStore, StoreFault

ParametersT = ParamSpec("ParametersT")
ResultT = TypeVar("ResultT")


class _Point(Protocol):
    @property
    def number(self) -> int: ...

    @property
    def reached(self) -> bool: ...


PointT = TypeVar("PointT", bound=_Point)

# Cancelling


@attrs.define(eq=False)
class CancelPoint(trio.abc.Instrument):
    """One point of a sweep: the task step before which something is done.

    Attributes:
        number: which task step after `arm`, counted from 1.
        reached: whether the run came to it.
        passed: how many task steps were counted.
    """

    number: int
    reached: bool = False
    passed: int = 0
    _action: Callable[[], object] | None = None

    def arm(self, action: Callable[[], object]) -> None:
        """Count task steps from here on, and call `action` before the one that is meant.

        Args:
            action: such as `agent.cancel` or a cancel scope's `cancel`; synchronous.
        """
        self._action = action
        self.passed = 0

    def disarm(self) -> None:
        """Count no further; a run that comes here unreached is the last."""
        self._action = None

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Count one task step."""
        if self._action is None:
            return
        self.passed += 1
        if self.passed == self.number:
            action, self._action = self._action, None
            self.reached = True
            action()


def cancel_at_every_checkpoint(
    scenario: Callable[[CancelPoint], Awaitable[None]],
    *,
    every: int = 1,
    points_max: int = 100_000,
) -> int:
    """Run a scenario again and again, and do something before its first, second, ... task step.

    The scenario arms its point, does its work, disarms it, and asserts what must hold wherever the
    point fell.

    Args:
        scenario: `async def scenario(point)`; it calls `point.arm(action)`.
        every: only every so many task steps are points, where all would take too long.
        points_max: after so many runs the sweep gives up.

    Returns:
        How many points were reached.

    Raises:
        InvalidInputError: there are more points than `points_max`.
        BaseException: whatever a run raised, with a note that names the point.
    """
    return _sweep(
        lambda number: CancelPoint(1 + (number - 1) * every),
        scenario,
        points_max,
    )


# Raising


class CallPoint:
    """One point of a sweep: the call at which something is raised.

    Attributes:
        number: which call, counted from 1 over everything that counts.
        reached: whether the run came to it.
        where: the function that it was reached in, where that is wrapped.
    """

    def __init__(self, number: int, error: BaseException) -> None:
        self.number = number
        self.reached = False
        self.where: str | None = None
        self._error = error
        self._left = number

    def count(self, where: str | None = None) -> None:
        """Count one call.

        Args:
            where: the name that `where` gets if it is the one that is meant.

        Raises:
            BaseException: it is the one that is meant; what the sweep was told to raise.
        """
        self._left -= 1
        if self._left == 0:
            self.reached = True
            self.where = where
            raise self._error

    def wrap(self, function: Callable[ParametersT, ResultT]) -> Callable[ParametersT, ResultT]:
        """A function whose calls count; the one that is meant raises in its place.

        Args:
            function: a listener, an observer, a condition, a section, a tool's body; plain or
                async.
        """
        name = getattr(function, "__name__", repr(function))
        if not inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            def counted(*args: ParametersT.args, **kwargs: ParametersT.kwargs) -> ResultT:
                self.count(name)
                return function(*args, **kwargs)

            return counted

        @functools.wraps(function)
        async def counted_async(*args: ParametersT.args, **kwargs: ParametersT.kwargs) -> object:
            self.count(name)
            return await function(*args, **kwargs)

        return cast("Callable[ParametersT, ResultT]", counted_async)


def _usual_error() -> BaseException:
    return RuntimeError("raised by the sweep")


def raise_at_every_call(
    scenario: Callable[[CallPoint], Awaitable[None]],
    *,
    error: Callable[[], BaseException] = _usual_error,
    points_max: int = 100_000,
) -> int:
    """Run a scenario again and again, and let its first, second, ... counted call raise.

    The scenario wraps what may fail (`point.wrap`), does its work, and asserts what must hold
    whichever call raised.

    Args:
        scenario: `async def scenario(point)`.
        error: makes what is raised, before each run; `stray_cancelled` makes a `Cancelled`.
        points_max: after so many runs the sweep gives up.

    Returns:
        How many calls there were.

    Raises:
        InvalidInputError: there are more points than `points_max`.
        BaseException: whatever a run raised, with a note that names the point.
    """
    return _sweep(lambda number: CallPoint(number, error()), scenario, points_max)


def stray_cancelled() -> trio.Cancelled:
    """A `Cancelled` of a scope that is long over, as buggy code raises it (R8).

    Only outside of `trio.run`.
    """

    async def catch() -> trio.Cancelled | None:
        with trio.CancelScope() as scope:
            scope.cancel()
            try:
                await trio.lowlevel.checkpoint()
            except trio.Cancelled as cancelled:  # noqa: ASYNC103 - to be raised where it is none
                return cancelled  # noqa: ASYNC104
        return None

    cancelled = trio.run(catch)
    assert cancelled is not None  # the scope was cancelled before the checkpoint
    return cancelled


# Failing commits


@attrs.frozen
class _CommitPoint:
    number: int
    store: FaultyStore

    @property
    def reached(self) -> bool:
        return self.store.failed > 0


def fail_at_every_commit(
    scenario: Callable[[FaultyStore], Awaitable[None]],
    *,
    fault: StoreFault = "fails",
    count: int | None = None,
    points_max: int = 100_000,
) -> int:
    """Run a scenario again and again, and let its first, second, ... commit go wrong.

    The scenario works with the store that it is given, and asserts what must hold whichever commit
    went wrong; `store.kept` has what became durable.

    Args:
        scenario: `async def scenario(store)`; the store is a new one each time.
        fault: what happens to the commit; see `FaultyStore`.
        count: how many commits go wrong from that one on; None: all.
        points_max: after so many runs the sweep gives up.

    Returns:
        How many commits there were.

    Raises:
        InvalidInputError: there are more points than `points_max`.
        BaseException: whatever a run raised, with a note that names the point.
    """

    def make(number: int) -> _CommitPoint:
        store = FaultyStore(MemoryStore(), first=number, count=count, fault=fault)
        return _CommitPoint(number, store)

    return _sweep(make, lambda point: scenario(point.store), points_max)


# All of them


def _sweep(
    make: Callable[[int], PointT],
    scenario: Callable[[PointT], Awaitable[None]],
    points_max: int,
) -> int:
    for number in range(1, points_max + 1):
        point = make(number)
        clock = trio.testing.MockClock(autojump_threshold=0)
        instruments: list[trio.abc.Instrument] = []
        if isinstance(point, trio.abc.Instrument):
            instruments.append(point)
        try:
            trio.run(scenario, point, clock=clock, instruments=instruments)
        except BaseException as error:
            where = getattr(point, "where", None)
            error.add_note(f"at point {point.number}" + (f", in {where}" if where else ""))
            raise
        if not point.reached:
            return number - 1
    raise InvalidInputError(f"the scenario has more than {points_max} points: raise points_max")
