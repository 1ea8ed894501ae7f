"""Which live facts are told, in which order, and that whoever hears them can't hurt (H5)."""

import logging
from itertools import groupby

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import ends, facts, pending, reasons
from trioloop.agent.notifications import (
    Created,
    Disposed,
    MessageClaimed,
    MessageInserted,
    Notification,
    Settled,
    StatusChanged,
    StreamChunks,
    StreamEnded,
    StreamStarted,
    TurnFailed,
)
from trioloop.chunks import Finish, TextDelta, UsageChunk
from trioloop.errors import InvalidInputError
from trioloop.events import Event, InboxSpliced, StepStarted, TurnEnded, TurnStarted
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import AttemptFailed, Retry
from trioloop.testing import Fail, ScriptedModel, Stall, Text, Wait, open_test_runtime


async def test_a_turn_is_told_in_order(autojump_clock: MockClock) -> None:
    told: list[Notification] = []
    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.on("*", told.append)
        id = agent.followup("one")
        await agent.wait_idle()
        await agent.dispose()
    assert [kind for kind, _ in groupby(one.kind for one in told)] == [
        "inserted",
        "spliced",
        "status",
        "claimed",
        "spliced",
        "stream-start",
        "stream-chunk",
        "stream-end",
        "settled",
        "status",
        "disposed",
    ]
    assert MessageClaimed(id, 1) in told
    assert StreamStarted(1, 1, 1) in told
    assert told[-1] == Disposed(agent.name)


async def test_a_runtime_hears_its_agents(autojump_clock: MockClock) -> None:
    told: list[Notification] = []
    async with open_test_runtime(model=ScriptedModel(lambda _: Text("x"))) as runtime:
        runtime.on("*", told.append)
        agent = await runtime.create_agent("a")
        other = await runtime.create_agent("b")
        await agent.ask("one")
        await other.ask("two")
        assert told[:2] == [Created(agent.name), Created(other.name)]
        assert sum(isinstance(one, Settled) for one in told) == 2


async def test_an_agents_listener_hears_only_that_agent(autojump_clock: MockClock) -> None:
    told: list[Settled] = []
    async with open_test_runtime(model=ScriptedModel(lambda _: Text("x"))) as runtime:
        agent, other = await runtime.create_agent("a"), await runtime.create_agent("b")
        agent.on("settled", told.append)
        await other.ask("two")
        assert told == []
        await agent.ask("one")
        assert len(told) == 1


async def test_a_closed_registration_hears_nothing_more(autojump_clock: MockClock) -> None:
    told: list[object] = []
    async with open_test_runtime(model=ScriptedModel(lambda _: Text("x"))) as runtime:
        agent = await runtime.create_agent("a")
        registration = agent.on("settled", told.append)
        registration.close()
        registration.close()
        await agent.ask("one")
    assert told == []


