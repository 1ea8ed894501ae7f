"""Bytes on raw sockets to a `trioloop serve` process, with a working client beside them.

Nothing of the endpoint's own code is used here: an attacker has none.
"""

import base64
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 20.0
KEY = base64.b64encode(bytes(16)).decode()


@attrs.define(eq=False)
class Target:
    """A `trioloop serve` process."""

    process: subprocess.Popen[str]
    port: int
    token: str
    log: Path

    def connect(self) -> socket.socket:
        """A connection of an attacker's."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)

    def head(self, *lines: str, request: str = "GET /control HTTP/1.1", host: bool = True) -> bytes:
        """A request's head, with Host where it isn't left out."""
        first = [request, *([f"Host: 127.0.0.1:{self.port}"] if host else [])]
        return "\r\n".join([*first, *lines, "", ""]).encode("latin-1")

    def upgrade(self, *lines: str, token: str | None = None) -> bytes:
        """A request for a WebSocket connection that may be granted."""
        return self.head(
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {KEY}",
            f"Authorization: Bearer {self.token if token is None else token}",
            *lines,
        )

    def answer(self, sent: bytes) -> str:
        """All that comes back until the other side closes."""
        with self.connect() as attacker:
            attacker.sendall(sent)
            return read_all(attacker).decode("latin-1")

    def status(self, sent: bytes) -> int:
        """The status of the answer."""
        found = re.match(r"HTTP/1\.1 (\d+)", self.answer(sent))
        assert found is not None
        return int(found[1])

    def open(self) -> socket.socket:
        """A WebSocket connection that was granted."""
        attacker = self.connect()
        attacker.sendall(self.upgrade())
        assert b" 101 " in read_head(attacker)
        return attacker

    def descriptors(self) -> int:
        """How many files the process has open."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def memory_kib(self) -> int:
        """What it holds in memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        found = re.search(r"VmRSS:\s+(\d+)", status)
        assert found is not None
        return int(found[1])


def read_all(attacker: socket.socket) -> bytes:
    """Everything until the other side closes or resets."""
    data = b""
    try:
        while more := attacker.recv(65_536):
            data += more
    except ConnectionResetError:
        pass
    return data


def read_head(attacker: socket.socket) -> bytes:
    """Bytes up to an empty line."""
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        more = attacker.recv(1)
        assert more, data
        data += more
    return data


def frame(
    opcode: int, payload: bytes = b"", *, final: bool = True, length: int | None = None
) -> bytes:
    """A client's frame; `length` is what it claims."""
    size = len(payload) if length is None else length
    short = size if size < 126 else 126 if size < 65_536 else 127
    extended = size.to_bytes({126: 2, 127: 8}[short], "big") if short > 125 else b""
    return bytes((opcode | (0x80 if final else 0), short | 0x80)) + extended + bytes(4) + payload


def request(method: str, id: int | str = 1, **params: Any) -> bytes:
    """A request as a frame."""
    body = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return frame(1, json.dumps(body).encode())


def read_frame(attacker: socket.socket) -> tuple[int, bytes]:
    """A server's frame: its opcode and payload; (0, b"") at the end."""
    head = _exactly(attacker, 2)
    if len(head) < 2:
        return 0, b""
    size = head[1] & 0x7F
    if size > 125:
        size = int.from_bytes(_exactly(attacker, {126: 2, 127: 8}[size]), "big")
    return head[0] & 0x0F, _exactly(attacker, size)


def _exactly(attacker: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        try:
            more = attacker.recv(count - len(data))
        except ConnectionResetError:
            more = b""
        if not more:
            return data
        data += more
    return data


def close_code(attacker: socket.socket) -> int:
    """The code of the close frame that comes in the end; 0: none did."""
    while True:
        opcode, payload = read_frame(attacker)
        if opcode == 8:
            return int.from_bytes(payload[:2], "big")
        if opcode == 0:
            return 0


class Bystander:
    """A working client, which must not notice."""

    def __init__(self, target: Target) -> None:
        self._socket = target.open()
        self._id = 0
        self.ask("agents/create", agent="bystander")

    def ask(self, method: str, **params: Any) -> Any:
        """A request's result."""
        self._id += 1
        self._socket.sendall(request(method, self._id, **params))
        while True:
            opcode, payload = read_frame(self._socket)
            if opcode == 9:
                self._socket.sendall(frame(10, payload))
                continue
            assert opcode == 1, (opcode, payload)
            found = json.loads(payload)
            if found.get("id") == self._id:
                return found["result"]

    def works(self) -> bool:
        """Whether an agent can still be asked."""
        return bool(self.ask("agent/status", agent="bystander")["status"] == "idle")


@contextmanager
def target(folder: Path, *, files_max: int | None = None) -> Iterator[Target]:
    """`trioloop serve`, as anybody would start it; it must end as a signal asks it to.

    Args:
        folder: where it runs.
        files_max: how many files it may have open.
    """
    serve = [sys.executable, "-m", "trioloop", "serve", "--model", "demonstration"]
    limited = ["sh", "-c", f'ulimit -n {files_max}; exec "$@"', "sh"]
    log = folder / "stderr.txt"
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            serve if files_max is None else limited + serve,
            cwd=folder,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        assert process.stdout is not None
        found = re.match(r"http://127\.0\.0\.1:(\d+)/#(\S+)", process.stdout.readline())
        assert found is not None, log.read_text(encoding="utf-8")
        yield Target(process, int(found[1]), found[2], log)
        process.terminate()
        assert process.wait(PATIENCE_S) == 143, log.read_text(encoding="utf-8")
    finally:
        process.kill()
        process.communicate()


def settles(look: Any, expected: Any) -> None:
    """Wait until something is as it was."""
    deadline = time.monotonic() + PATIENCE_S
    while look() != expected:
        if time.monotonic() > deadline:
            pytest.fail(f"it stays at {look()}, expected {expected}")
        time.sleep(0.05)
