"""What may be done with pending messages, and what the log tells of it (I2, I5, R5)."""

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import admitted, ends, pending, splices, status
from trioloop.agent.agent import Agent
from trioloop.agent.notifications import MessageDiscarded, MessageInserted
from trioloop.errors import DuplicateMessageError, InvalidInputError
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import Decision, PreStep, Reject
from trioloop.ids import MessageId
from trioloop.limits import Limits
from trioloop.messages import MessageList, user_message
from trioloop.testing import ScriptedModel, Text, open_test_runtime

LISTS: tuple[MessageList, ...] = ("next-turn", "next-step")


def watched(agent: Agent) -> list[object]:
    """Everything that happens to messages from here on, as it is told."""
    told: list[object] = []
    agent.on("inserted", told.append)
    agent.on("discarded", told.append)
    return told


@pytest.mark.parametrize("target", LISTS)
async def test_replacing_is_one_splice_that_discards_and_inserts(
    target: MessageList, autojump_clock: MockClock
) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        old = agent.send("old", target=target, wakeup=False)
        agent.send("behind", target=target, wakeup=False)
        told = watched(agent)
        before = agent.session.seq
        new = user_message("new", id="m-2")
        assert agent.inbox.replace(old, new)
        assert agent.session.seq == before + 1
        assert splices(agent)[-1].outcome == "replaced"
        assert told == [MessageDiscarded(old, "replaced"), MessageInserted(new, target)]
        assert pending(agent) == ["new", "behind"]


async def test_replacing_keeps_whether_the_message_wakes(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        old = agent.inject("old")
        agent.inbox.replace(old, "new")
        (one,) = agent.inbox.next_step
        assert not one.wakeup
        assert one.message.id == old


async def test_replacing_what_is_not_pending_changes_nothing(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        asked = user_message("hello", id="m-1")
        await agent.ask(asked)
        before = agent.session.seq
        assert not agent.inbox.replace(MessageId("m-1"), "new")
        assert not agent.inbox.replace(MessageId("nobody"), "new")
        assert agent.session.seq == before


async def test_replacing_by_a_known_id_is_refused(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        first, second = agent.inject("one"), agent.inject("two")
        before = agent.session.seq
        with pytest.raises(DuplicateMessageError):
            agent.inbox.replace(first, user_message("x", id=second))
        with pytest.raises(InvalidInputError):
            agent.inbox.replace(first, "  ")
        assert agent.session.seq == before
        assert pending(agent) == ["one", "two"]


async def test_replacing_by_a_message_over_its_limit_is_refused(autojump_clock: MockClock) -> None:
    limits = Limits(message_bytes_max=10)
    async with open_test_runtime(model=ScriptedModel([]), limits=limits) as runtime:
        agent = await runtime.create_agent("a")
        first = agent.inject("one")
        before = agent.session.seq
        with pytest.raises(InvalidInputError, match="message_bytes_max"):
            agent.inbox.replace(first, "é" * 6)
        assert agent.session.seq == before
        assert agent.inbox.replace(first, "é" * 5)
        assert pending(agent) == ["ééééé"]


@pytest.mark.parametrize("target", LISTS)
async def test_removing_discards_one_message_once(
    target: MessageList, autojump_clock: MockClock
) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.send("one", target=target, wakeup=False)
        second = agent.send("two", target=target, wakeup=False)
        told = watched(agent)
        assert agent.inbox.remove(second)
        assert not agent.inbox.remove(second)
        assert told == [MessageDiscarded(second, "canceled")]
        assert pending(agent) == ["one"]


async def test_clearing_empties_next_step_then_next_turn(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.send("turn", target="next-turn", wakeup=False)
        agent.inject("step")
        agent.inject("step too")
        before = len(splices(agent))
        assert agent.inbox.clear() == 3
        assert [(one.list, one.removed, one.outcome) for one in splices(agent)[before:]] == [
            ("next-step", 2, "canceled"),
            ("next-turn", 1, "canceled"),
        ]
        assert agent.inbox.clear() == 0
        assert len(splices(agent)) == before + 2


async def test_a_removed_message_opens_no_turn(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.inbox.remove(agent.followup("hello"))
        await agent.wait_idle()
        assert ends(agent) == []


async def test_restoring_puts_back_once_what_a_turn_did_not_admit(
    autojump_clock: MockClock,
) -> None:
    async def reject(step: PreStep, next: Next[Decision]) -> Decision:
        return Reject("no", "NO")

    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        with agent.hooks.pre_step.add(reject):
            agent.inject("context")
            await agent.ask("hello")
        await agent.wait_idle()
        assert [one.list for one in ends(agent)[0].unadmitted] == ["next-step", "next-turn"]
        assert agent.inbox.restore(1) == 2
        assert agent.inbox.restore(1) == 0
        assert all(one.restored for splice in splices(agent)[-2:] for one in splice.inserted)
        assert pending(agent) == ["context", "hello"]
        assert status(agent) == "idle"
        agent.wake()
        await agent.wait_idle()
        assert admitted(agent) == ["context", "hello"]


async def test_an_id_at_the_moment_of_its_claim_is_claimed_or_discarded_never_both(
    autojump_clock: MockClock,
) -> None:
    for points in range(6):
        async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
            agent = await runtime.create_agent("a")
            fates: list[str] = []
            agent.on("claimed", lambda _, fates=fates: fates.append("claimed"))  # type: ignore[misc]
            agent.on("discarded", lambda _, fates=fates: fates.append("discarded"))  # type: ignore[misc]
            id = agent.followup("hello")
            for _ in range(points):
                await trio.lowlevel.checkpoint()
            removed = agent.inbox.remove(id)
            await agent.wait_idle()
            assert fates == (["discarded"] if removed else ["claimed"])
