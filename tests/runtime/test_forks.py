"""A new session that begins where another one was (D6, I5)."""

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import facts, pending, said
from trioloop.errors import (
    InvalidInputError,
    OpenTurnError,
    SessionExistsError,
    UnknownSessionError,
)
from trioloop.events import InboxSpliced, RequestHeaderLogged, SessionOpened, TurnStarted
from trioloop.store import MemoryStore
from trioloop.testing import ScriptedModel, Stall, Text, open_test_runtime


async def test_a_fork_goes_on_with_what_its_parent_knew(autojump_clock: MockClock) -> None:
    model = ScriptedModel([Text("1"), Text("2")])
    async with open_test_runtime(model=model) as runtime:
        parent = await runtime.create_agent("parent")
        await parent.ask("one")
        before = parent.session.events()
        child = await runtime.fork_agent("parent", "child")
        assert child.session.events()[1 : len(before)] == before[1:]
        await child.ask("two")
        assert said(model.requests[1]) == ["U one", "A 1", "U two"]
        assert parent.session.events() == before
        assert [start.turn for start in facts(child, TurnStarted)] == [1, 2]
        assert [header.why for header in facts(child, RequestHeaderLogged)] == ["initial", "resume"]


async def test_a_fork_names_its_parent_and_keeps_that_when_resumed(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    async with open_test_runtime(model=ScriptedModel([Text("1")]), store=store) as runtime:
        parent = await runtime.create_agent("parent")
        await parent.ask("one")
        child = await runtime.fork_agent("parent", "child")
        (opened,) = facts(child, SessionOpened)
        assert (opened.parent, opened.fork_seq, opened.depth) == ("parent", parent.session.seq, 1)
        await child.dispose()
        resumed = await runtime.resume_agent("child")
        assert facts(resumed, SessionOpened) == [opened]
        grandchild = await runtime.fork_agent("child", "grandchild")
        assert facts(grandchild, SessionOpened)[0].depth == 2


async def test_a_fork_inherits_no_pending_message_and_its_parent_keeps_them(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("1")])) as runtime:
        parent = await runtime.create_agent("parent")
        parent.inject("context")
        parent.send("later", wakeup=False)
        child = await runtime.fork_agent("parent", "child")
        assert pending(child) == []
        assert pending(parent) == ["context", "later"]
        dropped = [
            splice.list for splice in facts(child, InboxSpliced) if splice.outcome == "forked"
        ]
        assert dropped == ["next-step", "next-turn"]
        child.wake()
        assert child.status == "idle"


async def test_a_fork_of_a_working_agent_ends_before_its_open_turn(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("1"), Stall()])) as runtime:
        parent = await runtime.create_agent("parent")
        await parent.ask("one")
        await parent.wait_idle()
        closed = parent.session.seq
        parent.followup("two")
        await trio.sleep(1)
        child = await runtime.fork_agent("parent", "child")
        assert child.session.events()[1 : closed + 1] == parent.session.events()[1 : closed + 1]
        assert [start.turn for start in facts(child, TurnStarted)] == [1]
        with pytest.raises(OpenTurnError) as raised:
            await runtime.fork_agent("parent", "other", at_seq=parent.session.seq)
        assert raised.value.nearest == closed + 1
        nearest = await runtime.fork_agent("parent", "other", at_seq=raised.value.nearest)
        assert len(facts(nearest, TurnStarted)) == 1


async def test_every_cut_is_a_whole_log_or_names_the_nearest(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("1"), Text("2")])) as runtime:
        parent = await runtime.create_agent("parent")
        await parent.ask("one")
        await parent.ask("two")
        nearest: dict[int, int] = {}
        for cut in range(parent.session.seq + 1):
            try:
                await runtime.fork_agent("parent", f"child-{cut}", at_seq=cut)
            except OpenTurnError as error:
                nearest[cut] = error.nearest
        assert all(whole < cut for cut, whole in nearest.items())
        for cut, whole in nearest.items():
            await runtime.fork_agent("parent", f"child-{cut}", at_seq=whole)
        assert len(runtime.agents) == parent.session.seq + 2
        assert all(one.session.state.turn is None for one in runtime.agents.values())


@pytest.mark.parametrize("cut", [-1, 10_000])
async def test_a_cut_outside_the_log_is_refused(cut: int, autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        await runtime.create_agent("parent")
        with pytest.raises(InvalidInputError, match="at_seq"):
            await runtime.fork_agent("parent", "child", at_seq=cut)
        assert list(runtime.agents) == ["parent"]
        await runtime.fork_agent("parent", "child")


async def test_a_fork_takes_no_name_that_exists(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    async with open_test_runtime(model=ScriptedModel([]), store=store) as runtime:
        await runtime.create_agent("parent")
        await (await runtime.create_agent("stored")).dispose()
        for name in ("parent", "stored"):
            with pytest.raises(SessionExistsError, match=name):
                await runtime.fork_agent("parent", name)
        with pytest.raises(SessionExistsError):  # the name is looked at before the cut
            await runtime.fork_agent("parent", "parent", at_seq=10_000)
        with pytest.raises(UnknownSessionError):
            await runtime.fork_agent("nobody", "child")


async def test_a_fork_of_a_stored_session_leaves_it_unopened(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    async with open_test_runtime(model=ScriptedModel([Text("1")]), store=store) as runtime:
        parent = await runtime.create_agent("parent")
        await parent.ask("one")
        await parent.dispose()
        rows = await store.read(parent.name)
        child = await runtime.fork_agent("parent", "child")
        assert len(facts(child, TurnStarted)) == 1
        assert await store.read(parent.name) == rows
        assert list(runtime.agents) == ["child"]
