"""`python -m bench [NAME ...] [--list] [--json] [--plot DIR] [--against DIR] [--part P]`."""

import argparse
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Protocol

import trio

from bench import (
    agents,
    cancel,
    control,
    import_time,
    log,
    pool_barriers,
    pool_makespan,
    pool_overhead,
    request_encode,
    step_growth,
    stream,
    turn_growth,
)
from bench.environment import environment
from bench.peers import compare
from bench.plots import plot
from bench.report import Figure, print_table
from bench.saved import print_changes, read, save
from bench.timing import Effort


class Bench(Protocol):
    """A module that measures one thing; its docstring's first line says what."""

    NAME: str
    __doc__: str | None

    def run(self, effort: Effort) -> AsyncGenerator[Figure, None]:
        """Measure its cases, one after the other."""
        ...


BENCHES: dict[str, Bench] = {
    module.NAME: module
    for module in (
        pool_overhead,
        pool_makespan,
        pool_barriers,
        step_growth,
        turn_growth,
        agents,
        request_encode,
        stream,
        cancel,
        control,
        import_time,
        compare,
        log,
    )
}


async def measure(names: Sequence[str], effort: Effort, *, as_json: bool) -> list[Figure]:
    """Run some benchmarks; as JSON, each figure is printed as soon as it's there."""
    figures = []
    for name in names:
        async with aclosing(BENCHES[name].run(effort)) as cases:
            async for figure in cases:
                figures.append(figure)
                if as_json:
                    print(figure.as_json(), flush=True)
    return figures


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("name", nargs="*", help="only these benchmarks")
    parser.add_argument("--list", action="store_true", help="say which benchmarks there are")
    parser.add_argument("--json", action="store_true", help="print a JSON object for each figure")
    parser.add_argument(
        "--plot", type=Path, metavar="DIR", help="write an SVG and the figures of each benchmark"
    )
    parser.add_argument(
        "--against", type=Path, metavar="DIR", help="compare with figures that --plot wrote"
    )
    parser.add_argument("--runs", type=int, default=Effort().runs, help="alternations of each case")
    parser.add_argument(
        "--part", type=float, default=1.0, help="of the full sizes, such as 0.1 for a quick look"
    )
    asked = parser.parse_args()
    for name in asked.name:
        if name not in BENCHES:
            parser.error(f"no benchmark is called {name!r}: {', '.join(BENCHES)}")
    return asked


def main() -> None:
    """Read the command line, measure, report."""
    asked = parsed()
    names = asked.name or list(BENCHES)
    if asked.list:
        for name in names:
            print((BENCHES[name].__doc__ or name).partition("\n")[0])
        return
    before = read(asked.against) if asked.against is not None else None
    print(*(f"{key} {fact}" for key, fact in environment().items()), sep=", ", file=sys.stderr)
    effort = Effort(asked.runs, asked.part)
    figures = trio.run(lambda: measure(names, effort, as_json=asked.json))
    if not asked.json:
        print_table(figures)
    if before is not None:
        print_changes(figures, before)
    if asked.plot is not None:
        plot(figures, asked.plot)
        save(figures, asked.plot)


if __name__ == "__main__":
    main()
