"""Draws figures: an SVG for each benchmark, with bars of ratios and what they wavered between."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.report import Figure
from bench.saved import by_bench

FAR_APART = 8


def plot(figures: Iterable[Figure], folder: Path) -> None:
    """Write an SVG of ratios for each benchmark into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for bench, its in by_bench(figures).items():
        _draw(bench, its, folder / f"{bench}.svg")


def _draw(bench: str, figures: Sequence[Figure], path: Path) -> None:
    """Bars of ratios; the line is the baseline, the whiskers the ratios of single runs.

    Ratios far apart are drawn to a logarithmic scale, from the baseline to both sides.
    """
    import matplotlib
    from matplotlib.figure import Figure as Sheet

    ratios = [figure.ratio for figure in figures]
    below = [max(0.0, figure.ratio - min(figure.ratios)) for figure in figures]
    above = [max(0.0, max(figure.ratios) - figure.ratio) for figure in figures]
    with matplotlib.rc_context({"svg.hashsalt": bench, "svg.fonttype": "none"}):
        sheet = Sheet(figsize=(7, 1.1 + 0.32 * len(figures)), layout="constrained")
        axes = sheet.subplots()
        apart = min(ratios) > 0 and max(ratios) / min(ratios) > FAR_APART
        start = 1 if apart else 0
        bars = axes.barh(
            [figure.case for figure in figures],
            [ratio - start for ratio in ratios],
            left=start,
            xerr=(below, above),
            color="#4477aa",
        )
        if apart:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter("{x:g}")
        axes.bar_label(bars, [f" {ratio:.2f}" for ratio in ratios], padding=2)
        axes.axvline(1, color="#cc3311", linestyle="--", linewidth=1)
        axes.margins(x=0.15)
        axes.invert_yaxis()
        versus = sorted({figure.versus for figure in figures})
        axes.set_title(f"{bench}: ratio to {versus[0] if len(versus) == 1 else 'the baseline'}")
        axes.spines[["top", "right"]].set_visible(False)
        sheet.savefig(path, metadata={"Date": None})
