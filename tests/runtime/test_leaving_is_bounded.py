"""A host that cancels its own nursery gets back control in bounded time, its log closed (P18)."""

import json
import os
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("programs") / "host_cancel.py"
PROCESSES = 5
CANCELS = int(os.environ.get("TRIOLOOP_HOST_CANCELS", "50"))
SLACK_S = 2.0  # starting threads and tasks on a busy machine; the limits are what is promised


def test_a_cancelled_host_is_back_within_the_named_limits(tmp_path: Path) -> None:
    runs = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(tmp_path), str(seed), str(CANCELS // PROCESSES)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in range(PROCESSES)
    ]
    outputs = [run.communicate() for run in runs]
    for run, (_, errors) in zip(runs, outputs, strict=True):
        assert run.returncode == 0, errors
    lines = [json.loads(line) for out, _ in outputs for line in out.splitlines()]
    assert len(lines) == CANCELS // PROCESSES * PROCESSES
    slow = [line for line in lines if line["took_s"] > line["most_s"] + SLACK_S]
    assert not slow, slow
    assert all(line.get("open_turns", 0) == 0 for line in lines), lines
    reasons = {tuple(line["ended"]) for line in lines if line["ended"]}
    assert reasons == {("aborted", "host-cancelled")}, reasons
    assert any(line["ended"] for line in lines)
