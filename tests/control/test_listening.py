"""Where an endpoint listens: TLS, Unix sockets, and what happens when there is no room."""

import os
import socket
import ssl
import stat
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trio
import trio.testing
import trustme

from tests.control.attacking import KEY, Bystander, close_code, frame, read_head, settles, target
from tests.control.raw_client import raw_connection
from tests.control.serving import served
from trioloop import InvalidInputError
from trioloop.control import ControlLimits, Endpoint, connect
from trioloop.control.connection import (
    ConnectionEndedError,
    EndpointRefusedError,
    accepted,
)
from trioloop.control.reception import receive_head

QUICK = ControlLimits(head_s=0.5, close_s=0.5, shutdown_s=0.5)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Who signs certificates here."""
    return trustme.CA()


@pytest.fixture
def certified(authority: trustme.CA) -> ssl.SSLContext:
    """A server's certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    return context


@pytest.fixture
def trusting(authority: trustme.CA) -> ssl.SSLContext:
    """What a client trusts."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def port_of(address: str) -> int:
    """The port of an endpoint."""
    return urlsplit(address).port or 0


def upgrade_of(address: str) -> bytes:
    """A request for a WebSocket connection that is granted."""
    lines = (
        "GET /control HTTP/1.1",
        f"Host: 127.0.0.1:{port_of(address)}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {KEY}",
        f"Authorization: Bearer {urlsplit(address).fragment}",
    )
    return "\r\n".join((*lines, "", "")).encode()


async def nobody_is_left(endpoint: Endpoint) -> None:
    """Wait until an endpoint has no connection."""
    with trio.fail_after(10):
        while endpoint.connections:  # noqa: ASYNC110 - nothing tells
            await trio.sleep(0.01)


# TLS


async def test_an_agent_is_asked_over_tls(
    certified: ssl.SSLContext, trusting: ssl.SSLContext
) -> None:
    async with served(tls=certified) as there:
        assert there.address.startswith("https://127.0.0.1:")
        async with connect(there.address, tls_context=trusting) as control:
            await control.create("a")
            sent = await control.followup("a", "hello")
            assert sent.turn == 1


async def test_who_does_not_trust_the_certificate_is_told(certified: ssl.SSLContext) -> None:
    async with served(tls=certified, limits=QUICK) as there:
        with pytest.raises(OSError, match="certificate verify failed"):
            async with connect(there.address):
                pass


async def test_who_speaks_no_tls_gets_nothing_and_leaves_nothing(
    certified: ssl.SSLContext,
) -> None:
    async with served(tls=certified, limits=QUICK) as there:
        port = port_of(there.address)
        async with await trio.open_tcp_stream("127.0.0.1", port) as stranger:
            await stranger.send_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert b"HTTP" not in b"".join([data async for data in stranger])
        await nobody_is_left(there.endpoint)


async def test_broken_framing_over_tls_has_its_close_code(
    certified: ssl.SSLContext, trusting: ssl.SSLContext
) -> None:
    async with served(tls=certified, limits=QUICK) as there:
        port = port_of(there.address)

        def attack() -> int:
            with (
                socket.create_connection(("127.0.0.1", port), timeout=20) as plain,
                trusting.wrap_socket(plain, server_hostname="127.0.0.1") as attacker,
            ):
                attacker.sendall(upgrade_of(there.address))
                assert b" 101 " in read_head(attacker)
                attacker.sendall(frame(3, b"odd"))
                return close_code(attacker)

        assert await trio.to_thread.run_sync(attack) == 1002
        await nobody_is_left(there.endpoint)


# Unix sockets


async def test_a_unix_socket_is_its_owner_s_alone_and_is_gone_in_the_end(tmp_path: Path) -> None:
    path = tmp_path / "run" / "control.sock"
    async with served(listen=f"unix:{path}") as there:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        async with connect(there.address) as control:
            assert (await control.create("a")).agent == "a"
    assert not path.exists()


async def test_a_socket_in_a_folder_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o755)
    with pytest.raises(InvalidInputError, match="must be yours alone"):
        async with served(listen=f"unix:{folder}/control.sock"):
            pass


async def test_a_stale_socket_is_replaced_a_live_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "run" / "control.sock"
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    async with served(listen=f"unix:{path}") as there:
        with pytest.raises(InvalidInputError, match="listens on"):
            async with served(listen=f"unix:{path}"):
                pass
        async with connect(there.address) as control:
            assert (await control.create("a")).agent == "a"


async def test_a_file_in_the_socket_s_place_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "run" / "control.sock"
    path.parent.mkdir(mode=0o700)
    path.write_text("precious", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="no socket"):
        async with served(listen=f"unix:{path}"):
            pass
    assert path.read_text(encoding="utf-8") == "precious"


# Somebody else at the address


async def test_a_server_that_speaks_something_else_is_no_endpoint() -> None:
    async def answer(stream: trio.SocketStream) -> None:
        head, behind = await receive_head(stream, QUICK.head_bytes_max)
        (key,) = head.all(b"sec-websocket-key")
        async with accepted(
            stream, key=key, behind=behind, limits=QUICK, on_refusal=lambda refusal: None
        ) as connection:
            await connection.receive()
            await connection.send("welcome to the chat room")
            await connection.close()

    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, answer, [listener])
        with pytest.raises(EndpointRefusedError):
            async with connect(f"http://127.0.0.1:{port}/#{'t' * 43}", patience_s=0):
                pass
        nursery.cancel_scope.cancel()


# No room, and the end


def test_without_descriptors_nobody_new_comes_in_until_there_are_some(tmp_path: Path) -> None:
    with target(tmp_path, files_max=28) as there:
        bystander = Bystander(there)
        before = there.descriptors()
        crowd = [there.connect() for _ in range(40)]
        settles(lambda: "Too many open files" in there.log.read_text(encoding="utf-8"), True)
        assert bystander.works()
        for one in crowd:
            one.close()
        settles(there.descriptors, before)
        there.open().close()
        assert bystander.works()
        bystander._socket.close()


async def test_tasks_are_back_where_they_were_after_hostile_peers() -> None:
    async with served(limits=QUICK) as there:
        port = port_of(there.address)
        upgrade = upgrade_of(there.address)
        stages: tuple[bytes, ...] = (b"", b"GET", upgrade[:-4], upgrade, upgrade + frame(9, b"x"))
        subscribed = b'{"jsonrpc":"2.0","id":1,"method":"runtime/subscribe"}'
        stages += (upgrade + frame(1, subscribed), upgrade + frame(1, length=2**62))
        before, files = tasks(), len(os.listdir("/proc/self/fd"))
        for stage in stages:
            peer = await trio.open_tcp_stream("127.0.0.1", port)
            await peer.send_all(stage)
            await trio.sleep(0.02)
            await peer.aclose()
        await nobody_is_left(there.endpoint)
        await trio.testing.wait_all_tasks_blocked()
        assert tasks() == before
        assert len(os.listdir("/proc/self/fd")) == files


def tasks() -> int:
    """How many tasks live."""
    return trio.lowlevel.current_statistics().tasks_living


async def test_leaving_tells_all_clients_and_waits_for_none_that_stays_silent() -> None:
    async with trio.open_nursery() as nursery:
        async with served(limits=QUICK) as there:
            codes = list[int]()

            async def listen(opened: trio.Event) -> None:
                async with raw_connection(there.address) as connection:
                    opened.set()
                    with pytest.raises(ConnectionEndedError) as caught:
                        await connection.receive()
                    codes.append(caught.value.close_code)

            for _ in range(3):
                opened = trio.Event()
                nursery.start_soon(listen, opened)
                await opened.wait()
            port = port_of(there.address)
            silent = await trio.open_tcp_stream("127.0.0.1", port)
            await trio.testing.wait_all_tasks_blocked()
        await silent.aclose()
    assert codes == [1001, 1001, 1001]
