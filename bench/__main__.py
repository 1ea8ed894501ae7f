"""`python -m bench [NAME] [--list] [--json] [--plot DIR] [--runs N] [--part P]`."""

import argparse
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Protocol

import trio

from bench import (
    agents,
    cancel,
    import_time,
    pool_barriers,
    pool_makespan,
    pool_overhead,
    step_growth,
    stream,
    turn_growth,
)
from bench.peers import compare
from bench.plots import plot
from bench.report import Figure, print_table
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
        stream,
        cancel,
        import_time,
        compare,
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


def main() -> None:
    """Read the command line, measure, report."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("name", nargs="?", choices=sorted(BENCHES), help="only this benchmark")
    parser.add_argument("--list", action="store_true", help="say which benchmarks there are")
    parser.add_argument("--json", action="store_true", help="print a JSON object for each figure")
    parser.add_argument("--plot", type=Path, metavar="DIR", help="write an SVG for each benchmark")
    parser.add_argument("--runs", type=int, default=Effort().runs, help="alternations of each case")
    parser.add_argument(
        "--part", type=float, default=1.0, help="of the full sizes, such as 0.1 for a quick look"
    )
    asked = parser.parse_args()
    names = [asked.name] if asked.name else list(BENCHES)
    if asked.list:
        for name in names:
            print((BENCHES[name].__doc__ or name).partition("\n")[0])
        return
    effort = Effort(asked.runs, asked.part)
    figures = trio.run(lambda: measure(names, effort, as_json=asked.json))
    if not asked.json:
        print_table(figures)
    if asked.plot is not None:
        plot(figures, asked.plot)


if __name__ == "__main__":
    main()
