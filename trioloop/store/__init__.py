"""The durable homes of logs."""

from trioloop.store.memory import MemoryStore

__all__ = ["MemoryStore"]
