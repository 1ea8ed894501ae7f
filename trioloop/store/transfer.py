"""Sessions out of a store's file and into another, as JSON Lines. Everything is synchronous.

The lines themselves are in `store.lines`; here is what touches files.
"""

import os
import socket
import sqlite3
from collections.abc import Iterable, Iterator

from trioloop.errors import InvalidInputError
from trioloop.ids import SessionId
from trioloop.limits import Limits
from trioloop.ports import Owner
from trioloop.store.blobs import BlobFiles
from trioloop.store.database import Database
from trioloop.store.lines import lines_of, log_of
from trioloop.store.reading import read_rows
from trioloop.store.tables import blob_folder, store_path


def export_session(
    path: str | os.PathLike[str], name: str, *, before: int | None = None
) -> Iterator[bytes]:
    """The events of a session as JSON Lines, one a line, each line with its line feed.

    All of them are read before the first is given: whoever is slow to write them holds nothing up.

    Args:
        path: the file.
        name: the session's name.
        before: export only events with a lower seq, such as those before a damaged one.

    Raises:
        StoreUnreadableError: the file is missing, no store, or may not be read.
        UnknownSessionError: it has no session of that name.
        DamagedSessionError: an event isn't what was written; `before=error.seq` exports what
            stands before it.
    """
    return lines_of(read_rows(path, name, before=before))


def import_session(
    path: str | os.PathLike[str], lines: Iterable[bytes], *, name: str | None = None
) -> SessionId:
    """Add an exported session to a store's file, equal to the last byte.

    All lines are verified before anything is written; then all are written in one transaction.

    Args:
        path: the file; made where there is none.
        lines: as `export_session` gave them, such as a file opened with mode `rb`.
        name: which session they should be; None: whichever they are.

    Returns:
        The session's name.

    Raises:
        DamagedExportError: a line isn't what was exported, one is missing, or there is none.
        GrammarError: the events are no log.
        UnsupportedSessionError: a newer trioloop wrote it, or nobody here declares its types (E5).
        InvalidInputError: they are another session than `name`, or no lines of bytes.
        SessionExistsError: the file has a session of that name.
        SessionLockedError: somebody is writing the file.
        StoreUnreadableError: the file can't be opened for writing.
        StoreFailedError: it can't be written; nothing of it was.
    """
    log = log_of(lines)
    if name not in (None, log.session):
        raise InvalidInputError(
            f"the lines are the log of session {log.session!r}, not of {name!r}: a log keeps its "
            "name"
        )
    file = store_path(path)
    database = Database(
        file,
        "step",
        BlobFiles(blob_folder(file)),
        Limits().blob_bytes_min,
        sqlite3.Connection,
    )
    try:
        database.add_session(log.session, Owner(os.getpid(), socket.gethostname()), log.rows)
    finally:
        database.close()
    return log.session
