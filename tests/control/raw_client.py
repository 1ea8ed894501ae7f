"""A client with no memory and no manners: a frame out, the answer with its id in."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio

from trioloop.control.address import read_address
from trioloop.control.connection import Connection, opened

Ask = Callable[..., Awaitable[dict[str, Any]]]


@asynccontextmanager
async def raw_connection(url: str) -> AsyncIterator[Connection]:
    """A connection alone."""
    address, token = read_address(url)
    async with trio.open_nursery() as nursery:
        async with opened(
            address, token, nursery, message_bytes_max=2**24, close_s=2, open_s=10
        ) as connection:
            yield connection
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def raw(url: str) -> AsyncIterator[Ask]:
    """Asks and gives the whole answer, an error too."""
    async with raw_connection(url) as connection:

        async def ask(method: str, id: int | str, **params: Any) -> dict[str, Any]:
            body = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
            await connection.send(json.dumps(body))
            while True:
                frame: dict[str, Any] = json.loads(await connection.receive())
                if frame.get("id") == id:
                    return frame

        yield ask