async def test_a_kind_that_does_not_exist_is_refused(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        with pytest.raises(InvalidInputError, match="statsu"):
            agent.on("statsu", print)


async def test_a_listener_that_raises_is_logged_and_breaks_nothing(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(told: object) -> None:
        raise RuntimeError("listener")

    def broken_observer(event: Event) -> None:
        raise RuntimeError("observer")

    told: list[object] = []
    async with open_test_runtime(model=ScriptedModel([Text("hi"), Fail("AUTH")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.on("*", broken)
        agent.on("*", told.append)
        agent.session.observe(broken_observer)
        with caplog.at_level(logging.CRITICAL, logger="trioloop.session"):
            assert (await agent.ask("one")).reason == "completed"
            assert (await agent.ask("two")).reason == "error"
    assert len(told) > 10
    assert "listener" in caplog.text


async def test_an_error_is_told_once_before_the_turns_end(autojump_clock: MockClock) -> None:
    told: list[tuple[TurnFailed, int]] = []
    async with open_test_runtime(model=ScriptedModel([Fail("AUTH", "no key")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.on("error", lambda one: told.append((one, len(ends(agent)))))
        await agent.ask("one")
    ((failed, turns_ended),) = told
    assert (failed.turn, failed.code, failed.message, failed.by) == (1, "AUTH", "no key", None)
    assert turns_ended == 0


async def test_what_a_listener_raised_reaches_the_error_notification_unchanged(
    autojump_clock: MockClock,
) -> None:
    error = ValueError("mine")

    async def broken(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
        raise error

    told: list[TurnFailed] = []
    async with open_test_runtime(model=ScriptedModel([Fail("AUTH")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request_error.add(broken)
        agent.on("error", told.append)
        await agent.ask("one")
    assert told[0].error is error


async def test_an_aborted_turn_tells_no_error(autojump_clock: MockClock) -> None:
    told: list[object] = []
    async with open_test_runtime(model=ScriptedModel([Stall()])) as runtime:
        agent = await runtime.create_agent("a")
        agent.on("error", told.append)
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel()
        await agent.wait_idle()
    assert told == []


async def test_settled_does_not_mean_idle(autojump_clock: MockClock) -> None:
    seen: list[str] = []
    async with open_test_runtime(model=ScriptedModel([Text("1"), Text("2")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.on("settled", lambda one: seen.append(agent.status))
        agent.followup("one")
        agent.followup("two")
        await agent.wait_idle()
    assert seen == ["running", "running"]


async def test_chunks_are_told_in_order_between_the_streams_start_and_end(
    autojump_clock: MockClock,
) -> None:
    told: list[Notification] = []
    model = ScriptedModel([[Text("ab"), Text("cd")]], chunk_chars=1)
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        for kind in ("stream-start", "stream-chunk", "stream-end"):
            agent.on(kind, told.append)
        await agent.ask("one")
    assert isinstance(told[0], StreamStarted)
    assert isinstance(told[-1], StreamEnded)
    chunks = [chunk for one in told if isinstance(one, StreamChunks) for chunk in one.chunks]
    texts = [chunk.text for chunk in chunks if isinstance(chunk, TextDelta)]
    assert texts == list("abcd")
    assert isinstance(chunks[-1], Finish)
    assert isinstance(chunks[-2], UsageChunk)


# What those who are told do, comes after what they were told of


async def test_an_observer_sees_an_event_that_is_already_in_the_log(
    autojump_clock: MockClock,
) -> None:
    seen: list[bool] = []

    def observe(event: Event) -> None:
        seen.append(agent.session.events()[event.seq] is event)

    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.session.observe(observe)
        await agent.ask("one")
        assert len(seen) == agent.session.seq
    assert all(seen)


async def test_observers_are_told_in_log_order_though_one_appends(
    autojump_clock: MockClock,
) -> None:
    first: list[int] = []
    second: list[int] = []

    def observe(event: Event) -> None:
        first.append(event.seq)
        if isinstance(event.data, StepStarted):
            agent.steer("more") if event.data.step == 1 else None

    async with open_test_runtime(model=ScriptedModel([Text("1"), Text("2")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.session.observe(observe)
        agent.session.observe(lambda event: second.append(event.seq))
        await agent.ask("one")
        assert first == second == list(range(1, agent.session.seq + 1))
        types = [event.type for event in agent.session.events()]
        start = types.index("step/start")
        inserted = next(
            event.seq
            for event in agent.session.events()
            if isinstance(event.data, InboxSpliced) and event.data.list == "next-step"
        )
        assert "agent/inbox/spliced" not in types[start:inserted]
        assert types[start + 1 : inserted] == ["user/message", "request/header", "request/context"]


async def test_a_listener_may_send_and_the_message_waits_its_turn(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("1"), Text("2")])) as runtime:
        agent = await runtime.create_agent("a")

        def more(told: MessageClaimed) -> None:
            if told.turn == 1:
                agent.followup("more")

        agent.on("claimed", more)
        await agent.ask("one")
        await agent.wait_idle()
        assert reasons(agent) == ["completed", "completed"]


async def test_a_listener_of_idle_may_send_and_the_agent_runs_again(
    autojump_clock: MockClock,
) -> None:
    statuses: list[str] = []

    def again(told: StatusChanged) -> None:
        statuses.append(told.status)
        if told.status == "idle" and len(ends(agent)) < 3:
            agent.followup("again")

    async with open_test_runtime(model=ScriptedModel(lambda _: Text("x"))) as runtime:
        agent = await runtime.create_agent("a")
        agent.on("status", again)
        agent.followup("one")
        await agent.wait_idle()
        assert reasons(agent) == ["completed"] * 3
        assert statuses == ["running", "idle"] * 3


async def test_a_send_from_the_settled_notification_opens_the_next_turn(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([Fail("AUTH"), Text("2")])) as runtime:
        agent = await runtime.create_agent("a")
        with agent.on("settled", lambda one: one.turn == 1 and agent.followup("two")):
            await agent.ask("one")
            await agent.wait_idle()
        assert reasons(agent) == ["error", "completed"]


async def test_an_observer_of_turn_start_that_raises_leaves_the_turn_as_it_is(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    def observe(event: Event) -> None:
        if isinstance(event.data, TurnStarted | TurnEnded | StepStarted):
            raise RuntimeError("observer")

    told: list[object] = []
    async with open_test_runtime(model=ScriptedModel([Text("1"), Text("2")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.on("error", told.append)
        agent.session.observe(observe)
        assert (await agent.ask("one")).reason == "completed"
        assert (await agent.ask("two")).reason == "completed"
        assert len(facts(agent, TurnEnded)) == 2
    assert told == []
    assert "observer" in caplog.text


async def test_an_insertion_is_told_with_its_list(autojump_clock: MockClock) -> None:
    told: list[MessageInserted] = []
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.on("inserted", told.append)
        agent.inject("context")
        agent.send("later", wakeup=False)
        assert [one.list for one in told] == ["next-step", "next-turn"]
        assert pending(agent) == ["context", "later"]


async def test_the_end_of_a_waiting_stream_is_told_to_a_listener_that_came_late(
    autojump_clock: MockClock,
) -> None:
    told: list[StreamEnded] = []
    async with open_test_runtime(model=ScriptedModel([[Text("a"), Wait(2), Text("b")]])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        agent.on("stream-end", told.append)
        await agent.wait_idle()
    assert [one.outcome for one in told] == ["message"]


async def test_a_runtime_tells_whose_each_notification_is(
    autojump_clock: MockClock,
) -> None:
    told: dict[str, set[str]] = {}

    def hear(notification: Notification) -> None:
        told.setdefault(notification.agent, set()).add(notification.kind)

    async with open_test_runtime(model=ScriptedModel([Text("hello"), Text("hello")])) as runtime:
        runtime.on("*", hear)
        for name in ("one", "two"):
            await (await runtime.create_agent(name)).ask("hi")
    assert set(told) == {"one", "two"}
    assert told["one"] == told["two"]
    assert {"created", "status", "claimed", "stream-chunk", "settled", "disposed"} <= told["one"]
