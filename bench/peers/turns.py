"""The work that every peer does, and how it's timed: turns of an agent whose model is in-process.

A turn has some steps. In each but the last the model asks for some calls of a tool that does
nothing, in one message; in the last it says that it is done. What is timed is one process that does
this and nothing else. Only anyio and Python's own library are imported here.
"""

import argparse
import dataclasses
import gc
import json
import time
from collections.abc import Awaitable, Callable

import anyio

Turn = Callable[[], Awaitable[object]]


@dataclasses.dataclass
class Work:
    """What is to be done.

    Attributes:
        calls: in each step but the last.
        steps: in each turn.
        turns: in all.
        done: calls that were done so far.
    """

    calls: int
    steps: int
    turns: int
    done: int = 0

    async def noop(self, index: int) -> int:
        """Do nothing."""
        self.done += 1
        return index


class Answers:
    """What the model answers in one turn after the other: how many calls, 0 at a turn's end."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._step = 0
        self.first = 0  # the number of the answer's first call; ids are made of it

    def next_calls(self) -> range:
        """The numbers of the calls that the next answer asks for; empty: it is the last."""
        self._step += 1
        if self._step == self._work.steps:
            self._step = 0
            return range(0)
        first, self.first = self.first, self.first + self._work.calls
        return range(first, self.first)


def measure(prepare: Callable[[Work], Turn], *, backend: str = "asyncio") -> None:
    """Do what the command line asks for, and print what a turn took as JSON.

    Args:
        prepare: makes the agent, and gives what runs one turn of it.
        backend: of anyio.
    """
    parser = argparse.ArgumentParser()
    for name in ("calls", "steps", "turns"):
        parser.add_argument(f"--{name}", type=int, required=True)
    work = Work(**vars(parser.parse_args()))
    anyio.run(_timed, work, prepare(work), backend=backend)


async def _timed(work: Work, turn: Turn) -> None:
    await turn()
    work.done = 0
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(work.turns):
        await turn()
    spent = {
        "cpu": (time.process_time() - cpu) / work.turns,
        "wall": (time.perf_counter() - wall) / work.turns,
    }
    expected = work.calls * (work.steps - 1) * work.turns
    if work.done != expected:
        raise SystemExit(f"{work.done} calls were done, not {expected}")
    print(json.dumps(spent))
