"""Who reads slowly, or not at all, costs a cursor: agents and other clients don't notice (G11)."""

import json
from typing import Any

import pytest
import trio
import trio.testing

from tests.control.raw_client import raw_connection
from tests.control.serving import served
from trioloop.agent.notifications import StreamChunks
from trioloop.control import ControlLimits, connect
from trioloop.control.subscriptions import Audience, Subscription
from trioloop.control.voice import Cursor, TooSlowError, Voice
from trioloop.events import Event
from trioloop.ids import SessionId
from trioloop.testing import ScriptedModel, Text, Wait, open_test_runtime


async def test_a_frame_that_takes_too_long_ends_it_with_the_cursor_to_resume_from(
    autojump_clock: trio.testing.MockClock,
) -> None:
    voice, sent = Voice(), list[str]()

    async def send(text: str) -> None:
        await trio.sleep(0 if text == "quick" else 11)
        sent.append(text)

    cursor = Cursor(SessionId("a"), 7)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(voice.say, "quick", cursor)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(voice.say, "slow")
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(TooSlowError) as caught:
            await voice.write(send, send_s=10, close_s=2)
        nursery.cancel_scope.cancel()
    assert sent == ["quick", "slow"], "one that is only late is made whole: 4008 can follow"
    assert str(caught.value.cursor) == "resume a after 7"


async def test_a_frame_that_never_ends_is_cut(autojump_clock: trio.testing.MockClock) -> None:
    voice = Voice()

    async def send(text: str) -> None:
        await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(voice.say, "never")
        began = trio.current_time()
        with pytest.raises(TooSlowError):
            await voice.write(send, send_s=10, close_s=2)
        assert trio.current_time() - began == 12


async def test_who_speaks_waits_for_the_writer_and_nothing_is_queued(
    autojump_clock: trio.testing.MockClock,
) -> None:
    voice, said = Voice(), list[int]()

    async def speak() -> None:
        for number in range(1_000):
            await voice.say(str(number))
            said.append(number)

    async def send(text: str) -> None:
        await trio.sleep(5)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(speak)
        nursery.start_soon(lambda: voice.write(send, send_s=10, close_s=2))
        await trio.sleep(12)
        assert len(said) == 3
        nursery.cancel_scope.cancel()


async def test_a_client_that_stops_reading_in_five_thousand_deltas_holds_nobody_up() -> None:
    words = [Text("x" * 100) for _ in range(5_000)]
    limits = ControlLimits(send_s=0.3, close_s=0.2, messages_burst_max=1_000)
    async with served(ScriptedModel([words]), limits=limits) as there:
        agent = await there.runtime.create_agent("a")
        async with raw_connection(there.address) as stopped:
            asked = {"agent": "a", "live": True}
            for id in range(limits.subscriptions_max):  # together more than the sockets take in
                body = {"jsonrpc": "2.0", "id": id, "method": "session/subscribe", "params": asked}
                await stopped.send(json.dumps(body))
            async with connect(there.address) as control:
                settled = await agent.ask("go")
                assert len(settled.text) == 500_000
                await agent.wait_idle()
                assert (await control.status("a")).status == "idle"
                with trio.fail_after(30):
                    while there.endpoint.connections > 1:  # noqa: ASYNC110 - nothing tells
                        await trio.sleep(0.01)
                assert (await control.status("a")).status == "idle"


async def test_deltas_are_merged_for_a_reader_that_lags_and_events_are_not(
    autojump_clock: trio.testing.MockClock,
) -> None:
    pieces = [part for number in range(300) for part in (Text(f"{number} "), Wait(0.001))]
    voice, told, over = Voice(), list[dict[str, Any]](), trio.Event()

    async def send(text: str) -> None:
        await trio.sleep(0.01)
        frame = json.loads(text)
        told.append(frame["params"])
        if frame["params"].get("event", {}).get("type") == "turn/end":
            over.set()

    async with open_test_runtime(model=ScriptedModel([pieces])) as runtime:
        agent = await runtime.create_agent("a")
        subscription = Subscription(1, agent)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: voice.write(send, send_s=10, close_s=2))
            audience = Audience(ControlLimits())
            nursery.start_soon(lambda: subscription.tell(voice, audience, -1, live=True))
            agent.followup("go")
            await over.wait()
            nursery.cancel_scope.cancel()
        length = len(agent.session.events())
    merged = [one["fact"]["chunks"] for one in told if one.get("kind") == StreamChunks.kind]
    words = [chunk.get("text", "") for chunks in merged for chunk in chunks]
    assert "".join(words) == "".join(f"{number} " for number in range(300))
    assert len(merged) < 60, "of 300 deltas in 0.3 s, a reader of a frame each 0.01 s"
    assert [one["event"]["seq"] for one in told if "event" in one] == list(range(length))


async def test_a_slow_reader_gets_every_delta_and_every_durable_event() -> None:
    pieces = [part for number in range(300) for part in (Text(f"{number} "), Wait(0.001))]
    async with served(ScriptedModel([pieces])) as there:
        agent = await there.runtime.create_agent("a")
        async with (
            connect(there.address) as control,
            control.subscribe("a", live=True) as feed,
        ):
            await control.followup("a", "go")
            events, text = list[int](), ""
            async for told in feed:
                await trio.sleep(0.01)
                if isinstance(told, StreamChunks):
                    text += "".join(getattr(chunk, "text", "") for chunk in told.chunks)
                elif isinstance(told, Event):
                    events.append(told.seq)
                    if told.type == "turn/end":
                        break
        assert events == list(range(len(agent.session.events())))
        assert text == "".join(f"{number} " for number in range(300))
