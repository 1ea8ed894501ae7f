"""Two screens: a terminal with a line that moves, and plain lines for everything else.

The answer goes to standard output, everything about it to standard error, so that `>` and `|` get
the answer alone. Drawing is collected, and carried out in a thread by `flush`, because a terminal
or a pipe may be held up for as long as a person likes.
"""

from collections.abc import Callable
from typing import Literal

import trio
from rich.console import Console
from rich.text import Text

from trioloop.cli.display import Summary
from trioloop.cli.pipes import write
from trioloop.cli.wording import neutral, one_line, seconds, shortened

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAMES_PER_S = 10
_PROGRESS_AFTER_S = 0.15  # what is over sooner isn't worth a flicker
_CALLS_NAMED_MAX = 3
_CLEAR_LINE = "\r\x1b[2K"


class PlainScreen:
    """Lines, as they come; for pipes, files and terminals that can't move their cursor.

    Args:
        out: for the answer.
        side: for everything else.
        announces_calls: a call that starts gets a line of its own.
    """

    def __init__(self, out: Console, side: Console, *, announces_calls: bool = True) -> None:
        self._out = out
        self._side = side
        self._announces_calls = announces_calls
        self._shares_terminal = out.is_terminal and side.is_terminal
        self._in_line: Console | None = None  # who has written a line without its end
        self._last: Literal["answer", "line"] | None = None
        self._pending: list[Callable[[], object]] = []

    async def flush(self) -> None:
        """Carry out what was drawn. A checkpoint; cancelled, it is carried out anyway."""
        if self._pending:
            await trio.to_thread.run_sync(self.flush_now)
        else:
            await trio.lowlevel.checkpoint()

    def flush_now(self) -> None:
        """The same from a thread, or where nothing runs any more."""
        pending, self._pending = self._pending, []
        for draw in pending:
            draw()
        write(self._out.file, "")
        write(self._side.file, "")

    def answer(self, text: str) -> None:
        self._set_apart("answer")
        self._continue_line(self._out, text, "")

    def reasoning(self, text: str) -> None:
        if self._side.is_terminal:
            self._continue_line(self._side, text, "dim italic")

    def end_of_text(self) -> None:
        if self._in_line is not None:
            console, self._in_line = self._in_line, None
            self._draw(lambda: write(console.file, "\n"))

    def call_started(self, line: str) -> None:
        if self._announces_calls:
            self._line(Text.assemble(("· ", "dim"), shown_call(line)))

    def call_ended(
        self, line: str, result: str, *, is_error: bool, elapsed_s: float | None
    ) -> None:
        mark = ("✗ ", "red") if is_error else ("✓ ", "green")
        took = f"  {seconds(elapsed_s)}" if elapsed_s is not None else ""
        width = self._width() - len(took) - 6
        call = shortened(line, max(20, width * 2 // 3))
        gave = shortened(result, max(20, width - len(call)))
        told = (gave, "red") if is_error else gave
        self._line(Text.assemble(mark, shown_call(call), ("  → ", "dim"), told, (took, "dim")))

    def note(self, text: str) -> None:
        self._line(Text(one_line(text), style="yellow"))

    def prompt(self, text: str) -> None:
        """What a person typed; on a terminal an empty line stands before all but the first."""
        if self._shares_terminal and self._last is not None:
            self.end_of_text()
            self._draw(lambda: write(self._side.file, "\n"))
        self._line(Text.assemble(("> ", "bold cyan"), one_line(text)))

    def summary(self, summary: Summary) -> None:
        if self._side.is_terminal and summary.reason != "aborted":
            self._set_apart("line")
            self._line(Text(str(summary), style="dim"))

    def progress(self, lines: list[str] | None, now: float) -> None:
        """Plain lines don't move."""

    def _set_apart(self, what: Literal["answer", "line"]) -> None:
        """On one terminal an empty line stands between the answer and what is told about it."""
        if self._shares_terminal and self._last not in (what, None):
            self.end_of_text()
            self._draw(lambda: write(self._side.file, "\n"))
        self._last = what

    def _continue_line(self, console: Console, text: str, style: str) -> None:
        if self._in_line is not None and self._in_line is not console:
            self.end_of_text()
        shown = neutral(text)
        self._in_line = None if shown.endswith("\n") else console
        if style:
            self._draw(lambda: console.print(Text(shown, style=style), end="", soft_wrap=True))
        else:
            self._draw(lambda: write(console.file, shown))

    def _line(self, text: Text) -> None:
        if self._shares_terminal or self._in_line is self._side:
            self.end_of_text()
        self._last = "line"
        self._draw(lambda: self._side.print(text, soft_wrap=True))

    def _draw(self, draw: Callable[[], object]) -> None:
        self._pending.append(draw)

    def _width(self) -> int:
        return self._side.width if self._side.is_terminal else 200


class TerminalScreen(PlainScreen):
    """A terminal: its last line tells what is under way, and since when."""

    def __init__(self, out: Console, side: Console) -> None:
        super().__init__(out, side, announces_calls=False)
        self._progress_shown = False
        self._since: float | None = None

    def progress(self, lines: list[str] | None, now: float) -> None:
        if lines is None or self._in_line is not None:
            self._since = None
            return
        self._since = now if self._since is None else self._since
        if now - self._since < _PROGRESS_AFTER_S:
            return
        frame = _SPINNER[int(now * _FRAMES_PER_S) % len(_SPINNER)]
        shown = "   ".join(lines[:_CALLS_NAMED_MAX])
        if len(lines) > _CALLS_NAMED_MAX:
            shown += f"   and {len(lines) - _CALLS_NAMED_MAX} more"
        text = Text.assemble((f"{frame} ", "cyan"), (shortened(shown, self._width() - 3), "dim"))
        self._clear_progress()
        self._progress_shown = True
        super()._draw(lambda: self._side.print(text, end="", soft_wrap=True))

    def _clear_progress(self) -> None:
        if self._progress_shown:
            self._progress_shown = False
            super()._draw(lambda: write(self._side.file, _CLEAR_LINE))

    def _draw(self, draw: Callable[[], object]) -> None:
        self._clear_progress()
        super()._draw(draw)


def shown_call(line: str) -> Text:
    """A call with its tool's name set off."""
    name, bracket, rest = line.partition("(")
    return Text.assemble((name, "bold"), (bracket + rest, "dim"))
