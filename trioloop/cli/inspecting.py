"""`trioloop sessions` and `trioloop check`: looking into a store's file without changing it."""

from collections.abc import Iterable
from pathlib import Path

import attrs
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trioloop.cli.exits import FAILED, OK, CommandError, ExitCode
from trioloop.cli.listing import print_tabbed
from trioloop.cli.wording import count, local_time, one_line, size
from trioloop.errors import LogError
from trioloop.events import Event
from trioloop.log.fold import fold
from trioloop.ports import SessionSummary
from trioloop.store.reading import list_sessions, read_session


def show_sessions(file: Path, out: Console) -> ExitCode:
    """List the sessions of a store."""
    sessions = list_sessions(file)
    if out.is_terminal:
        out.print(_table(sessions) if sessions else Text("no sessions", style="dim"))
    else:
        print_tabbed(out, map(_cells, sessions))
    return OK


def _table(sessions: Iterable[SessionSummary]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("session", style="bold", overflow="fold")
    table.add_column("events", justify="right")
    table.add_column("size", justify="right")
    table.add_column("created")
    table.add_column("last changed")
    for session in sessions:
        table.add_row(*_cells(session))
    return table


def _cells(session: SessionSummary) -> tuple[str, ...]:
    return (
        one_line(session.session),
        f"{session.events}",
        size(session.bytes),
        local_time(session.created),
        local_time(session.changed),
    )


@attrs.frozen
class _Verdict:
    session: str
    told: str
    is_good: bool


def check_sessions(file: Path, name: str | None, out: Console) -> ExitCode:
    """Check one session of a store, or all of them, against the log's grammar."""
    names = [name] if name is not None else [one.session for one in list_sessions(file)]
    verdicts = [_checked(file, one) for one in names]
    for verdict in verdicts:
        mark = ("✓ ", "green") if verdict.is_good else ("✗ ", "red")
        text = Text.assemble(mark, (one_line(verdict.session), "bold"), f"  {verdict.told}")
        out.print(text, soft_wrap=True)
    bad = sum(not verdict.is_good for verdict in verdicts)
    if bad:
        raise CommandError(f"{count(bad, 'session')} of {len(verdicts)} in {file} can't be trusted")
    if not verdicts:
        out.print(Text("no sessions", style="dim"))
    return FAILED if bad else OK


def _checked(file: Path, name: str) -> _Verdict:
    try:
        events = read_session(file, name)
        return _Verdict(name, _described(events), is_good=True)
    except LogError as error:
        return _Verdict(name, one_line(str(error)), is_good=False)


def _described(events: tuple[Event, ...]) -> str:
    state = fold(events)
    told = [count(len(events), "event"), count(state.turns, "turn")]
    if state.turn is not None:
        told.append(f"turn {state.turn.number} was interrupted: resuming closes it")
    if len(state.inbox):
        told.append(f"{count(len(state.inbox), 'message')} pending")
    return ", ".join(told)
