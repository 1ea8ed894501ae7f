"""Opening a session in a store: making, loading, repairing, attaching to the writer.

The one place where stored bytes become a live `Session`. Who may open what when is in `runtime`.
"""

import os
import socket
from collections.abc import Callable

import attrs

from trioloop.codec import decode_event
from trioloop.events import FORMAT, SessionOpened
from trioloop.ids import SessionId
from trioloop.log.repair import repair
from trioloop.ports import Lease, Owner, SessionStore
from trioloop.session import Session
from trioloop.store.writer import StoreWriter


@attrs.frozen(eq=False)
class SessionOpener:
    """Opens sessions of one store for one runtime.

    Args:
        store: where they are.
        writer: carries what is appended into the store.
        clock: Unix milliseconds.
    """

    store: SessionStore
    writer: StoreWriter
    clock: Callable[[], int]

    async def create(self, name: SessionId, *, cwd: str | None) -> Session:
        """A new session, with its first event appended. A checkpoint.

        Raises:
            SessionExistsError: the store has one of that name.
            SessionLockedError: another process writes this store.
        """
        lease = await self.store.open(name, _owner(), create=True)
        session = Session(name, clock=self.clock)
        self._attach(session, lease, crc=0)
        session.append(SessionOpened(format=FORMAT, session=name, created=self.clock(), cwd=cwd))
        return session

    async def resume(self, name: SessionId) -> Session:
        """A stored session, loaded and repaired (D4). A checkpoint.

        Raises:
            UnknownSessionError: the store has none of that name.
            SessionLockedError: another owner writes it.
            LogError: it can't be read as a log.
        """
        lease = await self.store.open(name, _owner(), create=False)
        try:
            rows = await self.store.read(name)
            session = Session(name, clock=self.clock)
            session.load(decode_event(row.payload) for row in rows)
        except BaseException:  # whatever it was, somebody else may want to look
            await self.store.release(lease)
            raise
        self._attach(session, lease, crc=rows[-1].crc if rows else 0)
        closing = repair(session.events())
        if closing:
            session.append(*closing)
        return session

    def _attach(self, session: Session, lease: Lease, *, crc: int) -> None:
        journal = self.writer.journal(
            lease,
            crc=crc,
            on_durable=session.wake_readers,
            on_failure=session.store_failed,
        )
        session.attach(journal)


def _owner() -> Owner:
    return Owner(os.getpid(), socket.gethostname())
