"""`trioloop sessions` and `trioloop check`: looking into a store's file without changing it."""

from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trioloop.cli.exits import FAILED, OK, CommandError, ExitCode
from trioloop.cli.listing import print_tabbed
from trioloop.cli.wording import count, local_time, one_line, size
from trioloop.errors import DamagedSessionError, LogError, TrioloopError
from trioloop.events import Event
from trioloop.log.fold import fold
from trioloop.log.repair import repair
from trioloop.log.replay import replay
from trioloop.ports import SessionSummary
from trioloop.store.inspection import file_faults, writer_of
from trioloop.store.reading import list_sessions, read_session


def show_sessions(file: Path, out: Console, *, quick: bool = False) -> ExitCode:
    """List the sessions of a store with their states; `quick` reads none of them for it."""
    writer = writer_of(file)
    rows = [
        (*_cells(one), "" if quick else _state(file, one.session, is_written=writer is not None))
        for one in list_sessions(file)
    ]
    if not out.is_terminal:
        print_tabbed(out, rows)
        return OK
    out.print(_table(rows) if rows else Text("no sessions", style="dim"))
    if writer is not None:
        out.print(Text(f"written by {one_line(str(writer))}", style="dim"))
    return OK


def _state(file: Path, session: str, *, is_written: bool) -> str:
    """What a session does, as its log tells."""
    try:
        state = fold(read_session(file, session))
    except DamagedSessionError as error:
        return f"damaged from event {error.seq} on"
    except LogError as error:
        return one_line(str(error))
    if state.turn is not None:
        return f"{'in' if is_written else 'interrupted in'} turn {state.turn.number}"
    pending = len(state.inbox)
    return f"{count(pending, 'message')} pending" if pending else "at rest"


def _table(rows: Iterable[tuple[str, ...]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("session", style="bold", overflow="fold")
    table.add_column("events", justify="right")
    table.add_column("size", justify="right")
    table.add_column("created")
    table.add_column("last changed")
    table.add_column("state", overflow="fold")
    for row in rows:
        table.add_row(*row)
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


def check_sessions(file: Path, name: str | None, out: Console, *, deep: bool = False) -> ExitCode:
    """Check one session of a store, or all of them, against the log's grammar.

    `deep` goes beyond it: what each attempt streamed, that repair closes the log, and the file.
    """
    names = [name] if name is not None else [one.session for one in list_sessions(file)]
    verdicts = [_checked(file, one, deep=deep) for one in names]
    if deep:
        verdicts += [_Verdict(str(file), fault, is_good=False) for fault in file_faults(file)]
    for verdict in verdicts:
        mark = ("✓ ", "green") if verdict.is_good else ("✗ ", "red")
        text = Text.assemble(mark, (one_line(verdict.session), "bold"), f"  {verdict.told}")
        out.print(text, soft_wrap=True)
    bad = sum(not verdict.is_good for verdict in verdicts)
    if bad:
        raise CommandError(_complaint(file, verdicts, len(names)))
    if not verdicts:
        out.print(Text("no sessions", style="dim"))
    return FAILED if bad else OK


def _complaint(file: Path, verdicts: Iterable[_Verdict], sessions: int) -> str:
    bad = [one.session for one in verdicts if not one.is_good]
    damaged = sum(one != str(file) for one in bad)
    if damaged:
        return f"{count(damaged, 'session')} of {sessions} in {file} can't be trusted"
    return f"{file} can't be trusted, though every log in it is whole: make a copy, and export them"


def _checked(file: Path, name: str, *, deep: bool) -> _Verdict:
    try:
        events = read_session(file, name)
        told = _described(events)
        faults = list(_deep_faults(events)) if deep else []
        return _Verdict(name, "; ".join(faults) or told, is_good=not faults)
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


def _deep_faults(events: tuple[Event, ...]) -> Iterator[str]:
    """What is wrong with a log that keeps the grammar."""
    for event in events:
        try:
            deque(replay([event]), maxlen=0)  # expands what its attempt streamed
        except (ValueError, IndexError, TrioloopError) as error:
            yield f"what event {event.seq} says was streamed can't have been: {error}"
    repaired = fold(events)
    for seq, fact in enumerate(repair(events), len(events)):
        repaired.apply(Event(seq, repaired.time, fact))
    if repaired.turn is not None:
        yield "its repair would leave a turn open"
