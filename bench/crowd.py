"""A crowd of clients in a process of its own, on plain sockets: they watch agents, or never read.

    python -m bench.crowd PORT TOKEN CONNECTIONS STOPPED AGENT...

Each connection watches one of the agents, in turn; the first ones read nothing. It prints a line
when all are connected, and one whenever every reader has seen one more turn end.
"""

import base64
import json
import resource
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import urlsplit

import trio

_KEY = base64.b64encode(bytes(16)).decode()
_END = b'"type":"turn/end"'
_READ_BYTES = 65_536
_SPARE_FILES = 200
_SEGMENT_BYTES, _BUFFER_BYTES = 1_400, 4_096  # small, so that who never reads is felt soon


class Crowd:
    """A crowd that was called.

    Args:
        told: what its process prints.
    """

    def __init__(self, told: trio.abc.ReceiveStream) -> None:
        self._told = told
        self._lines = 0  # that came and nobody has waited for yet

    async def tells(self) -> None:
        """Wait for its next line. A checkpoint."""
        while not self._lines:
            data = await self._told.receive_some(_READ_BYTES)
            if not data:
                raise ConnectionError("the crowd is gone")
            self._lines += data.count(b"\n")
        self._lines -= 1


@asynccontextmanager
async def crowd(
    address: str, agents: Sequence[str], *, connections: int, stopped: int
) -> AsyncIterator[Crowd]:
    """A crowd, connected and subscribed, for as long as the block is open.

    Args:
        address: of the endpoint, with its token.
        agents: whom they watch.
        connections: how many.
        stopped: how many of them never read.
    """
    make_room_for_files(connections)
    parts = urlsplit(address)
    command = [sys.executable, "-m", "bench.crowd", str(parts.port), parts.fragment]
    command += [str(connections), str(stopped), *agents]
    async with trio.open_nursery() as nursery:
        process = await nursery.start(
            partial(trio.run_process, command, stdout=subprocess.PIPE, check=False)
        )
        called = Crowd(process.stdout)
        await called.tells()
        yield called
        nursery.cancel_scope.cancel()


def make_room_for_files(count: int) -> None:
    """Let this process have so many files open, as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + _SPARE_FILES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


# The crowd's own process


async def watch(port: int, token: str, connections: int, stopped: int, agents: list[str]) -> None:
    """Connect, read, and tell, until ended."""
    make_room_for_files(connections)
    ends = Counter[int]()  # how many readers have seen so many ends

    async def read(stream: trio.SocketStream) -> None:
        seen, behind = 0, b""
        while data := await stream.receive_some(_READ_BYTES):
            data = behind + data
            for _ in range(data.count(_END)):
                seen += 1
                ends[seen] += 1
                if ends[seen] == connections - stopped:
                    print("another turn has ended", flush=True)
            behind = data[max(data.rfind(_END) + 1, len(data) - len(_END) + 1) :]

    unread = []  # kept, since a stream that nobody holds is closed
    async with trio.open_nursery() as nursery:
        for number in range(connections):
            agent = agents[number % len(agents)]
            stream = await _subscribed(port, token, agent, reads=number >= stopped)
            if number >= stopped:
                nursery.start_soon(read, stream)
            else:
                unread.append(stream)
        print("all are connected", flush=True)
        await trio.sleep_forever()


async def _subscribed(port: int, token: str, agent: str, *, reads: bool) -> trio.SocketStream:
    plain = trio.socket.socket()
    if not reads:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, _SEGMENT_BYTES)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
    await plain.connect(("127.0.0.1", port))
    stream = trio.SocketStream(plain)
    await stream.send_all(_upgrade(port, token) + _subscription(agent))
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += await stream.receive_some(1)
    assert b" 101 " in answer, answer
    return stream


def _upgrade(port: int, token: str) -> bytes:
    lines = (
        "GET /control HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {_KEY}",
        f"Authorization: Bearer {token}",
    )
    return "\r\n".join((*lines, "", "")).encode()


def _subscription(agent: str) -> bytes:
    """A request as a masked frame; its mask is zero."""
    asked = {"agent": agent, "live": True}
    body = {"jsonrpc": "2.0", "id": 1, "method": "session/subscribe", "params": asked}
    payload = json.dumps(body).encode()
    assert len(payload) < 126  # of a longer one the head has another form
    return bytes((0x81, 0x80 | len(payload))) + bytes(4) + payload


def main() -> None:
    """As a program."""
    port, token, connections, stopped, *agents = sys.argv[1:]
    trio.run(watch, int(port), token, int(connections), int(stopped), agents)


if __name__ == "__main__":
    main()
