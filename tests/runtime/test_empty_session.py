"""A session whose first event never became durable can be taken up all the same (D4)."""

from collections.abc import Sequence

import pytest
from trio.testing import MockClock

from tests.agent.reading import reasons
from trioloop.errors import InvalidInputError, StoreFailedError
from trioloop.ports import Append, CommitAnswer
from trioloop.store import MemoryStore
from trioloop.testing import ScriptedModel, Text, open_test_runtime


class _Store(MemoryStore):
    """Commits nothing at first."""

    works = False

    async def commit(self, appends: Sequence[Append]) -> list[CommitAnswer]:
        if not self.works:
            raise StoreFailedError("the disk is gone")
        return await super().commit(appends)


async def test_a_session_without_events_begins_anew(autojump_clock: MockClock) -> None:
    store = _Store()
    async with open_test_runtime(model=ScriptedModel([]), store=store) as runtime:
        await runtime.create_agent("a")
    store.works = True
    async with open_test_runtime(model=ScriptedModel([Text("hi")]), store=store) as runtime:
        agent = await runtime.resume_agent("a")
        assert (await agent.ask("one")).text == "hi"
        assert reasons(agent) == ["completed"]


async def test_nothing_can_be_forked_from_a_session_without_events(
    autojump_clock: MockClock,
) -> None:
    store = _Store()
    async with open_test_runtime(model=ScriptedModel([]), store=store) as runtime:
        await runtime.create_agent("a")
    store.works = True
    async with open_test_runtime(model=ScriptedModel([]), store=store) as runtime:
        with pytest.raises(InvalidInputError, match="empty"):
            await runtime.fork_agent("a", "b")
