"""What can be read of a session: all of it, or what stands before the first thing that is wrong."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

from trioloop.cli.exits import CommandError
from trioloop.codec import decode_event
from trioloop.errors import DamagedSessionError, LogError
from trioloop.events import AssistantAttemptLogged, AssistantMessageLogged, Event
from trioloop.log.fold import LogState
from trioloop.ports import StoredRow
from trioloop.store.reading import read_rows, read_session

_ATTEMPTS = (AssistantMessageLogged, AssistantAttemptLogged)


@attrs.frozen
class Readable:
    """The events of a session that can be trusted.

    Attributes:
        session: its name.
        events: from the first on.
        fault: what is wrong with the event after them; None: they are all there are.
    """

    session: str
    events: tuple[Event, ...]
    fault: LogError | None = None

    def complain(self) -> None:
        """Say that there was more.

        Raises:
            CommandError: something was wrong.
        """
        if isinstance(self.fault, DamagedSessionError):
            raise CommandError(str(self.fault))
        if self.fault is not None:
            raise CommandError(
                f"session {self.session!r} can be read up to event {len(self.events) - 1}: "
                f"{self.fault}"
            )


def readable(file: Path, name: str) -> Readable:
    """What can be read of a session in a store's file.

    Raises:
        StoreUnreadableError: the file is missing, no store, or may not be read.
        UnknownSessionError: it has no session of that name.
    """
    damage: LogError | None = None
    try:
        rows = read_rows(file, name)
    except DamagedSessionError as error:
        rows, damage = read_rows(file, name, before=error.seq), error
    events: list[Event] = []
    try:
        events.extend(_checked(rows))
    except LogError as error:
        damage = error
    return Readable(name, tuple(events), damage)


def read_to_attempt(file: Path, name: str, seq: int) -> tuple[Event, ...]:
    """The events of a session up to an attempt's; what follows it may be damaged.

    Raises:
        StoreUnreadableError: the file is missing, no store, or may not be read.
        UnknownSessionError: it has no session of that name.
        LogError: the log can't be read that far.
        CommandError: that event is no attempt, or there is none.
    """
    events = read_session(file, name, before=seq + 1)
    attempts = [one.seq for one in events if isinstance(one.data, _ATTEMPTS)]
    if seq in attempts:
        return events
    found = f"event {seq} is a {events[seq].type}" if seq < len(events) else f"no event {seq}"
    before = f"; the last one before it is event {attempts[-1]}" if attempts else ""
    raise CommandError(
        f"session {name!r}: {found}: give an assistant/message or assistant/attempt{before}"
    )


def _checked(rows: Iterable[StoredRow]) -> Iterator[Event]:
    state = LogState()
    for row in rows:
        event = decode_event(row.payload)
        state.apply(event)
        yield event
