"""Servers of models that nobody here wrote, each started once for all tests."""

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.model_servers.llmock import LlmockServer

START_S = 60  # a busy machine takes its time to import a web framework
END_S = 10


@pytest.fixture(scope="session")
def llmock_server() -> Iterator[LlmockServer]:
    """A server that breaks answers on demand, and judges its client."""
    if importlib.util.find_spec("llmock") is None:
        pytest.skip("no model server to break: it needs the package llmock")
    port = free_port()
    program = "from llmock.cli import app; app()"
    command = [sys.executable, "-c", program, "serve", "--port", str(port)]
    # An answer takes its time, so that a client can leave before it is over.
    command += ["--stream-chunk-delay-ms", "20", "--log-level", "error"]
    with running(command, f"http://127.0.0.1:{port}/_llmock/verdict"):
        yield LlmockServer(f"http://127.0.0.1:{port}")


@pytest.fixture(scope="session")
def aimock_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server in JavaScript that answers from fixtures: its address."""
    program = _aimock()
    if program is None:
        pytest.skip("no scripted model server: it needs the npm package @copilotkit/aimock")
    port = free_port()
    fixtures = Path(__file__).with_name("aimock_fixtures.json")
    command = [*program, "--port", str(port), "--fixtures", str(fixtures)]
    with running(command, f"http://127.0.0.1:{port}/health"):
        yield f"http://127.0.0.1:{port}"


def _aimock() -> list[str] | None:
    """The command that starts it: from the folder AIMOCK, or one of npm's above the tests."""
    folders = [Path(os.environ.get("AIMOCK", "/nowhere")), *Path(__file__).resolve().parents]
    for folder in folders:
        program = folder / "node_modules" / ".bin" / "llmock"
        if program.exists() and shutil.which("node") is not None:
            return [str(program)]
    return None


def free_port() -> int:
    """A port of the loopback address that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(command: list[str], url: str) -> Iterator[None]:
    """A server, from when it answers at an address to when the block is left."""
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_until_it_answers(server, url)
        yield
    finally:
        server.terminate()
        try:
            server.wait(END_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait_until_it_answers(server: "subprocess.Popen[bytes]", url: str) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        if server.poll() is not None:
            pytest.fail(f"the server ended at once, with {server.returncode}")
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except urllib.error.HTTPError:
            return  # it answers
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"the server didn't answer within {START_S} s")
