"""Figures on disk: `DIR/NAME.jsonl` beside the plots, and what they were measured on."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bench.environment import environment
from bench.report import Fact, Figure

Line = Mapping[str, Fact]


def by_bench(figures: Iterable[Figure]) -> dict[str, list[Figure]]:
    """Figures of each benchmark, in order."""
    found: dict[str, list[Figure]] = {}
    for figure in figures:
        found.setdefault(figure.bench, []).append(figure)
    return found


def save(figures: Iterable[Figure], folder: Path) -> None:
    """Write figures as JSON lines, a file for each benchmark, and the environment."""
    folder.mkdir(parents=True, exist_ok=True)
    for bench, its in by_bench(figures).items():
        lines = "".join(f"{figure.as_json()}\n" for figure in its)
        (folder / f"{bench}.jsonl").write_text(lines, encoding="utf-8")
    facts = json.dumps(environment(), indent=2)
    (folder / "environment.json").write_text(f"{facts}\n", encoding="utf-8")


def read(folder: Path) -> dict[tuple[str, str], Line]:
    """Saved figures, by benchmark and case.

    Raises:
        OSError: a file can't be read.
        ValueError: it holds no figures.
    """
    lines = [
        json.loads(line)
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return {(line["bench"], line["case"]): line for line in lines}


def print_changes(figures: Sequence[Figure], before: Mapping[tuple[str, str], Line]) -> None:
    """Print each ratio beside the one that was saved, and whether they lie apart.

    They do where the ratios of single runs don't overlap: else it may be the machine.
    """
    print(f"{'bench':14} {'case':24} {'before':>8} {'now':>8}")
    for figure in figures:
        was = before.get((figure.bench, figure.case))
        then = float(was["ratio"]) if was else None
        print(
            f"{figure.bench:14} {figure.case:24} "
            f"{'' if then is None else format(then, '8.3f'):>8} {figure.ratio:8.3f}  "
            f"{_verdict(figure, was)}".rstrip()
        )


def _verdict(figure: Figure, was: Line | None) -> str:
    if was is None:
        return "new"
    if min(figure.ratios) > float(was["ratio_max"]):
        return "dearer"
    return "cheaper" if max(figure.ratios) < float(was["ratio_min"]) else ""
