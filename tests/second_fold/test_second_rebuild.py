"""What each model received is rebuilt, byte for byte, by who has only the exported log (G2)."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.second_fold.recording import Run, recorded
from tests.second_fold.runs import RUNS
from tests.second_fold.sweep import swept
from trioloop.codec import encode_event
from trioloop.events import Event

ROOT = Path(__file__).parents[2]


def rebuilt_elsewhere(logs: Iterable[list[Event]]) -> dict[str, list[bytes]]:
    """What another process, which has nothing of trioloop, makes of exported logs, by session."""
    lines = [encode_event(event) + b"\n" for log in logs for event in log]
    done = subprocess.run(
        [sys.executable, "-m", "tests.second_fold.second_rebuild"],
        input=b"".join(lines),
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    requests: dict[str, list[bytes]] = {}
    for line in done.stdout.split(b"\n")[:-1]:
        session, _, request = line.partition(b" ")
        requests.setdefault(session.decode(), []).append(request)
    return requests


@pytest.mark.parametrize("run", RUNS)
def test_of_real_runs(run: Run) -> None:
    recording = recorded(run)
    assert rebuilt_elsewhere(recording.logs.values()) == recording.received


def test_of_a_run_that_is_cancelled_at_every_point() -> None:
    assert rebuilt_elsewhere(swept().logs) == {"swept": swept().received}


@pytest.mark.parametrize("run", RUNS)
def test_a_request_reads_later_as_it_read_when_it_was_received(run: Run) -> None:
    assert recorded(run).changed_later() == []
