"""`python -m bench [NAME] [--json] [--plot DIR]`."""

import argparse
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

import trio

from bench import import_time, pool_barriers, pool_makespan, pool_overhead
from bench.report import Figure, plot, print_table

BENCHES: dict[str, Callable[[], AsyncIterator[Figure]]] = {
    module.NAME: module.run for module in (pool_overhead, pool_makespan, pool_barriers, import_time)
}


async def measure(names: list[str], *, as_json: bool) -> list[Figure]:
    """Run some benchmarks; as JSON, each figure is printed as soon as it's there."""
    figures = []
    for name in names:
        async with aclosing(BENCHES[name]()) as cases:  # type: ignore[type-var]
            async for figure in cases:
                figures.append(figure)
                if as_json:
                    print(figure.as_json(), flush=True)
    return figures


def main() -> None:
    """Read the command line, measure, report."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("name", nargs="?", choices=sorted(BENCHES), help="only this benchmark")
    parser.add_argument("--json", action="store_true", help="print a JSON object for each figure")
    parser.add_argument("--plot", type=Path, metavar="DIR", help="write an SVG for each benchmark")
    asked = parser.parse_args()
    names = [asked.name] if asked.name else list(BENCHES)
    figures = trio.run(lambda: measure(names, as_json=asked.json))
    if not asked.json:
        print_table(figures)
    if asked.plot is not None:
        plot(figures, asked.plot)


if __name__ == "__main__":
    main()
