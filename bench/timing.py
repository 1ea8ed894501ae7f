"""Takes the time of two things in turn, so that what slows the machine slows both.

Ours and the baseline alternate (A B B A) in one process, after a warm-up that doesn't count, and
the garbage is collected before each timing. Each timing has CPU time, which other processes hardly
touch, and wall time.
"""

import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from types import TracebackType

import attrs

Work = Callable[[], Awaitable[object]]


@attrs.frozen
class Effort:
    """How thoroughly to measure.

    Attributes:
        runs: alternations that count.
        part: of each benchmark's full size, from 0 to 1; small ones are for a quick look.
    """

    runs: int = 9
    part: float = 1.0

    def size(self, full: int) -> int:
        """A number of calls, steps, turns or agents: that part of the full one, at least 1."""
        return max(1, round(full * self.part))

    def sizes(self, full: Iterable[int], at_least: int = 1) -> list[int]:
        """Several of them, each once."""
        return sorted({max(self.size(one), at_least) for one in full})


@attrs.frozen
class Spent:
    """What some work took, in seconds.

    Attributes:
        cpu: of this process, all its threads.
        wall: that passed.
    """

    cpu: float
    wall: float

    def __truediv__(self, parts: float) -> "Spent":
        return Spent(self.cpu / parts, self.wall / parts)


Timed = Callable[[], Awaitable[Spent]]


@attrs.frozen
class Timings:
    """What ours and the baseline took, run by run."""

    ours: tuple[Spent, ...]
    baseline: tuple[Spent, ...]

    @property
    def above_us(self) -> float:
        """How much more CPU ours took, in microseconds: the median of the runs' differences."""
        pairs = zip(self.ours, self.baseline, strict=True)
        return statistics.median(ours.cpu - baseline.cpu for ours, baseline in pairs) * 1e6


class Stopwatch:
    """`with Stopwatch() as watch: ...`; then `watch.spent`.

    Args:
        collects: collect the garbage first; False where that was done for several timings.
    """

    spent: Spent

    def __init__(self, *, collects: bool = True) -> None:
        self._collects = collects

    def start(self) -> None:
        """Begin."""
        if self._collects:
            gc.collect()
        self._wall = time.perf_counter()
        self._cpu = time.process_time()

    def stop(self) -> None:
        """Take the time."""
        cpu = time.process_time() - self._cpu
        self.spent = Spent(cpu, time.perf_counter() - self._wall)

    def __enter__(self) -> "Stopwatch":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


def timed(work: Work, repeat: int = 1, per: int = 1) -> Timed:
    """Time some work: for each of its `per` parts, over some repetitions."""

    async def once() -> Spent:
        with Stopwatch() as watch:
            for _ in range(repeat):
                await work()
        return watch.spent / (repeat * per)

    return once


def sum_of(spent: Sequence[Spent]) -> Spent:
    """All of it together, by both clocks."""
    return Spent(sum(one.cpu for one in spent), sum(one.wall for one in spent))


def median_of(spent: Sequence[Spent]) -> Spent:
    """The medians of both clocks."""
    return Spent(
        statistics.median(one.cpu for one in spent), statistics.median(one.wall for one in spent)
    )


async def alternate(ours: Timed, baseline: Timed, runs: int) -> Timings:
    """Time two things in turn, after one run of each that doesn't count.

    Who comes first changes from run to run, so that neither always finds what the other left.
    """
    kept: tuple[list[Spent], list[Spent]] = ([], [])
    for run in range(runs + 1):
        pairs = list(zip((ours, baseline), kept, strict=True))
        for once, its in pairs if run % 2 else reversed(pairs):
            spent = await once()
            if run:
                its.append(spent)
    return Timings(tuple(kept[0]), tuple(kept[1]))
