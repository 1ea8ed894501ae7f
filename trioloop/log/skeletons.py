"""Loading a log by its skeletons: the few fields of each row that the fold needs.

A skeleton is derived from its event's class: the same fields, without those that no check and no
change of the fold reads. It passes through the same fold. What the fold keeps whole is read whole:
the facts that the state holds, and everything from the last step on, which may be open. Messages of
the history stay in their rows until somebody asks for them.
"""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Union, cast, get_type_hints

import attrs
import msgspec

from trioloop.codec import decode_event
from trioloop.events import (
    AssistantAttemptLogged,
    AssistantMessageLogged,
    Event,
    EventData,
    InboxSpliced,
    NestedResultLogged,
    RequestContextLogged,
    RequestHeaderLogged,
    SessionOpened,
    SystemMessageLogged,
    ToolResultLogged,
    TurnEnded,
    UserMessageLogged,
    event_classes,
    wire_name,
)
from trioloop.log.fold import LogState, StandIns
from trioloop.log.grammar import CHECKS
from trioloop.log.history import Unread
from trioloop.log.rows import Events
from trioloop.messages import Message, ToolResultMessage

LEFT_OUT: Mapping[type[EventData], frozenset[str]] = {
    AssistantMessageLogged: frozenset({"stream"}),
    AssistantAttemptLogged: frozenset({"stream"}),
    ToolResultLogged: frozenset({"content", "meta"}),
    NestedResultLogged: frozenset({"content"}),
}
"""The fields that the fold doesn't need."""

KEPT = frozenset(
    {
        InboxSpliced,
        RequestContextLogged,
        RequestHeaderLogged,
        SessionOpened,
        SystemMessageLogged,
        TurnEnded,
    }
)
"""The facts that the state keeps, or what of them, beyond the step that they belong to."""

GROUP = 1_000
"""Rows whose messages are in memory at once."""

_STEP_START = b'{"type":"step/start",'
# TypeError: it is no row, but an event
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError)


def fold_rows(events: Events, *, group: int = GROUP) -> LogState:
    """The state behind the events of a log, as `fold` gives it; rows stay rows.

    Args:
        events: of the log.
        group: rows after which what was read of their messages is let go of.

    Raises:
        GrammarError: they are no log.
        UnsupportedSessionError: the log has another format, or an event of a type that nobody
            here declares (E5).
    """
    state = LogState()

    def read(seq: int, message: Unread) -> Message:
        return _message(events.peek(seq).data, message)

    entries = list(events.rows())
    last = _last_step(entries)
    with _collecting_no_garbage():
        for first in range(0, last, group):
            _apply(state, entries[first : min(first + group, last)])
            state.surface.leave_unread(read)
    for entry in entries[last:]:
        state.apply(decode_event(entry) if isinstance(entry, bytes) else entry)
    return state


@contextmanager
def _collecting_no_garbage() -> Iterator[None]:
    """A fold makes no cycles: looking for some, over and over, would cost a third of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _last_step(entries: Sequence[Event | bytes]) -> int:
    """Where the last step begins, if its events are rows; it may be open."""
    for place in range(len(entries) - 1, -1, -1):
        entry = entries[place]
        if not isinstance(entry, bytes) or entry.startswith(_STEP_START):
            return place
    return 0


def _apply(state: LogState, entries: Sequence[Event | bytes]) -> None:
    """Take some entries: at once where all can be read as rows, else one by one."""
    reader = _reader(len(event_classes()))
    rows = reader.read(entries)
    if rows is not None:
        state.apply_rows(rows, reader.standing_for)
        return
    for entry in entries:
        row = reader.read([entry])
        if row is not None:
            state.apply_rows(row, reader.standing_for)
        else:  # an event; or one that isn't what it should be, or of which everything is needed
            state.apply(decode_event(entry) if isinstance(entry, bytes) else entry)


def _message(data: EventData, unread: Unread) -> Message:
    """The message of the history that an event wrote."""
    if isinstance(data, ToolResultLogged):
        return ToolResultMessage(data.call, unread.wire_id, data.content, data.is_error)
    assert isinstance(data, UserMessageLogged | AssistantMessageLogged)  # no other is let go of
    return data.message


# What a skeleton is


@attrs.frozen
class _Reader:
    """Reads rows as skeletons.

    Attributes:
        standing_for: what the classes of rows stand for.
        decode: reads lines of rows.
    """

    standing_for: StandIns
    decode: Callable[[bytes], list[Event]]

    def read(self, entries: Sequence[Event | bytes]) -> list[Event] | None:
        """Rows as skeletons; None: not all of them are rows that can be read as such."""
        try:
            rows = self.decode(b"\n".join(cast("Sequence[bytes]", entries)))
        except _UNREADABLE:
            return None
        return rows if len(rows) == len(entries) else None


@cache
def _reader(declared: int) -> _Reader:
    """What reads rows when so many types are declared."""
    kinds = {_row_class(name, cls): cls for name, cls in event_classes().items()}
    rows = msgspec.json.Decoder(Union[tuple(kinds)])  # noqa: UP007 - made of a tuple
    return _Reader(StandIns.of(kinds), rows.decode_lines)


def _row_class(name: str, cls: type[EventData]) -> type[Event]:
    """The class of rows of one type: an event whose data is a skeleton."""
    data = ("data", skeleton(cls) if cls in CHECKS else msgspec.Raw)
    row = msgspec.defstruct(
        "Row",
        [data],
        bases=(Event,),
        namespace={"type": name},
        tag=name,
        tag_field="type",
        frozen=True,
        gc=False,
        kw_only=True,
    )
    return cast("type[Event]", row)


def skeleton(cls: type[EventData]) -> type:
    """A class with the fields of an event's class that the fold needs."""
    if cls in KEPT:
        return cls
    left_out = LEFT_OUT.get(cls, frozenset())
    hints = get_type_hints(cls)
    if cls is ToolResultLogged:
        hints["replaces"] = None  # what rewrites another result is read whole
    fields = [
        (one.name, hints[one.name], *(() if one.default is attrs.NOTHING else (one.default,)))
        for one in attrs.fields(cast("type[attrs.AttrsInstance]", cls))
        if one.name not in left_out
    ]
    return msgspec.defstruct(
        wire_name(cls), fields, namespace=dict.fromkeys(left_out, ()), frozen=True, gc=False
    )
