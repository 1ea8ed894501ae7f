"""Opening a session in a store: making, loading, repairing, attaching to the writer.

The one place where stored bytes become a live `Session`. Who may open what when is in `runtime`.
"""

import os
import socket
from collections.abc import Callable, Sequence

import attrs
import trio

from trioloop.codec import decode_event
from trioloop.errors import InvalidInputError, OpenTurnError
from trioloop.events import FORMAT, Event, SessionOpened
from trioloop.ids import SessionId
from trioloop.limits import Limits
from trioloop.log.fold import LogState
from trioloop.log.repair import repair
from trioloop.log.state import OpenCall
from trioloop.machine.inbox import clear
from trioloop.ports import Lease, Owner, SessionStore
from trioloop.session import Session
from trioloop.store.writer import StoreWriter


def _this_process() -> Owner:
    return Owner(os.getpid(), socket.gethostname())


@attrs.frozen(eq=False)
class SessionOpener:
    """Opens sessions of one store for one runtime.

    Args:
        store: where they are.
        writer: carries what is appended into the store.
        clock: Unix milliseconds.
        limits: `session_events_warn` and `close_s` are used.
    """

    store: SessionStore
    writer: StoreWriter
    clock: Callable[[], int]
    limits: Limits
    _owner: Owner = attrs.field(init=False, factory=_this_process)

    async def create(
        self, name: SessionId, *, cwd: str | None, parent: SessionOpened | None = None
    ) -> Session:
        """A new session, with its first event appended. A checkpoint.

        Args:
            name: of the session.
            cwd: the working directory.
            parent: how the session was opened that delegates work to this one.

        Raises:
            SessionExistsError: the store has one of that name.
            SessionLockedError: another process writes this store.
        """
        lease = await self.store.open(name, self._owner, create=True)
        session = Session(name, clock=self.clock, warn_at=self.limits.session_events_warn)
        self._attach(session, lease, crc=0)
        self._begin(session, cwd, parent)
        return session

    async def fork(
        self, name: SessionId, parent: Sequence[Event], *, at_seq: int | None, cwd: str | None
    ) -> Session:
        """A new session that begins with another's events up to `at_seq` (D6). A checkpoint.

        Raises:
            InvalidInputError: the parent has no such event.
            OpenTurnError: the cut would fall inside a turn; it names the nearest that doesn't.
            SessionExistsError: the store has one of that name.
        """
        inherited = forked(parent, at_seq)
        lease = await self.store.open(name, self._owner, create=True)
        session = Session(name, clock=self.clock, warn_at=self.limits.session_events_warn)
        self._attach(session, lease, crc=0)
        opened = parent[0].data
        assert isinstance(opened, SessionOpened)  # the grammar's first rule
        first = SessionOpened(
            format=FORMAT,
            session=name,
            created=self.clock(),
            parent=opened.session,
            fork_seq=len(inherited),
            depth=opened.depth + 1,
            cwd=cwd,
        )
        session.adopt([Event(0, parent[0].time, first), *inherited])
        drops = clear(session.state.inbox, "forked")
        if drops:
            session.append(*drops)
        return session

    async def resume(
        self, name: SessionId, *, rerun: Callable[[OpenCall], bool] | None = None
    ) -> Session:
        """A stored session, loaded and repaired (D4). A checkpoint.

        One whose first event never became durable begins anew.

        Args:
            name: of the session.
            rerun: whether a call is left open, for the driver to run it again.

        Raises:
            UnknownSessionError: the store has none of that name.
            SessionLockedError: another owner writes it.
            LogError: it can't be read as a log.
        """
        lease = await self.store.open(name, self._owner, create=False)
        try:
            rows = await self.store.read(name)
            session = Session(name, clock=self.clock, warn_at=self.limits.session_events_warn)
            session.load(row.payload for row in rows)
        except BaseException:  # whatever it was, somebody else may want to look
            with trio.CancelScope(shield=True, deadline=trio.current_time() + self.limits.close_s):
                await self.store.release(lease)
            raise
        self._attach(session, lease, crc=rows[-1].crc if rows else 0)
        if not rows:
            self._begin(session, os.getcwd())
        closing = repair(session.state, rerun=rerun or _never)
        if closing:
            session.append(*closing)
        return session

    async def read(self, name: SessionId) -> Sequence[Event]:
        """The events of a stored session, without taking the right to write it. A checkpoint.

        Raises:
            UnknownSessionError: the store has none of that name.
        """
        return [decode_event(row.payload) for row in await self.store.read(name)]

    def _begin(
        self, session: Session, cwd: str | None, parent: SessionOpened | None = None
    ) -> None:
        opened = SessionOpened(
            format=FORMAT,
            session=session.name,
            created=self.clock(),
            parent=None if parent is None else parent.session,
            depth=0 if parent is None else parent.depth + 1,
            cwd=cwd,
        )
        session.append(opened)

    def _attach(self, session: Session, lease: Lease, *, crc: int) -> None:
        journal = self.writer.journal(
            lease,
            crc=crc,
            on_durable=session.wake_readers,
            on_failure=session.store_failed,
        )
        session.attach(journal)


def forked(parent: Sequence[Event], at_seq: int | None) -> Sequence[Event]:
    """The events that a fork inherits: those after the first, up to the cut.

    Raises:
        InvalidInputError: the parent has no such event.
        OpenTurnError: the cut falls inside a turn.
    """
    if not parent:
        raise InvalidInputError("the parent's log is empty: there is nothing to begin a fork with")
    last = len(parent) - 1
    cut = last if at_seq is None else at_seq
    if not 0 <= cut <= last:
        raise InvalidInputError(f"at_seq must be 0 to {last}, the parent's last, not {cut}")
    state = LogState()
    outside = 0
    for event in parent[: cut + 1]:
        state.apply(event)
        if state.turn is None:
            outside = event.seq
    if outside != cut and at_seq is not None:
        raise OpenTurnError(cut, outside)
    return parent[1 : outside + 1]


def _never(_: OpenCall) -> bool:
    return False
