"""import-time: what `import trioloop` costs a fresh Python, to what it needs anyway."""

import os
import resource
import sys
import tempfile
from collections.abc import AsyncIterator

import trio

from bench.report import Figure, Timed, alternate

NAME = "import-time"
RUNS = 15
OURS = "import trioloop"
BASELINE = "import trio, httpx, msgspec"
COUNT = "; import sys; print(len(sys.modules))"


async def run() -> AsyncIterator[Figure]:
    """CPU of a Python that imports trioloop, and of one that imports the baseline.

    Both read bytecode that the warm-up wrote.
    """
    with tempfile.TemporaryDirectory() as bytecode:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        ours, baseline = await alternate(
            _cpu_of(OURS, environment), _cpu_of(BASELINE, environment), RUNS
        )
        facts: dict[str, float | int | str] = {
            "modules": await _modules(OURS, environment),
            "baseline_modules": await _modules(BASELINE, environment),
        }
    yield Figure(
        bench=NAME,
        case="trioloop",
        unit="ms",
        values=tuple(ours),
        versus=BASELINE,
        baseline=tuple(baseline),
        facts=facts,
    )


def _cpu_of(code: str, environment: dict[str, str]) -> Timed:
    async def timed() -> float:
        before = _cpu_of_children()
        await trio.run_process([sys.executable, "-c", code], env=environment)
        return (_cpu_of_children() - before) * 1e3

    return timed


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def _modules(code: str, environment: dict[str, str]) -> int:
    done = await trio.run_process(
        [sys.executable, "-c", code + COUNT], env=environment, capture_stdout=True
    )
    return int(done.stdout)
