"""The order in which Trio runs tasks, drawn from a seed; and what that order was.

The one place that reaches into Trio. Its scheduler reverses a batch of runnable tasks by the toss
of a module-private coin, and leaves the rest to the order of sets, which differs from process to
process. For Hypothesis it has a second way: sort the batch, then shuffle it with that private
`Random`. A run is replayed exactly only with this second way and a `Random` of our own.
"""

import hashlib
import heapq
import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

import trio
from trio._core import _run
from trio.testing import MockClock


@contextmanager
def seeded_schedule(seed: int) -> Iterator[None]:
    """Trio runs started in the block order their tasks as the seed says.

    A virtual clock in it that has nowhere to jump to ends its run, which else would never end.
    """
    order = patch.multiple(_run, _ALLOW_DETERMINISTIC_SCHEDULING=True, _r=random.Random(seed))
    with order, patch.object(MockClock, "_autojump", _jump):
        yield


def _jump(clock: MockClock) -> None:
    left_s = trio.lowlevel.current_statistics().seconds_to_next_deadline
    if left_s == float("inf"):
        raise RuntimeError("every task waits for another one, for ever")
    if left_s > 0:
        clock.jump(left_s)


class TaskOrder(trio.abc.Instrument):
    """Watches which task runs when, and does things between two steps.

    Attributes:
        steps: how many there have been.
    """

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=8)
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = itertools.count()  # of equal steps the first comes first
        self.steps = 0

    def after(self, steps: int, act: Callable[[], None]) -> None:
        """Call something that doesn't raise before the task step that is so far away."""
        heapq.heappush(self._due, (self.steps + steps, next(self._numbers), act))

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Take one step down."""
        self._hash.update(task.name.encode() + b"\0")
        self.steps += 1
        while self._due and self._due[0][0] <= self.steps:
            heapq.heappop(self._due)[2]()

    @property
    def digest(self) -> str:
        """A hash of the sequence of names."""
        return self._hash.hexdigest()


def living_tasks() -> set[trio.lowlevel.Task]:
    """Every task of the current run but Trio's own."""
    root = trio.lowlevel.current_root_task()
    assert root is not None
    found: set[trio.lowlevel.Task] = set()
    waiting = [task for nursery in root.child_nurseries for task in nursery.child_tasks]
    while waiting:
        task = waiting.pop()
        found.add(task)
        waiting += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    return found
