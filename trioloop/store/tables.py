"""The tables of a store's file, and how its connections are opened.

A session's row tells where it ends; each event is one row, whose place is
`session << 32 | seq`: one b-tree, in the order in which logs are read. A payload of
`blob_bytes_min` or more is in a blob file, and its row has the locator.

There is one connection that writes. Those that read are opened read-only and never checkpoint,
so that they may come and go while it writes.
"""

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from trioloop.errors import InvalidInputError, StoreUnreadableError
from trioloop.ports import Durability

SEQ_BITS = 32
_APPLICATION_ID = 0x7472696F  # "trio"
_VERSION = 1
_NO_SIDE_FILES = {
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
}
_NO_STORE = "is no trioloop store: give the path of a store's file"
_MAGIC = b"SQLite format 3\0"
_AS_IT_IS = "mode=ro&immutable=1"  # SQLite neither locks nor makes anything
_COPIES_MAX = 5  # tries to copy a file that somebody begins to write meanwhile
_BUSY_S = 5.0  # nobody else writes; this is for a tool that looks into the file

_SESSION_TABLE = """
TABLE session (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    epoch INTEGER NOT NULL,
    next_seq INTEGER NOT NULL,
    crc INTEGER NOT NULL,
    append_id TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    created INTEGER NOT NULL,
    changed INTEGER NOT NULL
)
"""
_EVENT_TABLE = """
TABLE event (
    place INTEGER PRIMARY KEY,
    crc INTEGER NOT NULL,
    payload BLOB,
    blob TEXT
)
"""
_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE {_SESSION_TABLE};
CREATE {_EVENT_TABLE};
CREATE TABLE counter (epoch INTEGER NOT NULL);
INSERT INTO counter VALUES (0);
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_VERSION};
COMMIT;
"""


def store_path(path: str | os.PathLike[str]) -> str:
    """The file that a path leads to, so that two names of one file share one lock.

    Raises:
        InvalidInputError: it names no file.
    """
    text = os.fspath(path)
    if text in ("", ":memory:"):
        raise InvalidInputError(f"{text!r} is no file: give a path, or use MemoryStore()")
    return os.path.realpath(text)


def blob_folder(path: str) -> Path:
    """Where the blob files of the store at `path` are."""
    return Path(f"{path}.blobs")


def connect_writer(
    path: str, durability: Durability, kind: type[sqlite3.Connection]
) -> sqlite3.Connection:
    """The one connection that writes; makes the file and its tables where there are none.

    Raises:
        StoreUnreadableError: it is the file of something else, or of a newer trioloop.
        sqlite3.Error: it can't be opened or set up.
    """
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, timeout=_BUSY_S, factory=kind
    )
    try:
        if _is_empty(connection):
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(_SCHEMA)
        _check_kind(path, connection)
        connection.execute("PRAGMA journal_mode = WAL")
        level = "FULL" if durability == "step" else "NORMAL"
        connection.execute(f"PRAGMA synchronous = {level}")
    except BaseException:  # the connection is closed and the error goes on
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def reader(path: str) -> Iterator[sqlite3.Connection]:
    """A connection that only reads, inside one transaction: a snapshot.

    It also opens a read-only file, one in a read-only folder, and one on a full disk. A file whose
    maker died before there was anything in it reads as a store without sessions.

    Raises:
        StoreUnreadableError: it is missing, no store, or may not be read.
    """
    with contextlib.ExitStack() as stack:
        try:
            connection = stack.enter_context(_opened(path))
        except (sqlite3.Error, OSError) as error:
            raise unreadable(path, error) from None
        yield connection


def unreadable(path: str, error: Exception, *, writing: bool = False) -> StoreUnreadableError:
    """Why a path can't be opened as a store, in one line."""
    return StoreUnreadableError(f"{path!r} {_why_unreadable(Path(path), error, writing)}")


def _why_unreadable(path: Path, error: Exception, writing: bool) -> str:
    if path.is_dir():
        return "is a directory: give the path of a store's file"
    if not path.parent.is_dir():
        return f"can't be there: {str(path.parent)!r} is no folder"
    if not writing and not path.exists():
        return "doesn't exist: give the path of a store's file"
    needed = os.W_OK if writing else os.R_OK
    effective = os.access in os.supports_effective_ids
    found = path if path.exists() else path.parent
    if not os.access(found, needed, effective_ids=effective):
        return f"may not be {'written' if writing else 'read'}: get permission first"
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
        return _NO_STORE
    return f"can't be opened as a store: {error}"


