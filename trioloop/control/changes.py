"""Which agents have changed, and whether the open questions have: cursors, never queues. No I/O.

A change says nothing of how: who is told looks anew, however often something changed meanwhile.
What was forgotten to stay bounded makes a cursor from before it look at everything.
"""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterator

import attrs
import trio

from trioloop.ids import SessionId

_KEPT_MAX = 10_000


@attrs.frozen
class Changed:
    """What has changed behind a cursor.

    Attributes:
        everything: it may be anything.
        agents: the agents that have; they may be gone.
        questions: the open questions have.
    """

    everything: bool
    agents: frozenset[SessionId]
    questions: bool


class Changes:
    """What has changed, each agent in the place of its last change.

    Args:
        kept_max: agents that are remembered.
    """

    def __init__(self, kept_max: int = _KEPT_MAX) -> None:
        self._kept_max = kept_max
        self._count = 0  # changes so far
        self._agents: OrderedDict[SessionId, int] = OrderedDict()  # the last to change is last
        self._forgotten = 0  # the count at the last change that isn't kept any more
        self._questions = 0
        self._came: trio.Event | None = None  # made only while somebody waits

    def note(self, agent: SessionId) -> None:
        """An agent has changed. Synchronous."""
        self._count += 1
        self._agents[agent] = self._count
        self._agents.move_to_end(agent)
        if len(self._agents) > self._kept_max:
            _, self._forgotten = self._agents.popitem(last=False)
        self._wake()

    def note_questions(self) -> None:
        """The open questions have changed. Synchronous."""
        self._count += 1
        self._questions = self._count
        self._wake()

    async def each(self) -> AsyncGenerator[Changed, None]:
        """Everything at first, then what has changed since, as soon as something has."""
        seen = -1
        while True:
            while seen == self._count:
                if self._came is None:
                    self._came = trio.Event()
                await self._came.wait()
            changed, seen = self._since(seen), self._count
            yield changed

    def _since(self, seen: int) -> Changed:
        everything = seen < self._forgotten
        return Changed(
            everything=everything,
            agents=frozenset(() if everything else self._behind(seen)),
            questions=everything or self._questions > seen,
        )

    def _behind(self, seen: int) -> Iterator[SessionId]:
        for agent, count in reversed(self._agents.items()):
            if count <= seen:
                return
            yield agent

    def _wake(self) -> None:
        came, self._came = self._came, None
        if came is not None:
            came.set()
