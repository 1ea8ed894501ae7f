"""Each example runs as it stands, without a key, and does what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def run_example(name: str, *arguments: str) -> str:
    """The output of an example, run as its readers run it."""
    done = subprocess.run(
        [sys.executable, "-W", "error", f"examples/{name}", *arguments],
        cwd=ROOT,
        env={"PATH": os.defpath, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    return done.stdout


def test_embed_runs_two_agents_beside_the_application_own_work() -> None:
    told = run_example("embed.py")
    assert 'temperature(city="Oslo") gave 9.0 degrees Celsius' in told
    assert 'temperature(city="Rome") gave 27.0 degrees Celsius' in told
    assert 'temperature(city="Paris") gave 21.5 degrees Celsius' in told
    assert "south: asking the station in Rome" in told
    assert "(tick)" in told
    assert "deadline" not in told


def test_write_files_writes_and_goes_on_with_its_session(tmp_path: Path) -> None:
    told = run_example("write_files.py", str(tmp_path))
    assert (tmp_path / "todo.txt").read_text() == "buy tea"
    assert (tmp_path / "calls.txt").read_text() == "call Ada"
    assert 'read_file(name="todo.txt") gave buy tea' in told
    assert "they are a valid log" in told


def test_programs_makes_many_calls_in_one_answer() -> None:
    told = run_example("programs.py")
    assert "invoice 6 is confidential" in told
    assert "2400" in told
    assert "12 calls in 2 requests, 2 of them denied" in told
    assert "they overlapped" in told


def test_prune_results_reads_a_book_that_is_longer_than_its_window() -> None:
    told = run_example("prune_results.py")
    assert "12 pages read" in told
    assert all(int(used) <= 2_000 for used in re.findall(r"(\d+) of 2000 tokens used", told))
    assert "12 whole results are in the log, 11 of them also cut" in told


def test_every_example_has_a_test() -> None:
    tested = Path(__file__).read_text()
    examples = [path.name for path in (ROOT / "examples").glob("*.py")]
    assert [name for name in examples if f'"{name}"' not in tested] == []


def test_plan_first_acts_only_once_its_plan_is_approved() -> None:
    told = run_example("plan_first.py")
    assert "'throw everything away' is careless" in told
    assert re.findall(r"event \d+: (\S+)", told) == [
        *("planning", "TOOL_DENIED", "TOOL_DENIED", "fine", "acting", "fine")
    ]
