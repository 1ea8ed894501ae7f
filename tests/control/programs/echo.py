"""The endpoint's connection code alone, saying back what it hears: what conformance suites talk to.

    python -m tests.control.programs.echo

It prints the port that it listens on, and ends when it is killed.
"""

import trio

from trioloop.control import ControlLimits
from trioloop.control.connection import ConnectionEndedError, accepted
from trioloop.control.reception import receive_head

ROOM = ControlLimits(
    message_bytes_max=64 * 1024 * 1024,
    fragments_max=10_000_000,
    messages_burst_max=1_000_000,
)


async def echo(stream: trio.SocketStream) -> None:
    """One connection, from its request to its end."""
    head, behind = await receive_head(stream, ROOM.head_bytes_max)
    (key,) = head.all(b"sec-websocket-key")
    async with accepted(
        stream, key=key, behind=behind, limits=ROOM, on_refusal=lambda refusal: None
    ) as connection:
        try:
            while True:
                await connection.send(await connection.receive())
        except ConnectionEndedError:
            await connection.close()


async def main() -> None:
    """Serve until killed."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    print(listeners[0].socket.getsockname()[1], flush=True)
    await trio.serve_listeners(echo, listeners)


if __name__ == "__main__":
    trio.run(main)
