"""Autobahn's fuzzing client against the endpoint's connection code, its groups 1 to 10.

The cases are Autobahn's own files; kosoku runs them where its own runner, which needs Python 2,
can't be had. What each group is about stands in `docs/wire-protocol.md` together with the result.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.control.attacking import ROOT

PATIENCE_S = 300
AT_ONCE = 4

# Broken frames behind a good message in the same packet: the connection may fail before that
# message is answered, as RFC 6455 allows (7.1.7).
FAILS_FIRST = {"3.2", "3.3", "3.4", "4.1.3", "4.1.4", "4.1.5", "4.2.3", "4.2.4", "4.2.5", "5.15"}
# What the standard leaves open: a close with data behind it, and close codes it doesn't define.
LEFT_OPEN = {"7.1.6", "7.13.1", "7.13.2"}

Report = dict[str, dict[str, Any]]


@contextmanager
def echoing() -> Iterator[int]:
    """The port of a process that says back what it hears; it must outlive all that is tried."""
    program = [sys.executable, "-m", "tests.control.programs.echo"]
    process = subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()


def tried(folder: Path, *groups: str) -> Report:
    """What came of each case of these groups."""
    kosoku = shutil.which("kosoku", path=str(Path(sys.executable).parent))
    if kosoku is None:
        pytest.skip("Autobahn's cases need the package kosoku")
    chosen = [word for group in groups for word in ("--include", f"{group}.*")]
    with echoing() as port:
        address = f"127.0.0.1:{port}"
        asked = [kosoku, address, *chosen, "--parallelism", str(AT_ONCE), "--outdir", str(folder)]
        done = subprocess.run(
            asked, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    assert done.returncode == 0, done.stderr
    report: dict[str, Report] = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    return report[address]


def cases_that(report: Report, name: str, value: str) -> set[str]:
    """The cases whose verdict is this one."""
    return {case for case, verdict in report.items() if verdict[name] == value}


def test_framing_pings_reserved_bits_opcodes_fragments_utf8_and_closing(tmp_path: Path) -> None:
    report = tried(tmp_path, "1", "2", "3", "4", "5", "6", "7", "10")
    assert len(report) == 247
    assert cases_that(report, "behavior", "NON-STRICT") <= FAILS_FIRST
    assert cases_that(report, "behavior", "INFORMATIONAL") <= LEFT_OPEN
    assert cases_that(report, "behavior", "OK") >= report.keys() - FAILS_FIRST - LEFT_OPEN
    assert cases_that(report, "behaviorClose", "OK") >= report.keys() - LEFT_OPEN


def test_messages_of_many_mebibytes_and_many_frames(tmp_path: Path) -> None:
    report = tried(tmp_path, "9")
    assert len(report) == 54
    assert cases_that(report, "behavior", "OK") == report.keys()
    assert cases_that(report, "behaviorClose", "OK") == report.keys()
