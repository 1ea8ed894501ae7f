"""A process that appends for ever and tells each acknowledged seq on its standard output.

Run by the crash tests: `python crash_child.py FILE SESSIONS [COMMITS]`. It goes on where each
session ends; every 25th event is large enough for a blob file.
"""

import itertools
import os
import socket
import sys

import trio

from trioloop.codec import chain_crc, encode_event
from trioloop.errors import StoreError, UnknownSessionError
from trioloop.events import FORMAT, Event, EventData, NestedCallStarted, SessionOpened
from trioloop.ids import CallId, SessionId
from trioloop.limits import Limits
from trioloop.ports import Lease, Owner
from trioloop.store import SqliteStore
from trioloop.store.writer import Journal, StoreWriter

BLOB_BYTES = 8_000


def fact(session: str, seq: int) -> EventData:
    """The event that a session has at a seq: the same in each process."""
    if seq == 0:
        return SessionOpened(format=FORMAT, session=session, created=0)
    text = "x" * (2 * BLOB_BYTES if seq % 25 == 0 else seq % 200)
    return NestedCallStarted(CallId(f"c{seq}"), CallId("parent"), session, text, True)


def payload(session: str, seq: int) -> bytes:
    """The bytes of that event."""
    return encode_event(Event(seq, seq, fact(session, seq)))


async def opened(store: SqliteStore, session: SessionId) -> Lease:
    """A lease on a session, which is made where there is none."""
    owner = Owner(os.getpid(), socket.gethostname())
    try:
        return await store.open(session, owner, create=False)
    except UnknownSessionError:
        return await store.open(session, owner, create=True)


async def append_for_ever(store: SqliteStore, writer: StoreWriter, name: str, times: int) -> None:
    """Append one to five events at a time and report each checkpoint."""
    session = SessionId(name)
    lease = await opened(store, session)
    crc = 0
    for row in await store.read(session):
        crc = chain_crc(crc, row.payload)
    journal: Journal = writer.journal(
        lease, crc=crc, on_durable=lambda seq: None, on_failure=lambda error: None
    )
    seq = lease.next_seq
    for count in itertools.islice(itertools.cycle((1, 3, 5)), times):
        journal.append([payload(name, at) for at in range(seq, seq + count)])
        seq += count
        await journal.checkpoint()
        print(name, seq - 1, flush=True)


async def main(path: str, sessions: int, times: int) -> None:
    """Append to several sessions at once."""
    store = SqliteStore(path, blob_bytes_min=BLOB_BYTES)
    writer = StoreWriter(store, Limits())
    async with trio.open_nursery() as services:
        await services.start(writer.run)
        try:
            async with trio.open_nursery() as nursery:
                for number in range(sessions):
                    nursery.start_soon(append_for_ever, store, writer, f"s{number}", times)
        except* StoreError as group:
            print("failed", type(group.exceptions[0]).__name__, flush=True)
        finally:
            writer.close()
    await store.aclose()


if __name__ == "__main__":
    trio.run(main, sys.argv[1], int(sys.argv[2]), int((sys.argv[3:] or ["1000000"])[0]))
