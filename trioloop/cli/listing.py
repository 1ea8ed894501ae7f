"""Rows whose last cell is text of any length, at a terminal of any width or at a pipe."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from trioloop.cli.pipes import write
from trioloop.cli.wording import cells, one_line, shortened

_TEXT_WIDTH_MIN = 24  # with less than this beside the other cells, the text gets a line of its own
_GAP = "  "


def print_rows(out: Console, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows in columns, the last cell cut to what is left of the line.

    At a pipe nothing is cut: a line a row, its cells set apart by tabs, without the header.
    """
    shown = [tuple(one_line(cell) for cell in row) for row in rows]
    if not out.is_terminal:
        print_tabbed(out, shown)
        return
    widths = [max(map(cells, column)) for column in zip(header, *shown, strict=True)][:-1]
    left = out.width - sum(widths) - len(_GAP) * len(widths)
    if left >= _TEXT_WIDTH_MIN:
        out.print(Text(_columns(header, widths) + header[-1], style="dim"), soft_wrap=True)
    for row in shown:
        _print_row(out, row, widths, left)


def print_tabbed(out: Console, rows: Iterable[Sequence[str]]) -> None:
    """Print rows for programs: a line a row, its cells set apart by tabs."""
    write(out.file, "".join("\t".join(map(one_line, row)) + "\n" for row in rows))


def _print_row(out: Console, row: Sequence[str], widths: Sequence[int], left: int) -> None:
    columns = Text(_columns(row, widths), style="cyan")
    if left >= _TEXT_WIDTH_MIN:
        out.print(Text.assemble(columns, shortened(row[-1], left)), soft_wrap=True)
        return
    columns.rstrip()
    out.print(columns, soft_wrap=True)
    if row[-1]:
        out.print(Text(_GAP + shortened(row[-1], max(out.width - 2, 8))), soft_wrap=True)


def _columns(row: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell + " " * (width - cells(cell)) for cell, width in zip(row, widths, strict=False))
    return "".join(cell + _GAP for cell in padded)
