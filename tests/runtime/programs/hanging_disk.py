"""A host application whose disk hangs for good in the middle of a commit, and how it gets out.

    python hanging_disk.py STORE

The store is a real one: its commit hangs in SQLite's own worker thread, as a sync that never
returns does. Two sessions are live then, one of them inside a turn. One JSON line tells how long
leaving the runtime took, what the sessions had, and what `logging` was told.
"""

import json
import logging
import sqlite3
import sys
import threading
from typing import Any, ClassVar

import trio

from trioloop import Limits, SqliteStore, open_runtime
from trioloop.runtime.runtime import Runtime
from trioloop.testing import ScriptedModel, Text

LIMITS = Limits(grace_s=0.5, post_s=0.5, close_s=2)


class HangingConnection(sqlite3.Connection):
    """A connection whose transactions never end, once it is told so."""

    hangs: ClassVar[threading.Event] = threading.Event()

    def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
        """Any: whatever SQLite takes."""
        if sql == "COMMIT" and self.hangs.is_set():
            threading.Event().wait()
        return super().execute(sql, *arguments)


class HangingStore(SqliteStore):
    """A store on such a disk."""

    _connection_class: ClassVar[type[sqlite3.Connection]] = HangingConnection


class Told(logging.Handler):
    """What was logged, in order."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        self.lines.append(record.getMessage())


async def work(runtime: Runtime) -> dict[str, list[int]]:
    """Two sessions, one at rest and one in a turn, and what of each is durable as the disk hangs.

    Returns:
        The first and the last seq of each that isn't.
    """
    resting = await runtime.create_agent("resting")
    busy = await runtime.create_agent("busy")
    await resting.ask("one")
    await busy.ask("one")
    HangingConnection.hangs.set()
    resting.inject("never durable")
    busy.followup("never answered")
    with trio.move_on_after(0.5):
        await busy.wait_idle()
    sessions = (resting.session, busy.session)
    return {one.name: [one.durable_seq + 1, one.seq] for one in sessions}


async def main(path: str) -> None:
    """Work, and leave while the disk hangs."""
    told = Told()
    logging.getLogger("trioloop").addHandler(told)
    model = ScriptedModel(lambda _: Text("done"))
    async with open_runtime(model=model, store=HangingStore(path), limits=LIMITS) as runtime:
        lost = await work(runtime)
        sessions = [agent.session for agent in runtime.agents.values()]
        began = trio.current_time()
    took = trio.current_time() - began
    ends = {one.name: one.seq for one in sessions}
    print(json.dumps({"took_s": took, "lost": lost, "ends": ends, "told": told.lines}), flush=True)


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
