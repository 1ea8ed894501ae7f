"""control: an answer that clients watch, some of which never read, beside one that nobody watches.

All clients are in this process, so that what they spend on reading is in the figure, too.
"""

import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack

import trio

import trioloop
from bench.report import Figure, compared
from bench.timing import Effort, alternate, timed
from trioloop.control import ControlLimits, serve
from trioloop.control.address import read_address
from trioloop.control.connection import Connection, opened
from trioloop.testing import ScriptedModel, Text

NAME = "control"
CLIENTS = ((1, 0), (10, 0), (50, 10))
CHUNKS = 200
ROOM = ControlLimits(
    connections_max=5_000, peer_connections_max=5_000, unproven_connections_max=5_000
)


async def run(effort: Effort) -> AsyncGenerator[Figure, None]:
    """A figure for each number of clients."""
    for clients, stopped in CLIENTS:
        yield await _case(effort, clients, stopped)


async def _case(effort: Effort, all_clients: int, all_stopped: int) -> Figure:
    clients, stopped = effort.size(all_clients), min(all_stopped, effort.size(all_stopped))
    words = [Text("word ")] * effort.size(CHUNKS)
    async with (
        trioloop.open_runtime(model=ScriptedModel(lambda _: words)) as runtime,
        serve(runtime, limits=ROOM) as endpoint,
        trio.open_nursery() as nursery,
        AsyncExitStack() as stack,
    ):
        address, token = read_address(endpoint.address(endpoint.tokens.issue("bench", "admin")))
        watched, alone = await runtime.create_agent("watched"), await runtime.create_agent("alone")
        for number in range(clients):
            connection = await stack.enter_async_context(
                opened(address, token, nursery, message_bytes_max=2**24, close_s=1, open_s=30)
            )
            await _subscribe(connection)
            if number >= stopped:
                nursery.start_soon(_read, connection)
        timings = await alternate(
            timed(lambda: watched.ask("go")), timed(lambda: alone.ask("go")), effort.runs
        )
        nursery.cancel_scope.cancel()
    return compared(
        NAME,
        f"{all_clients}-clients-{all_stopped}-stopped",
        timings,
        unit="ms",
        versus="an agent that nobody watches",
        clients=clients,
        stopped=stopped,
    )


async def _subscribe(connection: Connection) -> None:
    asked = {"agent": "watched", "live": True}
    body = {"jsonrpc": "2.0", "id": 1, "method": "session/subscribe", "params": asked}
    await connection.send(json.dumps(body))


async def _read(connection: Connection) -> None:
    while True:
        await connection.receive()
