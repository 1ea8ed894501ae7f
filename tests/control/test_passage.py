"""Between the socket and the WebSocket library: how a passage ends."""

import pytest
import trio
import trio.testing

from trioloop.control.passage import Passage


async def test_nothing_is_sent_behind_the_last_words(
    autojump_clock: trio.testing.MockClock,
) -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    passage = Passage(ours, linger_s=2)
    passage.last_words = lambda: b"goodbye"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(passage.aclose)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(trio.ClosedResourceError):
            await passage.send_all(b"one thing more")
        assert [data async for data in theirs] == [b"goodbye"]
        began = trio.current_time()
    assert trio.current_time() - began == 2, "a peer that stays is waited for, but not for ever"


async def test_who_leaves_is_not_waited_for(autojump_clock: trio.testing.MockClock) -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    passage = Passage(ours, linger_s=2)
    await theirs.aclose()
    await passage.aclose()
    assert trio.current_time() == 0
    assert passage.over
