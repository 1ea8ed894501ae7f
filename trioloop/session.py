"""The live log of one conversation: append, subscribe, durable checkpoint.

The only source of truth of an agent. Appending is synchronous and never waits (D1); what an event
means is in `log/`, how it becomes durable in `store/`. Observers are told after the append, in log
order, and what they append themselves comes after the events that they saw.
"""

import logging
import math
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

import attrs
import trio

from trioloop.codec import seal
from trioloop.errors import AgentDisposedError, GrammarError, InvalidInputError, StoreError
from trioloop.events import (
    AssistantAttemptLogged,
    AssistantMessageLogged,
    Event,
    EventData,
    RequestHeaderLogged,
    StepEnded,
)
from trioloop.hooks.dispatch import Registration
from trioloop.ids import SessionId
from trioloop.log.fold import LogState, fold
from trioloop.log.folding import Fold
from trioloop.log.refusal import refuse
from trioloop.log.rows import Events
from trioloop.log.skeletons import fold_rows
from trioloop.store.writer import Journal

_ENDS_OF_ATTEMPTS = (AssistantMessageLogged, AssistantAttemptLogged, StepEnded)

StateT = TypeVar("StateT")
Observer = Callable[[Event], None]

_log = logging.getLogger("trioloop.session")


@attrs.define(eq=False)
class _Delivery:
    """Observers, and the events that they haven't been told of yet."""

    observers: tuple[Observer, ...] = ()
    waiting: list[Event] | None = None  # a list while a delivery is under way


