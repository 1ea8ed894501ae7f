"""What else may be wrong with a store's file than its logs, and who is writing it.

Synchronous; nothing is changed, and somebody may write meanwhile.
"""

import os
import socket
import sqlite3
from collections.abc import Iterator

from trioloop.errors import DamagedSessionError, StoreError
from trioloop.ids import SessionId
from trioloop.ports import Owner
from trioloop.store.blobs import BlobFiles
from trioloop.store.lock import noted_holder
from trioloop.store.rows import summaries, verified_rows
from trioloop.store.tables import blob_folder, reader, store_path


def writer_of(path: str | os.PathLike[str]) -> Owner | None:
    """Who writes a store's file just now, as far as can be told without taking its lock.

    A process that died here is nobody; one on another host is believed.
    """
    owner = noted_holder(store_path(path))
    if owner is None or (owner.host == socket.gethostname() and not _is_alive(owner.pid)):
        return None
    return owner


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def file_faults(path: str | os.PathLike[str]) -> Iterator[str]:
    """What is wrong with a file beside its logs, a line each.

    Its pages and indexes, the sizes that it tells of its sessions, the files of large content.

    Raises:
        StoreUnreadableError: the file is missing, no store, or may not be read.
    """
    file = store_path(path)
    blobs = BlobFiles(blob_folder(file))
    with reader(file) as connection:
        yield from _of_pages(connection)
        for session in summaries(connection):
            rows = verified_rows(connection, blobs, SessionId(session.session))
            try:
                size = sum(len(row.payload) for row in rows)
            except DamagedSessionError:
                continue  # which is told by whoever reads the log
            if size != session.bytes:
                yield f"session {session.session!r} tells of {session.bytes} bytes, not {size}"
    for locator in blobs.locators():
        try:
            blobs.get(locator)
        except StoreError as error:
            yield str(error)


def _of_pages(connection: sqlite3.Connection) -> Iterator[str]:
    try:
        for (line,) in connection.execute("PRAGMA integrity_check"):
            if line != "ok":
                yield f"SQLite says: {line}"
    except sqlite3.Error as error:
        yield f"SQLite says: {error}"
