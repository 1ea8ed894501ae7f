"""A store's file without a runtime: for reading a log where nothing is to be run.

Everything is synchronous, verified, and works while somebody writes the file, on a read-only file
and on a full disk. Nothing is locked and nothing is changed.
"""

import os
from collections.abc import Iterator
from itertools import islice

from trioloop.codec import decode_event
from trioloop.errors import DamagedSessionError
from trioloop.events import Event, SessionOpened
from trioloop.ids import session_id
from trioloop.ports import SessionSummary, StoredRow
from trioloop.store.blobs import BlobFiles
from trioloop.store.rows import summaries, verified_rows
from trioloop.store.tables import blob_folder, reader, store_path


def read_session(
    path: str | os.PathLike[str], name: str, *, before: int | None = None
) -> tuple[Event, ...]:
    """The events of a session in a store's file.

    Args:
        path: the file.
        name: the session's name.
        before: read only events with a lower seq, such as those before a damaged one.

    Raises:
        StoreUnreadableError: the file is missing, no store, or may not be read.
        UnknownSessionError: it has no session of that name.
        DamagedSessionError: an event isn't what was written; `before=error.seq` reads what stands
            before it.
        UnsupportedSessionError: a newer trioloop wrote it, or nobody here declares its types (E5).
    """
    return tuple(decode_event(row.payload) for row in _rows(path, name, before))


def read_rows(
    path: str | os.PathLike[str], name: str, *, before: int | None = None
) -> tuple[StoredRow, ...]:
    """The same as `read_session`, undecoded: canonical bytes with their chained CRCs.

    Raises:
        StoreUnreadableError: the file is missing, no store, or may not be read.
        UnknownSessionError: it has no session of that name.
        DamagedSessionError: an event isn't what was written.
    """
    return tuple(_rows(path, name, before))


def list_sessions(path: str | os.PathLike[str]) -> list[SessionSummary]:
    """The sessions in a store's file, by name.

    Raises:
        StoreUnreadableError: the file is missing, no store, or may not be read.
    """
    with reader(store_path(path)) as connection:
        return summaries(connection)


def _rows(path: str | os.PathLike[str], name: str, before: int | None) -> Iterator[StoredRow]:
    file = store_path(path)
    with reader(file) as connection:
        rows = verified_rows(connection, BlobFiles(blob_folder(file)), session_id(name))
        for row in islice(rows, before if before is None else max(before, 0)):
            if row.seq == 0:
                _check_name(row, name)
            yield row


def _check_name(row: StoredRow, name: str) -> None:
    data = decode_event(row.payload).data
    if isinstance(data, SessionOpened) and data.session != name:
        raise DamagedSessionError(name, 0, f"it is the log of session {data.session!r}")