class Session:
    """An append-only log with one writer.

    Made by a runtime. Everything derived from the log is in `state`, which changes only here.

    Args:
        name: of the session.
        clock: Unix milliseconds.
        warn_at: events from which on a warning is logged, once; None: never.
    """

    __slots__ = (
        "__weakref__",  # so that policies may keep what concerns it as long as it lives
        "_clock",
        "_delivery",
        "_events",
        "_folded",
        "_grown",
        "_holds_history",
        "_journal",
        "_released",
        "_warn_at",
        "closed",
        "failure",
        "has_own_header",
        "name",
        "on_failure",
        "state",
    )

    def __init__(
        self, name: SessionId, *, clock: Callable[[], int], warn_at: int | None = None
    ) -> None:
        self.name = name
        self.state = LogState()
        self.failure: StoreError | None = None
        self.on_failure: Callable[[StoreError], None] | None = None
        self.has_own_header = False
        self.closed = False
        self._clock = clock
        self._warn_at = warn_at
        self._events = Events()
        self._journal: Journal | None = None
        self._holds_history = False
        self._released = False
        self._grown: trio.Event | None = None  # made only while somebody waits
        self._delivery = _Delivery()
        self._folded: WeakKeyDictionary[Fold[Any], tuple[object, int]] | None = None

    def load(self, entries: Iterable[Event | bytes]) -> None:
        """Take the events that a store has, before anything is appended.

        Args:
            entries: events, or their rows, which stay rows until somebody asks for them.

        Raises:
            GrammarError: they are no valid log.
            UnsupportedSessionError: an event has a type that nobody here declares (E5).
        """
        self._events = Events(entries)
        self.state = fold_rows(self._events)

    def adopt(self, events: Iterable[Event]) -> None:
        """Begin with events that another log has, as this log's own: they go to the store, too.

        Raises:
            GrammarError: they are no valid log.
        """
        sealed = [seal(event) for event in events]
        self.load(event for event, _ in sealed)
        if self._journal is not None:
            self._journal.append([payload for _, payload in sealed])

    def attach(self, journal: Journal) -> None:
        """Let the log go to a store from here on."""
        self._journal = journal

    # Reading

    @property
    def seq(self) -> int:
        """The seq of the last appended event; -1 before any."""
        return len(self._events) - 1

    @property
    def durable_seq(self) -> int:
        """The seq of the last event that is durable."""
        return self._journal.durable_seq if self._journal is not None else -1

    def events(self, after: int = -1) -> tuple[Event, ...]:
        """The events appended so far with a seq greater than `after`."""
        return tuple(self._events[after + 1 :])

    def folded(self, fold: Fold[StateT]) -> StateT:
        """The state that the events add up to by a fold of the application's own.

        It is kept up to date at the cost of the events that came since it was last asked for.
        """
        if self._folded is None:
            self._folded = WeakKeyDictionary()
        known = self._folded.get(fold)
        state, seen = (fold.start(), 0) if known is None else (cast(StateT, known[0]), known[1])
        if seen < len(self._events):
            state = fold.behind(state, self._events[seen:])
            self._folded[fold] = (state, len(self._events))
        return state

    @asynccontextmanager
    async def subscribe(
        self, after: int = -1, *, durable: bool = False
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """Read the log from a cursor on, and wait for more; ends when the session is closed.

        A subscriber is a cursor, never a queue: one that doesn't read costs nothing (G11). Reading
        is a checkpoint.

        Args:
            after: the seq of the last event that the reader has.
            durable: give events only once they are durable.

        Raises:
            InvalidInputError: `after` lies in the future.
        """
        if not -1 <= after <= self.seq:
            raise InvalidInputError(f"no event has seq {after}: the log ends at {self.seq}")
        yield _Cursor(self, after + 1, durable=durable)

    def observe(self, observer: Observer) -> Registration:
        """Call `observer(event)` after each append, in log order. One that raises is logged."""
        delivery = self._delivery
        delivery.observers = (*delivery.observers, observer)

        def remove() -> None:
            kept = tuple(one for one in delivery.observers if one is not observer)
            delivery.observers = kept

        return Registration(remove)

    # Writing

    @trio.lowlevel.enable_ki_protection
    def append(self, *facts: EventData) -> tuple[Event, ...]:
        """Append facts as one block: all of them, or none.

        Returns:
            The events, with their places in the log.

        Raises:
            AgentDisposedError: its agent was disposed of, so that the session is written no more.
            GrammarError: a fact may not stand here (G1), or rewrites the history while a model
                reads it.
            EventEncodingError: a fact holds a value that is no strict JSON.
        """
        if self._released:
            raise AgentDisposedError(
                f"session {self.name!r} was given back when its agent was disposed of: "
                f"resume_agent({self.name!r}) goes on with it"
            )
        time = max(self._clock(), self.state.time)
        seq = len(self._events)
        events: list[Event] = []
        payloads: list[bytes] = []
        for fact in facts:
            event, payload = seal(Event(seq, time, fact))
            events.append(event)
            payloads.append(payload)
            seq += 1
        if self._holds_history:
            self._keep_history(events)
        self._apply(events)
        self._events.extend(events)
        if self._journal is not None:
            self._journal.append(payloads)
        if self._warn_at is not None and seq >= self._warn_at:
            self._warn_of_length()
        if self._grown is not None:
            self.wake_readers()
        self._tell(events)
        return tuple(events)

    def _warn_of_length(self) -> None:
        self._warn_at = None
        _log.warning(
            "session %r has %d events: it works on, but loading it takes its time; consider "
            "a new session, or a fork of this one",
            self.name,
            len(self._events),
        )

    def _apply(self, events: Sequence[Event]) -> None:
        apply = self.state.apply
        try:
            for event in events:
                apply(event)
                if type(event.data) is RequestHeaderLogged:
                    self.has_own_header = True
        except GrammarError:
            self.state = fold(self._events)
            raise

    def hold_history(self) -> None:
        """Refuse to rewrite the history until the attempt that is about to run is in the log (G2).

        The grammar sees to that behind an admission, but where a retry changes nothing there is
        none in the log.
        """
        self._holds_history = True

    def _keep_history(self, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event.data, _ENDS_OF_ATTEMPTS):
                self._holds_history = False
            elif getattr(event.data, "replaces", None) is not None and self._holds_history:
                refuse(event, "G2", "the history as the model reads it", "one that is rewritten")

    def _tell(self, events: Sequence[Event]) -> None:
        delivery = self._delivery
        if delivery.waiting is not None:  # an observer appends: its events wait for their turn
            delivery.waiting.extend(events)
            return
        if not delivery.observers:
            return
        delivery.waiting = list(events)
        try:
            for event in delivery.waiting:  # which observers make longer
                self._tell_one(event)
        finally:
            delivery.waiting = None

    def _tell_one(self, event: Event) -> None:
        for observer in self._delivery.observers:
            try:
                observer(event)
            except (Exception, trio.Cancelled):  # noqa: ASYNC103 - it awaits nothing
                _log.exception(
                    "an observer of %r raised at %s %d", self.name, event.type, event.seq
                )

    # Durability

    async def checkpoint(self) -> None:
        """Wait until everything appended so far is durable (D2).

        A checkpoint. When it is cancelled, the events become durable anyway.

        Raises:
            StoreFailedError: the store failed; what is in memory isn't lost.
            FencedError: another owner has the session.
        """
        if self._journal is not None:
            await self._journal.checkpoint()
        await trio.lowlevel.checkpoint_if_cancelled()

    gate = checkpoint

    async def retry_store(self) -> None:
        """After a store failure: try once more what is kept in memory (D3). A checkpoint.

        Raises:
            StoreFailedError: it failed again.
        """
        if self._journal is not None:
            await self._journal.retry()
        self.failure = None

    async def release(self, *, by: float = math.inf) -> None:
        """Make everything durable if the store lets us, and give the lease back. A checkpoint.

        Nothing can be appended any more. What couldn't be made durable is named in `logging` (D3).

        Args:
            by: on Trio's clock, when the lease is given back at the latest.
        """
        self._released = True
        try:
            if self._journal is not None:
                await self._flush(self._journal, by)
        finally:
            self.closed = True
            self.wake_readers()

    async def _flush(self, journal: Journal, by: float) -> None:
        try:
            await journal.checkpoint()
        except StoreError as error:
            _log.warning("session %r was left before it was durable: %s", self.name, error)
        await journal.release(by=by)

    def store_failed(self, error: StoreError) -> None:
        """Told by the writer, once for each failure."""
        self.failure = error
        self.wake_readers()
        if self.on_failure is not None:
            self.on_failure(error)

    # Waiting readers

    def wake_readers(self, _durable_seq: int = -1) -> None:
        """Let subscribers look again: the log, or what is durable of it, has grown."""
        grown, self._grown = self._grown, None
        if grown is not None:
            grown.set()

    def _growth(self) -> trio.Event:
        """What is set when readers may look again."""
        if self._grown is None:
            self._grown = trio.Event()
        return self._grown


class _Cursor(AsyncIterator[Event]):
    """A reader's place in a log."""

    def __init__(self, session: Session, position: int, *, durable: bool) -> None:
        self._session = session
        self._position = position
        self._durable = durable

    async def __anext__(self) -> Event:
        session = self._session
        waited = False
        while self._position > self._last():
            if session.closed:
                raise StopAsyncIteration
            await session._growth().wait()
            waited = True
        if not waited:
            await trio.lowlevel.checkpoint()
        event = session._events[self._position]
        self._position += 1
        return event

    def _last(self) -> int:
        return self._session.durable_seq if self._durable else self._session.seq
