"""The tools of a `trioloop run` that is to die: a ledger, and what the process tells of itself.

The parent reads a pipe, one line a fact, each written before anything else can happen:

    appended SEQ TYPE     an event is in the log in memory
    durable SEQ CRC       the runtime acknowledges everything up to there
    committed SEQ TYPE    the event that `CHAOS_AT` names was committed as soon as it was appended
    failed                the store failed
    effect KEY            a body begins to write its line into the ledger

Settings come from the environment: `CHAOS_PIPE` is a descriptor, `CHAOS_LEDGER` a file, `CHAOS_AT`
the fact at which the process sends `CHAOS_SIGNAL` to itself, and `CHAOS_UNSYNCED` makes SQLite
sync nothing, which is the control of the tests that cut the power. With `CHAOS_ONE_THREAD` all
blocking work is done by one thread, so that its system calls can be counted: strace counts those of
each thread for itself.
"""

import os
import signal
import sqlite3
from collections.abc import Callable
from typing import Any

import trio

from trioloop import ToolContext, tool
from trioloop.errors import StoreError
from trioloop.events import Event, EventData
from trioloop.ports import Append, Durability
from trioloop.session import Session
from trioloop.store import database, tables
from trioloop.store.journal import Journal

LEDGER = os.environ["CHAOS_LEDGER"]
_PIPE = int(os.environ["CHAOS_PIPE"])
_AT = os.environ.get("CHAOS_AT", "")
_SIGNAL = signal.Signals[os.environ.get("CHAOS_SIGNAL", "SIGKILL")]


def tell(fact: str) -> None:
    """Tell the parent, and die where that was asked for."""
    os.write(_PIPE, f"{fact}\n".encode())
    if _AT and fact.startswith(_AT):
        os.kill(os.getpid(), _SIGNAL)


@tool
def write_ledger(line: str, context: ToolContext) -> str:
    """Write a line into the ledger.

    Args:
        line: the text.
    """
    tell(f"effect {context.key} begins")
    with open(LEDGER, "a") as ledger:
        ledger.write(f"{context.key} {line}\n")
        ledger.flush()
        os.fsync(ledger.fileno())
    tell(f"effect {context.key} done")
    return "written"


@tool(effects="read-only")
def read_ledger() -> str:
    """Read the ledger: all of its lines."""
    if not os.path.exists(LEDGER):
        return "empty"
    with open(LEDGER) as ledger:
        return ledger.read() or "empty"


tools = [write_ledger, read_ledger]


# What the process tells of itself

_append, _landed, _failed = Session.append, Journal.landed, Journal.failed


def _telling_append(self: Session, *facts: EventData) -> tuple[Event, ...]:
    events = _append(self, *facts)
    for event in events:
        tell(f"appended {event.seq} {event.type}")
        if f"committed {event.seq} {event.type}" == _AT:
            _commit_here(self)
    return events


def _commit_here(session: Session) -> None:
    """Commit what is appended by now and nothing else, at once; nobody commits just then."""
    journal: Any = session._journal
    append = journal.take(len(session.events()))
    journal._writer._store._database.commit([append])
    tell(f"durable {append.rows[-1].seq} {append.rows[-1].crc}")
    tell(_AT)


def _telling_landed(self: Journal, append: Append) -> None:
    _landed(self, append)
    tell(f"durable {append.rows[-1].seq} {append.rows[-1].crc}")


def _telling_failed(self: Journal, error: StoreError) -> None:
    tell("failed")
    _failed(self, error)


def _unsynced(
    path: str, durability: Durability, kind: type[sqlite3.Connection]
) -> sqlite3.Connection:
    connection = tables.connect_writer(path, durability, kind)
    connection.execute("PRAGMA synchronous = OFF")
    return connection


Session.append = _telling_append  # type: ignore[method-assign]
Journal.landed = _telling_landed  # type: ignore[method-assign]
Journal.failed = _telling_failed  # type: ignore[method-assign]
if os.environ.get("CHAOS_UNSYNCED"):
    database.connect_writer = _unsynced  # type: ignore[attr-defined]


# One thread

_run_sync, _one = trio.to_thread.run_sync, trio.CapacityLimiter(1)


async def _run_in_the_one_thread(job: Callable[..., Any], *args: Any, **how: Any) -> Any:
    """Whatever a job takes and gives is passed on as it is."""
    return await _run_sync(job, *args, **how | {"limiter": _one})


if os.environ.get("CHAOS_ONE_THREAD"):
    trio.to_thread.run_sync = _run_in_the_one_thread  # type: ignore[assignment]
