"""A disk that hangs for good in a commit: leaving is bounded, and names what is lost (P18)."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.programs.hanging_disk import LIMITS
from trioloop import SqliteStore, open_runtime, read_session
from trioloop.testing import ScriptedModel, Text

PROGRAM = Path(__file__).with_name("programs") / "hanging_disk.py"
SLACK_S = 2.0  # starting threads and tasks on a busy machine; the limits are what is promised
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that the application leaves behind."""
    return tmp_path_factory.mktemp("hanging") / "agents.db"


@pytest.fixture(scope="module")
def told(store: Path) -> dict[str, Any]:
    """What the application told of how it got out; the process has ended by itself."""
    began = time.monotonic()
    run = subprocess.run(
        [sys.executable, str(PROGRAM), str(store)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    lines: dict[str, Any] = json.loads(run.stdout)
    return {**lines, "process_s": time.monotonic() - began}


def test_leaving_takes_no_longer_than_its_limits(told: dict[str, Any]) -> None:
    assert told["took_s"] < LIMITS.grace_s + LIMITS.post_s + LIMITS.close_s + SLACK_S
    assert told["process_s"] < PATIENCE_S


def test_each_session_is_named_with_the_events_that_arent_durable(told: dict[str, Any]) -> None:
    assert set(told["lost"]) == {"resting", "busy"}
    for name, (first, _) in told["lost"].items():
        line = f"session {name!r}: events {first} to {told['ends'][name]} aren't durable: "
        assert [one for one in told["told"] if one.startswith(line)], told["told"]
    assert any(f"took longer than {LIMITS.close_s:g} s" in line for line in told["told"])


async def test_what_was_durable_is_there_and_goes_on(told: dict[str, Any], store: Path) -> None:
    for name, (first, _) in told["lost"].items():
        assert len(read_session(store, name)) == first
    model = ScriptedModel([Text("again")])
    async with open_runtime(model=model, store=SqliteStore(store)) as runtime:
        agent = await runtime.resume_agent("busy")
        assert (await agent.ask("two")).text == "again"
