"""What a command writes to: its answers, and what is told about them."""

import logging
import sys

import attrs
from rich.console import Console
from rich.text import Text

from trioloop.agent.notifications import Settled, StatusChanged
from trioloop.cli.display import TurnDisplay
from trioloop.cli.exits import why
from trioloop.cli.json_lines import JsonLines
from trioloop.cli.pipes import console
from trioloop.cli.screens import PlainScreen, TerminalScreen
from trioloop.cli.setup import Setup
from trioloop.cli.watching import Display
from trioloop.cli.wording import one_line

_PROMPT = "> "


@attrs.define(eq=False)
class Output:
    """The two streams of a command, and how they are used.

    Attributes:
        json: events go out as JSON lines, and nothing but errors is told beside them.
    """

    json: bool = False
    _out: Console = attrs.field(factory=lambda: console(sys.stdout), init=False)
    _side: Console = attrs.field(factory=lambda: console(sys.stderr), init=False)

    @property
    def is_animated(self) -> bool:
        """Whether a line may move."""
        return not self.json and self._side.is_terminal and not self._side.is_dumb_terminal

    @property
    def out(self) -> Console:
        """Where answers go."""
        return self._out

    def display(self, now: float) -> Display:
        """A display for one turn."""
        if self.json:
            return JsonLines(sys.stdout)
        return ScreenDisplay(self.screen(), now)

    def screen(self) -> PlainScreen:
        """What a turn is drawn on: with a line that moves, where one may."""
        return (TerminalScreen if self.is_animated else PlainScreen)(self._out, self._side)

    def chat_display(self, now: float) -> Display:
        """A display for a conversation: nothing moves under what a person types."""
        if self.json:
            return JsonLines(sys.stdout)
        return ChatDisplay(PlainScreen(self._out, self._side), now, self)

    def introduce(self, setup: Setup, session: str) -> None:
        """Say what isn't plain from the command: which model was chosen, which session was made."""
        if self.json:
            return
        if setup.model.note is not None:
            self.hint(setup.model.note)
        if setup.store is not None and setup.session is None:
            self.hint(f"session {session} in {setup.store}")

    def say(self, text: str) -> None:
        """Something that was asked for, on standard output."""
        self._out.print(Text(one_line(text)), soft_wrap=True)
        self._out.file.flush()

    def hint(self, text: str) -> None:
        """Something by the way."""
        self._side.print(Text(one_line(text), style="dim"), soft_wrap=True)

    def complain(self, text: str) -> None:
        """One line on what went wrong."""
        self._side.print(Text(f"trioloop: {one_line(text)}", style="red"), soft_wrap=True)

    def prompt(self) -> None:
        """Ask for a line, where a person is there to type one."""
        if self._side.is_terminal and not self.json:
            self._side.print(Text(_PROMPT, style="bold cyan"), end="")
            self._side.file.flush()

    def end_line(self) -> None:
        """Leave the line that a person was typing on."""
        if self._side.is_terminal:
            self._side.print()


class ScreenDisplay(TurnDisplay):
    """A turn's display with the screen that it draws on."""

    def __init__(self, screen: PlainScreen, now: float) -> None:
        super().__init__(screen, now)
        self._drawn = screen

    async def flush(self) -> None:
        """Carry out what was drawn. A checkpoint."""
        await self._drawn.flush()


class ChatDisplay(ScreenDisplay):
    """A conversation: as turns end, says why where they didn't complete, and asks for more."""

    def __init__(self, screen: PlainScreen, now: float, output: Output) -> None:
        super().__init__(screen, now)
        self._output = output
        self._show[Settled.kind] = self._settled
        self._show[StatusChanged.kind] = self._status_changed
        self._asks = False

    def _settled(self, settled: Settled, at: float) -> None:
        if (told := why(settled)) is not None:
            self._drawn.note(told)

    def _status_changed(self, fact: StatusChanged, at: float) -> None:
        self._asks = fact.status == "idle"

    async def flush(self) -> None:
        """Carry out what was drawn, and ask for the next line once the agent is idle."""
        await super().flush()
        if self._asks:
            self._asks = False
            self._output.prompt()


class LogLines(logging.Handler):
    """Warnings of the library, each on a line of standard error, without tracebacks."""

    def __init__(self, output: Output) -> None:
        super().__init__(logging.WARNING)
        self._output = output

    def emit(self, record: logging.LogRecord) -> None:
        """Write one."""
        self._output.hint(f"{record.levelname.lower()}: {record.getMessage()}")
