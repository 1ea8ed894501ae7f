"""A connection that is cut anywhere loses nothing: what was read, put together, is the log."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.control.browsing import free_port
from tests.control.raw_client import raw_connection
from tests.control.serving import ROOMY, agent_of, controlled, served
from trioloop.control import ControlLimits, WireError, connect
from trioloop.control.address import read_address
from trioloop.control.connection import ConnectionEndedError
from trioloop.events import Event
from trioloop.testing import ScriptedModel, Text, ToolCall
from trioloop.tools import tool

SEARCHES = int(os.environ.get("TRIOLOOP_RECONNECT_EXAMPLES", "8"))
ROOM = ControlLimits(
    connections_max=500,
    peer_connections_max=500,
    unproven_connections_max=500,
    messages_burst_max=10_000,
    frame_bytes_max=1_500,
)


@tool(effects="once")
def note(text: str) -> str:
    """Note something.

    Args:
        text: what.
    """
    return text * 300


@asynccontextmanager
async def cutting(url: str, port: int, cuts: list[int]) -> AsyncIterator[str]:
    """A proxy that cuts its n-th connection behind so many bytes from the endpoint."""
    address, token = read_address(url)
    left = list(cuts)

    async def pump(source: trio.SocketStream, sink: trio.SocketStream, count: int | None) -> None:
        async for data in source:
            passed = data if count is None else data[:count]
            await sink.send_all(passed)
            if count is not None:
                count -= len(passed)
                if not count:
                    return
        await sink.send_eof()

    async def relay(client: trio.SocketStream) -> None:
        cut = left.pop(0) if left else None
        try:
            server = await trio.open_tcp_stream(address.host, address.port)
            async with server, client, trio.open_nursery() as nursery:
                nursery.start_soon(pump, client, server, None)
                await pump(server, client, cut)
                nursery.cancel_scope.cancel()
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(port, host="127.0.0.1")
        serving = partial(trio.serve_listeners, relay, [listener])
        nursery.start_soon(serving)  # noqa: ASYNC113 - the socket listens already
        yield f"http://127.0.0.1:{port}/#{token}"
        nursery.cancel_scope.cancel()


async def read_all(url: str, upto: int) -> list[Event]:
    """A session through a client, up to a seq."""
    events: list[Event] = []
    async with connect(url) as control, control.subscribe("a") as feed:
        async for told in feed:
            assert isinstance(told, Event)
            events.append(told)
            if told.seq == upto:
                return events
    return events


@settings(max_examples=SEARCHES, deadline=None)
@given(cuts=st.lists(st.integers(1, 9_000), max_size=12), seed=st.integers(0, 3))
def test_cut_anywhere_the_concatenation_is_the_log(cuts: list[int], seed: int) -> None:
    async def main() -> None:
        model = ScriptedModel([[ToolCall("note", text="a" * seed * 9)], Text("done")])
        port = free_port()
        hosts = [f"127.0.0.1:{port}"]
        async with served(model, limits=ROOM, tools=[note], hosts=hosts) as there:
            agent = await there.runtime.create_agent("a")
            await agent.ask("go")
            async with cutting(there.address, port, cuts) as url:
                log = list(agent.session.events())
                assert await read_all(url, upto=len(log) - 1) == log

    trio.run(main)


async def test_events_that_come_after_a_cursor_come_once_and_live_ones_follow() -> None:
    async with controlled(ScriptedModel([Text("one"), Text("two")])) as (control, runtime):
        await control.create("a")
        await agent_of(runtime, "a").ask("first")
        async with control.subscribe("a", after=8) as feed:
            read = [await anext(feed) for _ in range(2)]
            await control.followup("a", "second")
            while len(read) < 10:
                read.append(await anext(feed))
        assert [told.seq for told in read if isinstance(told, Event)] == list(range(9, 19))


async def test_only_durable_events_are_told() -> None:
    async with controlled() as (control, runtime):
        await control.create("a")
        agent = agent_of(runtime, "a")
        async with control.subscribe("a") as feed:
            assert isinstance(await anext(feed), Event)
            agent.inject("not yet durable")
            told = await anext(feed)
            assert isinstance(told, Event)
            assert agent.session.durable_seq >= told.seq


async def test_a_cursor_of_another_session_or_from_the_future_is_told() -> None:
    async with controlled() as (control, _):
        made = await control.create("a")
        for after, opened, code in ((5, None, "future_cursor"), (0, 12345, "foreign_cursor")):
            async with control.subscribe("a", after=after, opened=opened) as feed:
                with pytest.raises(WireError) as caught:
                    await anext(feed)
                assert caught.value.code == code
        async with control.subscribe("a", after=-1, opened=made.opened) as feed:
            assert isinstance(await anext(feed), Event)


async def test_a_subscription_ends_with_its_agent() -> None:
    async with controlled() as (control, _):
        await control.create("a")
        async with control.subscribe("a", live=True) as feed:
            first = await anext(feed)
            assert isinstance(first, Event)
            await control.dispose("a")
            rest = [one async for one in feed]
        assert [one for one in rest if isinstance(one, Event)] == []


async def test_a_command_under_way_when_the_endpoint_is_restarted_is_sent_again() -> None:
    port = free_port()
    async with served(limits=ROOMY, hosts=[f"127.0.0.1:{port}"]) as there:
        await there.runtime.create_agent("a")
        async with cutting(there.address, port, [700, 300, 100]) as url, connect(url) as control:
            for number in range(5):
                await control.send("a", "hello", id=f"m{number}", wakeup=False)
        agent = agent_of(there.runtime, "a")
        assert [one.message.id for one in agent.inbox.next_turn] == [f"m{n}" for n in range(5)]


async def test_a_connection_whose_send_was_cancelled_is_over_for_its_reader_too() -> None:
    async with served() as there, raw_connection(there.address) as connection:
        with trio.CancelScope() as scope:
            scope.cancel()
            await connection.send("{}")
        with pytest.raises(ConnectionEndedError):
            await connection.receive()
        with pytest.raises(ConnectionEndedError):
            await connection.send("{}")
