"""What is appended becomes durable soon where somebody looks on, since only that is told."""

from contextlib import suppress
from weakref import WeakValueDictionary

import trio

from trioloop.agent.agent import Agent
from trioloop.errors import StoreError
from trioloop.ids import SessionId
from trioloop.session import Session

_HASTE_S = 0.1  # events within it share a commit


class Haste:
    """Hurries the sessions that somebody looks at, each of them once however many those are."""

    def __init__(self) -> None:
        self._hurried: WeakValueDictionary[SessionId, trio.Lock] = WeakValueDictionary()

    async def hurry(self, agent: Agent) -> None:
        """Hurry an agent's session until it is closed, or somebody else does. A checkpoint."""
        lock = self._hurried.get(agent.name)
        if lock is None:
            lock = self._hurried[agent.name] = trio.Lock()
        async with lock:  # who waits here goes on when the one who hurries looks away
            with suppress(StoreError):  # the agent's own turn tells of it
                await _hurry(agent.session)


async def _hurry(session: Session) -> None:
    async with session.subscribe(session.durable_seq) as events:
        async for event in events:
            if event.seq > session.durable_seq:
                await trio.sleep(_HASTE_S)
                await session.checkpoint()
