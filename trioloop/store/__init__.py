"""The durable homes of logs."""

from trioloop.store.memory import MemoryStore
from trioloop.store.reading import list_sessions, read_rows, read_session
from trioloop.store.sqlite import SqliteStore
from trioloop.store.transfer import export_session, import_session

__all__ = [
    "MemoryStore",
    "SqliteStore",
    "export_session",
    "import_session",
    "list_sessions",
    "read_rows",
    "read_session",
]
