"""What must hold of a store after a fault, whatever it was and wherever it struck.

Read first as it lies there, by somebody who changes nothing; then taken up twice by a runtime, as
its user would.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import trio

from tests.chaos.running import NOTHING, SESSION, Place, Told
from trioloop import Event, SqliteStore, ToolContext, open_runtime, read_session, tool
from trioloop.errors import StoreUnreadableError, TrioloopError, UnknownSessionError
from trioloop.events import (
    AssistantMessageLogged,
    InboxSpliced,
    ToolCallStarted,
    ToolDispatched,
    ToolResultLogged,
    TurnEnded,
)
from trioloop.log.fold import fold
from trioloop.log.repair import repair
from trioloop.ports import StoredRow
from trioloop.store import read_rows
from trioloop.testing import ScriptedModel, Text
from trioloop.tools import Tool

NOT_JUDGED = "not judged"


def stored(place: Place) -> tuple[StoredRow, ...]:
    """The rows that a fault left, verified; none where there is no such session yet."""
    try:
        return read_rows(place.store, SESSION)
    except UnknownSessionError:
        return ()
    except StoreUnreadableError:
        if place.store.exists():
            raise
        return ()


def faults_as_it_lies(place: Place, told: Iterable[Told]) -> list[str]:
    """What is wrong with a store that nobody has opened since the fault."""
    try:
        rows = stored(place)
        events = read_session(place.store, SESSION) if rows else ()
    except TrioloopError as error:
        return [f"it can't be read: {error}"]
    found = [fault for one in told for fault in (*_lost(rows, one), *_of_failure(one))]
    found += _of_effects(place, events)
    found += _of_repair(events)
    return found


def faults_as_it_goes_on(place: Place, *, rerun: bool = False) -> list[str]:
    """What is wrong once runtimes have taken it up, twice, and it has gone on working.

    Args:
        place: what was left.
        rerun: run calls again, the first time, that may be.
    """
    effects = place.ledger_keys()
    first = trio.run(_taken_up, place, "", rerun)
    if not first:
        return []
    again = trio.run(_taken_up, place, "")
    found = [] if first == again else ["taking it up a second time changed it once more (D4)"]
    found += _of_calls(first)
    found += _of_messages(first)
    last = trio.run(_taken_up, place, "go on")
    end = last[-1].data
    if not isinstance(end, TurnEnded) or end.reason != "completed":
        found.append(f"it doesn't go on: its log ends with {end}")
    if place.ledger_keys() != effects:
        found.append("taking it up had an effect")
    return found


def last_durable(place: Place) -> str:
    """The last event that the fault left, as the report names it."""
    rows = stored(place)
    if not rows:
        return NOTHING
    return f"{rows[-1].seq} {read_session(place.store, SESSION)[-1].type}"


async def _taken_up(place: Place, prompt: str, rerun: bool = False) -> tuple[Event, ...]:
    """Resume the session, ask if there is something to ask, and leave: its log afterwards."""
    model, store = ScriptedModel(lambda _: Text("I go on.")), SqliteStore(place.store)
    async with open_runtime(
        model=model, store=store, tools=_ledger_tools(place), strict=True
    ) as runtime:
        try:
            agent = await runtime.resume_agent(SESSION, rerun=rerun)
        except UnknownSessionError:
            return ()
        await agent.wait_idle()
        if prompt:
            await agent.ask(prompt)
    return read_session(place.store, SESSION)


def _ledger_tools(place: Place) -> list[Tool]:
    """The tools of the process that died, as they are when they run again."""

    @tool
    def write_ledger(line: str, context: ToolContext) -> str:
        """Write a line into the ledger."""
        with place.ledger.open("a") as ledger:
            ledger.write(f"{context.key} {line}\n")
        return "written"

    @tool(effects="read-only")
    def read_ledger() -> str:
        """Read the ledger: all of its lines."""
        return place.ledger.read_text() if place.ledger.exists() else "empty"

    return [write_ledger, read_ledger]


def _lost(rows: Sequence[StoredRow], told: Told) -> Iterator[str]:
    for seq, crc in told.acknowledged.items():
        if seq >= len(rows):
            yield f"event {seq} was acknowledged, and only {len(rows)} are there"
        elif rows[seq].crc != crc:
            yield f"event {seq} isn't what was acknowledged"
    last = max(told.appended, default=-1)
    if told.code == 0 and len(rows) <= last:
        yield f"it ended well with event {last}, and only {len(rows)} are there"


def _of_failure(told: Told) -> Iterator[str]:
    """How a process must go on, and end, once its store has failed (D3)."""
    for effect in told.effects_after_failure:
        yield f"{effect}, though the store had failed"
    if "failed" in told.lines and told.code == 0:
        yield "its store failed, and it ended as if all was well"
    if "Traceback" in told.errors:
        yield f"it told a traceback: {told.errors}"


def _of_effects(place: Place, events: Sequence[Event]) -> Iterator[str]:
    """Each line of the ledger has its durable dispatch (G8), and none is there twice."""
    dispatched = set(_dispatched(events))
    for key, times in Counter(place.ledger_keys()).items():
        if key not in dispatched:
            yield f"{key} wrote the ledger, and the log has no dispatch of it (G8)"
        if times > 1:
            yield f"{key} wrote the ledger {times} times"


def _dispatched(events: Sequence[Event]) -> Iterator[str]:
    calls: dict[int, str] = {}
    for event in events:
        if isinstance(event.data, ToolCallStarted):
            calls[event.seq] = f"{SESSION}/{event.data.call}"
            if event.data.dispatched:
                yield calls[event.seq]
        elif isinstance(event.data, ToolDispatched):
            yield calls[event.data.call_seq]


def _of_repair(events: Sequence[Event]) -> Iterator[str]:
    """Each prefix of the repair is repaired to the same end, which leaves nothing open (D4)."""
    whole = repair(events)
    repaired = list(events)
    for done, fact in enumerate(whole):
        if repair(repaired) != whole[done:]:
            yield f"cut behind {done} facts of its repair it is repaired to something else (D4)"
        repaired.append(Event(len(repaired), repaired[-1].time, fact))
    if repair(repaired) or (events and fold(repaired).turn is not None):
        yield "its repair leaves something open (D4)"


def _of_calls(events: Sequence[Event]) -> Iterator[str]:
    """Each call has one result, in model order (G4)."""
    data = [event.data for event in events]
    calls = [
        call.call
        for one in data
        if isinstance(one, AssistantMessageLogged)
        for call in one.message.calls
    ]
    results = [one.call for one in data if isinstance(one, ToolResultLogged)]
    if results != calls:
        yield f"the calls {calls} have the results {results} (G4)"


def _of_messages(events: Sequence[Event]) -> Iterator[str]:
    """Each message that was inserted is pending, or has its one last fate (G5)."""
    state = fold(events)
    pending = [one.message.id for one in state.inbox]
    if len(set(pending)) != len(pending):
        yield f"messages are pending twice: {pending} (G5)"
    for event in events:
        for one in event.data.inserted if isinstance(event.data, InboxSpliced) else ():
            fate = state.fates[one.message.id]
            if fate.status == "claimed" or (fate.status == "pending") != (
                one.message.id in pending
            ):
                yield f"message {one.message.id} ended as {fate} (G5)"
