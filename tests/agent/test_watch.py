"""What a watcher gets, when it keeps up and when it lags (H5, G11)."""

from collections.abc import Sequence

import pytest
import trio
from trio.testing import MockClock

from trioloop.agent.notifications import (
    InboxChanged,
    Lagged,
    Notification,
    Settled,
    StreamChunks,
    StreamEnded,
    StreamStarted,
)
from trioloop.agent.watching import Watch
from trioloop.chunks import TextDelta
from trioloop.errors import InvalidInputError
from trioloop.limits import Limits
from trioloop.testing import Fail, ScriptedModel, Stall, Text, Wait, open_test_runtime


async def read_until(feed: Watch, kind: type[Notification]) -> list[Notification]:
    """Everything up to the first notification of a class."""
    read: list[Notification] = []
    async for notification in feed:
        read.append(notification)
        if isinstance(notification, kind):
            return read
    return read


def text(notifications: Sequence[Notification]) -> str:
    """The text of all chunks."""
    return "".join(
        chunk.text
        for one in notifications
        if isinstance(one, StreamChunks)
        for chunk in one.chunks
        if isinstance(chunk, TextDelta)
    )


async def test_a_watcher_hears_what_comes_from_now_on(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel(lambda _: Text("hi"))) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("before")
        await agent.wait_idle()
        async with agent.watch() as feed:
            agent.followup("one")
            read = await read_until(feed, Settled)
        assert text(read) == "hi"
        assert sum(isinstance(one, Settled) for one in read) == 1


