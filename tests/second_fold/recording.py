"""Real runs, of which the logs are kept and the bytes of what the models received."""

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, TypeAlias

import trio
from trio.testing import MockClock

from trioloop import Runtime
from trioloop.agent.notifications import Created
from trioloop.codec import canonical
from trioloop.events import Event
from trioloop.log.rebuild import Request
from trioloop.session import Session
from trioloop.testing import ScriptedModel, open_test_runtime, seeded_ids


class Recording:
    """What runs left behind.

    Attributes:
        logs: by the session's name, all its events.
        received: by the session's name, what its models received, encoded as it came.
    """

    def __init__(self) -> None:
        self.logs: dict[str, list[Event]] = {}
        self.received: dict[str, list[bytes]] = defaultdict(list)
        self._runtimes = 0
        self._late: list[tuple[Request, bytes]] = []

    def model(self, script: Any, **options: Any) -> ScriptedModel:  # Any: as the class's own
        """A scripted model whose requests are kept."""
        return _RecordedModel(self, script, **options)

    @asynccontextmanager
    async def runtime(
        self,
        script: Any = (),
        **options: Any,  # Any: those of open_test_runtime
    ) -> AsyncIterator[Runtime]:
        """A runtime whose sessions are kept; its model follows the script unless one is given."""
        options.setdefault("model", self.model(script))
        # Other ids than those of an earlier runtime, whose sessions this one may resume.
        self._runtimes += 1
        options.setdefault("ids", seeded_ids(self._runtimes))
        sessions: list[Session] = []
        try:
            async with open_test_runtime(**options) as runtime:

                def remember(created: Created) -> None:
                    sessions.append(runtime.agents[created.agent].session)

                with runtime.on("created", remember):
                    yield runtime
        finally:
            self.logs.update({session.name: list(session.events()) for session in sessions})

    def receive(self, request: Request) -> None:
        """Keep what a model is given, as it reads now."""
        line = canonical(request)
        self.received[request.session].append(line)
        self._late.append((request, line))

    def changed_later(self) -> list[Request]:
        """The requests that don't read any more as when they were received: none, it's hoped."""
        return [request for request, line in self._late if canonical(request) != line]


class _RecordedModel(ScriptedModel):
    def __init__(self, recording: Recording, script: Any, **options: Any) -> None:
        super().__init__(script, **options)
        self._recording = recording

    async def answer(self, request: Request) -> Any:  # Any: a class of the scripted model's own
        self._recording.receive(request)
        return await super().answer(request)


Run: TypeAlias = Callable[[Recording], Awaitable[None]]


@cache
def recorded(run: Run) -> Recording:
    """What a run left behind; it runs once, under a virtual clock."""
    recording = Recording()
    trio.run(run, recording, clock=MockClock(autojump_threshold=0))
    assert recording.logs, "nothing was recorded"
    return recording
