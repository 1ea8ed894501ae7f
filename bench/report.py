"""What a benchmark tells: figures, as a table and as JSON lines.

Pictures of them are in `plots`, how they are measured in `timing`.
"""

import json
import statistics
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import attrs

from bench.timing import Spent, Timings

Clock: TypeAlias = Literal["cpu", "wall"]
Fact: TypeAlias = float | int | str


@attrs.frozen
class Figure:
    """One case of a benchmark.

    Attributes:
        bench: the benchmark's name.
        case: what varies.
        unit: of the values.
        values: ours, one for each run.
        versus: what the baseline is.
        baseline: its values, run by run beside ours.
        facts: what else a reader should know.
    """

    bench: str
    case: str
    unit: str
    values: tuple[float, ...]
    versus: str
    baseline: tuple[float, ...]
    facts: Mapping[str, Fact] = attrs.field(factory=dict)

    @property
    def median(self) -> float:
        """Our median."""
        return statistics.median(self.values)

    @property
    def ratios(self) -> list[float]:
        """Ours to the baseline's, run by run."""
        return [_ratio(*pair) for pair in zip(self.values, self.baseline, strict=True)]

    @property
    def ratio(self) -> float:
        """The median of the ratios.

        Both values of a run were taken one after the other, so most of what slows a machine for a
        while cancels out. It doesn't in the ratio of two medians.
        """
        return statistics.median(self.ratios)

    @property
    def quickest(self) -> float:
        """The least of our values to the least of the baseline's: both hardly disturbed."""
        return _ratio(min(self.values), min(self.baseline))

    def as_json(self) -> str:
        """The figure as one line of JSON."""
        line: dict[str, Fact] = {
            "bench": self.bench,
            "case": self.case,
            "unit": self.unit,
            "runs": len(self.values),
            "min": round(min(self.values), 3),
            "median": round(self.median, 3),
            "max": round(max(self.values), 3),
            "versus": self.versus,
            "baseline": round(statistics.median(self.baseline), 3),
            "ratio": round(self.ratio, 3),
            "ratio_min": round(min(self.ratios), 3),
            "ratio_max": round(max(self.ratios), 3),
            "quickest": round(self.quickest, 3),
        }
        return json.dumps(line | dict(self.facts))


def compared(
    bench: str,
    case: str,
    timings: Timings,
    *,
    unit: str,
    versus: str,
    clock: Clock = "cpu",
    **facts: Fact,
) -> Figure:
    """A figure from timings in seconds; the ratio by the other clock is told, too.

    Args:
        bench: the benchmark's name.
        case: what varies.
        timings: of ours and the baseline.
        unit: `us` or `ms`, perhaps `/` of what.
        versus: what the baseline is.
        clock: the one that matters.
        facts: what else a reader should know.
    """
    scale = {"us": 1e6, "ms": 1e3}[unit.partition("/")[0]]
    other: Clock = "wall" if clock == "cpu" else "cpu"
    pairs = zip(_seconds(timings.ours, other), _seconds(timings.baseline, other), strict=True)
    ratio = statistics.median(_ratio(*pair) for pair in pairs)
    return Figure(
        bench=bench,
        case=case,
        unit=unit,
        values=tuple(value * scale for value in _seconds(timings.ours, clock)),
        versus=versus,
        baseline=tuple(value * scale for value in _seconds(timings.baseline, clock)),
        facts={"clock": clock, f"{other}_ratio": round(ratio, 3), **facts},
    )


def _seconds(spent: Sequence[Spent], clock: Clock) -> tuple[float, ...]:
    return tuple(one.cpu if clock == "cpu" else one.wall for one in spent)


def _ratio(ours: float, baseline: float) -> float:
    """A baseline too short for the clock gives 0, which is plainly no ratio."""
    return ours / baseline if baseline else 0.0


def print_table(figures: Sequence[Figure]) -> None:
    """Print figures, one a line."""
    rows: list[tuple[str, ...]] = [
        ("bench", "case", "median", "min to max", "ratio", "of runs", "quickest", "versus")
    ]
    rows += [_row(figure) for figure in figures]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = zip(row, widths, strict=True)
        print("  ".join(cell.ljust(width) for cell, width in cells).rstrip(), flush=True)


def _row(figure: Figure) -> tuple[str, ...]:
    return (
        figure.bench,
        figure.case,
        f"{figure.median:.2f} {figure.unit}",
        f"{min(figure.values):.2f} to {max(figure.values):.2f}",
        f"{figure.ratio:.3f}",
        f"{min(figure.ratios):.2f} to {max(figure.ratios):.2f}",
        f"{figure.quickest:.3f}",
        figure.versus + "".join(f", {key} {value}" for key, value in figure.facts.items()),
    )
