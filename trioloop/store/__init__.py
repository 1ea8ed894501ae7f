"""The durable homes of logs."""

from trioloop.store.memory import MemoryStore
from trioloop.store.reading import list_sessions, read_rows, read_session
from trioloop.store.sqlite import SqliteStore

__all__ = ["MemoryStore", "SqliteStore", "list_sessions", "read_rows", "read_session"]
