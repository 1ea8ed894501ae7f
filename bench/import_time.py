"""import-time: what `import trioloop` costs a fresh Python, to what it needs anyway."""

import os
import resource
import sys
import tempfile
import time
from collections.abc import AsyncGenerator

import trio

from bench.report import Figure, compared
from bench.timing import Effort, Spent, Timed, alternate

NAME = "import-time"
OURS = "import trioloop"
BASELINE = "import trio, httpx, msgspec"
COUNT = "; import sys; print(len(sys.modules))"


async def run(effort: Effort) -> AsyncGenerator[Figure, None]:
    """CPU of a Python that imports trioloop, and of one that imports the baseline.

    Both read bytecode that the warm-up wrote.
    """
    with tempfile.TemporaryDirectory() as bytecode:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        timings = await alternate(
            _spent_by(OURS, environment), _spent_by(BASELINE, environment), effort.runs
        )
        figure = compared(
            NAME,
            "trioloop",
            timings,
            unit="ms",
            versus=BASELINE,
            modules=await _modules(OURS, environment),
            baseline_modules=await _modules(BASELINE, environment),
        )
    yield figure


def _spent_by(code: str, environment: dict[str, str]) -> Timed:
    async def once() -> Spent:
        cpu, wall = _cpu_of_children(), time.perf_counter()
        await trio.run_process([sys.executable, "-c", code], env=environment)
        return Spent(_cpu_of_children() - cpu, time.perf_counter() - wall)

    return once


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def _modules(code: str, environment: dict[str, str]) -> int:
    done = await trio.run_process(
        [sys.executable, "-c", code + COUNT], env=environment, capture_stdout=True
    )
    return int(done.stdout)