async def test_a_watch_ends_when_its_agent_is_disposed_of(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        async with agent.watch() as feed:
            await agent.dispose()
            kinds = [one.kind async for one in feed]
    assert kinds == ["disposed"]


async def test_a_watch_is_read_inside_its_block(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        feed = agent.watch()
        with pytest.raises(InvalidInputError):
            await feed.__anext__()
        async with feed:
            pass
        with pytest.raises(InvalidInputError):
            await feed.__anext__()


async def test_a_slow_reader_gets_chunks_together(autojump_clock: MockClock) -> None:
    model = ScriptedModel([Text("a" * 5_000)], chunk_chars=1)
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        async with agent.watch() as feed:
            await agent.ask("one")
            read = await read_until(feed, Settled)
        assert text(read) == "a" * 5_000
        assert sum(isinstance(one, StreamChunks) for one in read) == 1
        assert not any(isinstance(one, Lagged) for one in read)


async def test_a_reader_that_keeps_up_gets_chunks_as_they_come(autojump_clock: MockClock) -> None:
    at: list[float] = []
    model = ScriptedModel([[Text("a"), Wait(1), Text("b"), Wait(1), Text("c")]])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        async with agent.watch() as feed:
            agent.followup("one")
            async for notification in feed:
                if isinstance(notification, StreamChunks) and text([notification]):
                    at.append(trio.current_time())
                if isinstance(notification, Settled):
                    break
    assert at == [0, 1, 2]


async def test_two_readers_of_different_pace_get_the_same_chunks(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([Text("abcdefgh" * 20)], chunk_chars=1, read_delay_s=0.1)
    texts: list[str] = []

    async def read(feed: Watch, pace_s: float) -> None:
        read: list[Notification] = []
        async for notification in feed:
            read.append(notification)
            await trio.sleep(pace_s)
            if isinstance(notification, Settled):
                break
        texts.append(text(read))

    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        async with agent.watch() as fast, agent.watch() as slow, trio.open_nursery() as nursery:
            nursery.start_soon(read, fast, 0)
            nursery.start_soon(read, slow, 3)
            agent.followup("one")
    assert texts == ["abcdefgh" * 20] * 2


async def test_a_reader_that_comes_in_mid_stream_hears_the_rest_at_once(
    autojump_clock: MockClock,
) -> None:
    """Another watcher is there already, so the stream has its place in the ring."""
    model = ScriptedModel([[Text("a"), Wait(2), Text("b"), Wait(2), Text("c")]])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        async with agent.watch():
            agent.followup("one")
            await trio.sleep(1)
            async with agent.watch() as feed:
                with trio.fail_after(2):
                    first = await feed.__anext__()
                assert trio.current_time() == 2
                assert text([first]) == "b"
                rest = await read_until(feed, Settled)
        assert text(rest) == "c"


async def test_a_chunk_behind_another_notification_stays_in_order(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([[Text("a"), Wait(2), Text("b")]])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        async with agent.watch() as feed:
            agent.followup("one")
            await trio.sleep(1)
            agent.inject("context")
            read = await read_until(feed, Settled)
    kinds = [type(one) for one in read if isinstance(one, StreamChunks | InboxChanged)]
    assert kinds[:5] == [InboxChanged, InboxChanged, StreamChunks, InboxChanged, StreamChunks]


async def test_a_reader_that_lags_is_told_once_how_much_it_missed(
    autojump_clock: MockClock,
) -> None:
    limits = Limits(watch_notifications_max=8)
    async with open_test_runtime(model=ScriptedModel([]), limits=limits) as runtime:
        agent = await runtime.create_agent("a")
        async with agent.watch() as feed:
            for number in range(10):  # two notifications each
                agent.inject(str(number))
            read = [await feed.__anext__() for _ in range(9)]
            assert read[0] == Lagged(12)
            assert not any(isinstance(one, Lagged) for one in read[1:])
            agent.inject("more")
            assert (await feed.__anext__()).kind == "inserted"


async def test_a_lagging_reader_still_gets_the_end_of_the_running_stream(
    autojump_clock: MockClock,
) -> None:
    limits = Limits(watch_notifications_max=4)
    model = ScriptedModel([Text("x"), Text("abc")])
    async with open_test_runtime(model=model, limits=limits) as runtime:
        agent = await runtime.create_agent("a")
        async with agent.watch() as feed:
            await agent.ask("one")
            await agent.ask("two")
            read = await read_until(feed, Settled)
        assert isinstance(read[0], Lagged)
        assert text(read) in ("", "abc")
        assert any(isinstance(one, StreamEnded | Settled) for one in read)


async def test_a_reader_that_never_reads_changes_nothing(autojump_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: [Text("x"), Wait(1), Text("y")], chunk_chars=1)
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        async with agent.watch(), agent.watch():
            for _ in range(20):
                assert (await agent.ask("one")).reason == "completed"
            assert trio.current_time() == 20


async def test_a_runtimes_watch_hears_agents_that_stream_at_once(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel(lambda _: [Text("a"), Wait(1), Text("b")])
    async with open_test_runtime(model=model) as runtime:
        agents = [await runtime.create_agent(name) for name in ("a", "b")]
        async with runtime.watch() as feed:
            for agent in agents:
                agent.followup("one")
            await runtime.wait_idle()
            read = [*await read_until(feed, Settled), *await read_until(feed, Settled)]
        assert sorted(text(read)) == list("aabb")


async def test_each_attempt_is_watched_on_its_own(autojump_clock: MockClock) -> None:
    model = ScriptedModel([[Text("half"), Fail("SERVER")]])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        async with agent.watch() as feed:
            agent.followup("one")
            read = await read_until(feed, Settled)
        started = next(one for one in read if isinstance(one, StreamStarted))
        ended = next(one for one in read if isinstance(one, StreamEnded))
        assert (started.turn, started.step, started.attempt) == (1, 1, 1)
        assert ended.outcome == "attempt"
        assert text(read) == "half"


async def test_leaving_a_watch_early_leaves_no_task(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([[Text("a"), Stall()]])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        before = trio.lowlevel.current_statistics().tasks_living
        async with agent.watch() as feed:
            agent.inject("context")
            async for _ in feed:
                break
        assert trio.lowlevel.current_statistics().tasks_living == before


async def test_a_cancelled_read_loses_nothing(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        async with agent.watch() as feed:
            with trio.move_on_after(1):
                await feed.__anext__()
            agent.inject("context")
            assert (await feed.__anext__()).kind == "inserted"


async def test_who_comes_in_the_middle_may_have_the_attempt_from_its_beginning(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([[Text("one "), Wait(1), Text("two "), Wait(1), Text("three")]])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("go")
        await trio.sleep(1.5)
        async with agent.watch(whole_attempt=True) as feed:
            read = await read_until(feed, StreamEnded)
        assert isinstance(read[0], StreamStarted)
        assert text(read) == "one two three"
        assert text(read[1:2]) == "one two "


async def test_between_attempts_there_is_nothing_to_begin_with(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("one"), Text("two")])) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("first")
        await agent.wait_idle()
        async with agent.watch(whole_attempt=True) as feed:
            agent.followup("second")
            read = await read_until(feed, StreamEnded)
        assert text(read) == "two"