@contextlib.contextmanager
def _opened(path: str) -> Iterator[sqlite3.Connection]:
    """The first way of opening for reading that works, and that keeps nobody from writing."""
    if _would_leave_files(path):
        with _copied(path) as copy:
            yield copy
        return
    connection = None
    try:
        connection = _connect_reader(path, "mode=ro")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in _NO_SIDE_FILES or not os.path.isfile(path):
            raise
    if connection is None:
        with _without_side_files(path) as found:
            yield found
    else:
        with contextlib.closing(connection):
            yield connection


@contextlib.contextmanager
def _without_side_files(path: str) -> Iterator[sqlite3.Connection]:
    """A connection where SQLite can't make the files that it wants beside a database.

    Nobody else can write there either, so that the file holds still. What a crash left in its
    write-ahead log is only read where SQLite may recover it: in a copy.
    """
    log = f"{path}-wal"
    if os.path.exists(log) and os.path.getsize(log) > 0:
        with _copied(path) as copy:
            yield copy
    else:
        with contextlib.closing(_connect_reader(path, _AS_IT_IS)) as connection:
            yield connection


def _would_leave_files(path: str) -> bool:
    """Whether reading would make side files that the store's owner may not write.

    SQLite makes them where they are missing, as the reader's own, and a reader leaves them behind.
    For root it gives them to the owner of the database.
    """
    if all(os.path.exists(f"{path}{side}") for side in ("-wal", "-shm")):
        return False
    if not _is_database(path) or os.geteuid() in (0, os.stat(path).st_uid):
        return False
    effective = os.access in os.supports_effective_ids
    return os.access(os.path.dirname(path), os.W_OK, effective_ids=effective)


def _is_database(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


@contextlib.contextmanager
def _copied(path: str) -> Iterator[sqlite3.Connection]:
    """A connection to a copy of the file and its write-ahead log, gone afterwards."""
    in_memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=in_memory) as folder:
        copy = os.path.join(folder, "copy")
        for _ in range(_COPIES_MAX):
            before = _stamp(path)
            for side in ("", "-wal"):
                with contextlib.suppress(FileNotFoundError):
                    shutil.copyfile(f"{path}{side}", f"{copy}{side}")
            if _stamp(path) == before:
                break
        else:
            raise OSError("it changes too quickly to be copied: read it as its owner does")
        with contextlib.closing(_connect_reader(copy, "mode=rw", told=path)) as connection:
            yield connection


def _stamp(path: str) -> list[tuple[int, int]]:
    """What changes as soon as somebody writes the file or its write-ahead log."""
    found = []
    for side in ("", "-wal"):
        with contextlib.suppress(FileNotFoundError):
            status = os.stat(f"{path}{side}")
            found.append((status.st_mtime_ns, status.st_size))
    return found


def _connect_reader(path: str, options: str, *, told: str | None = None) -> sqlite3.Connection:
    """Open a file for reading; errors name the path `told`, where that is another."""
    connection = sqlite3.connect(
        f"{Path(path).absolute().as_uri()}?{options}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=_BUSY_S,
    )
    try:
        if _is_empty(connection):
            _pretend_tables(connection)
        else:
            connection.execute("BEGIN")
            _check_kind(told or path, connection)
    except BaseException:  # the connection is closed and the error goes on
        connection.close()
        raise
    return connection


def _is_empty(connection: sqlite3.Connection) -> bool:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return _pragma(connection, "application_id") == 0 and tables == 0


def _pretend_tables(connection: sqlite3.Connection) -> None:
    """Let a connection find the tables that a store has, empty, whatever the file holds."""
    connection.execute("PRAGMA temp_store = MEMORY")
    for table in (_SESSION_TABLE, _EVENT_TABLE):
        connection.execute(f"CREATE TEMP {table}")


def _check_kind(path: str, connection: sqlite3.Connection) -> None:
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if _pragma(connection, "application_id") != _APPLICATION_ID:
        raise StoreUnreadableError(f"{path!r} {_NO_STORE}")
    version = _pragma(connection, "user_version")
    if version != _VERSION:
        raise StoreUnreadableError(
            f"{path!r} is a store of version {version}, this trioloop reads {_VERSION}"
        )


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value
