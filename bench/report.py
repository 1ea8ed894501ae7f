"""Measures alternately, and reports: a table, JSON lines, an SVG picture.

Ours and the baseline are timed in turn (A B A B) in one process, after a warm-up, with the garbage
collected before each timing. Medians are compared.
"""

import gc
import json
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import attrs

Timed = Callable[[], Awaitable[float]]


@attrs.frozen
class Figure:
    """One case of a benchmark.

    Attributes:
        bench: the benchmark's name.
        case: what varies.
        unit: of the values.
        values: ours, one for each run.
        versus: what the baseline is.
        baseline: its values.
        facts: what else a reader should know.
    """

    bench: str
    case: str
    unit: str
    values: tuple[float, ...]
    versus: str
    baseline: tuple[float, ...]
    facts: dict[str, float | int | str] = attrs.field(factory=dict)

    @property
    def median(self) -> float:
        """Our median."""
        return statistics.median(self.values)

    @property
    def ratio(self) -> float:
        """Our median to the baseline's."""
        return self.median / statistics.median(self.baseline)

    def as_json(self) -> str:
        """The figure as one line of JSON."""
        line = {
            "bench": self.bench,
            "case": self.case,
            "unit": self.unit,
            "runs": len(self.values),
            "min": round(min(self.values), 3),
            "median": round(self.median, 3),
            "max": round(max(self.values), 3),
            "versus": self.versus,
            "ratio": round(self.ratio, 3),
            **self.facts,
        }
        return json.dumps(line)


async def alternate(ours: Timed, baseline: Timed, runs: int) -> tuple[list[float], list[float]]:
    """Time two things in turn, after one run of each that doesn't count."""
    values: tuple[list[float], list[float]] = ([], [])
    for run in range(runs + 1):
        for timed, kept in zip((ours, baseline), values, strict=True):
            gc.collect()
            value = await timed()
            if run:
                kept.append(value)
    return values


def cpu_time(work: Callable[[], Awaitable[object]], repeat: int, calls: int = 1) -> Timed:
    """Time some work: microseconds of CPU for each of its calls, over some repetitions."""

    async def timed() -> float:
        began = time.process_time()
        for _ in range(repeat):
            await work()
        return (time.process_time() - began) / repeat / calls * 1e6

    return timed


def wall_time(work: Callable[[], Awaitable[object]]) -> Timed:
    """Time some work: milliseconds that pass."""

    async def timed() -> float:
        began = time.perf_counter()
        await work()
        return (time.perf_counter() - began) * 1e3

    return timed


def print_table(figures: Sequence[Figure]) -> None:
    """Print figures, one a line."""
    rows = [("bench", "case", "median", "min", "max", "ratio", "versus")]
    rows += [
        (
            one.bench,
            one.case,
            f"{one.median:.2f} {one.unit}",
            f"{min(one.values):.2f}",
            f"{max(one.values):.2f}",
            f"{one.ratio:.3f}",
            one.versus + "".join(f", {key} {value}" for key, value in one.facts.items()),
        )
        for one in figures
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = zip(row, widths, strict=True)
        print("  ".join(cell.ljust(width) for cell, width in cells).rstrip(), flush=True)


def plot(figures: Iterable[Figure], folder: Path) -> None:
    """Write an SVG of ratios for each benchmark into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    by_bench: dict[str, list[Figure]] = {}
    for figure in figures:
        by_bench.setdefault(figure.bench, []).append(figure)
    for bench, its in by_bench.items():
        (folder / f"{bench}.svg").write_text(_picture(bench, its), encoding="utf-8")


_LEFT, _WIDTH, _ROW = 140, 420, 26


def _picture(bench: str, figures: Sequence[Figure]) -> str:
    """Bars of ratios; the line is the baseline."""
    scale = _WIDTH / max(1.2, *(figure.ratio for figure in figures))
    height = _ROW * (len(figures) + 2)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 80}" '
        f'height="{height}" font-family="sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="8" y="18" font-weight="bold">{escape(bench)}: '
        f"ratio to {escape(figures[0].versus)}</text>",
    ]
    for row, figure in enumerate(figures, 1):
        top = row * _ROW + 4
        length = figure.ratio * scale
        parts += [
            f'<text x="{_LEFT - 8}" y="{top + 14}" text-anchor="end">{escape(figure.case)}</text>',
            f'<rect x="{_LEFT}" y="{top}" width="{length:.1f}" height="18" fill="#4477aa"/>',
            f'<text x="{_LEFT + length + 6:.1f}" y="{top + 14}">{figure.ratio:.2f}</text>',
        ]
    line = _LEFT + scale
    parts.append(
        f'<path d="M{line:.1f} {_ROW} V{height - _ROW // 2}" stroke="#cc3311" '
        'stroke-dasharray="4 3"/></svg>\n'
    )
    return "\n".join(parts)
