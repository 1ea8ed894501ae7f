"""A process that dies, or whose disk fails, at any moment loses nothing that was acknowledged.

`TRIOLOOP_CRASH_KILLS` says how often a process is killed, and at how many system calls it is made
to fail: a handful here, hundreds by hand. A failure prints the seed.
"""

import importlib.util
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from trioloop.store import list_sessions, read_rows

KILLS = int(os.environ.get("TRIOLOOP_CRASH_KILLS", "4"))
SEED = int(os.environ.get("TRIOLOOP_SEED", str(random.SystemRandom().randrange(10**6))))
CHILD = Path(__file__).with_name("crash_child.py")
SESSIONS = 3


def _child_module() -> ModuleType:
    found = importlib.util.spec_from_file_location("crash_child", CHILD)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


payload = _child_module().payload


def appending(
    path: Path, *arguments: object, before: list[str] | None = None
) -> subprocess.Popen[str]:
    """A child that appends to the store at `path`."""
    command = [sys.executable, str(CHILD), str(path), *map(str, arguments)]
    return subprocess.Popen((before or []) + command, stdout=subprocess.PIPE, text=True)


def acknowledged(lines: list[str], known: dict[str, int]) -> dict[str, int]:
    """The last seq of each session that a child told of, whole lines only."""
    told = dict(known)
    for line in lines:
        session, _, seq = line.rstrip("\n").partition(" ")
        if line.endswith("\n") and seq.isdecimal():
            told[session] = int(seq)
    return told


def check(path: Path, told: dict[str, int]) -> None:
    """Whatever was acknowledged is there, and whatever is there is what was written."""
    for session, seq in told.items():
        rows = read_rows(path, session)
        assert len(rows) > seq, f"{session} lost {seq - len(rows) + 1} events, seed {SEED}"
        assert all(row.payload == payload(session, row.seq) for row in rows), f"seed {SEED}"


def test_a_process_killed_at_any_moment_loses_nothing_acknowledged(tmp_path: Path) -> None:
    dice = random.Random(SEED)
    path = tmp_path / "agents.db"
    told: dict[str, int] = {}
    for _ in range(KILLS):
        with appending(path, SESSIONS) as child:
            assert child.stdout is not None
            lines = [child.stdout.readline()]
            time.sleep(dice.random() * 0.1)  # the moment at which it dies
            child.kill()
            lines += child.stdout.readlines()
        told = acknowledged(lines, told)
        check(path, told)
    assert len(told) == SESSIONS
    assert min(told.values()) > 0


# strace makes one system call on the store's files fail, or kills the process there

STRACE = shutil.which("strace")
CALLS = "pwrite64,fdatasync,fsync,ftruncate"


def may_trace() -> bool:
    """Whether this process may trace a child and inject faults."""
    if STRACE is None:
        return False
    command = [STRACE, "-qq", "-o", os.devnull, "-e", "inject=getpid:retval=7", "true"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


needs_strace = pytest.mark.skipif(not may_trace(), reason="strace may not inject faults here")


def faulty(path: Path, fault: str, when: int) -> list[str]:
    """The command before a child that makes its `when`-th write or sync fail."""
    assert STRACE is not None
    files = [f"{path}{suffix}" for suffix in ("", "-wal", "-shm")]
    watched = [word for file in files for word in ("-P", file)]
    inject = f"inject={CALLS}:{fault}:when={when}"
    return [STRACE, "-f", "-qq", "-o", os.devnull, *watched, "-e", f"trace={CALLS}", "-e", inject]


@needs_strace
@pytest.mark.parametrize("fault", ["signal=KILL", "error=EIO", "error=ENOSPC"])
def test_a_fault_at_any_system_call_loses_nothing_acknowledged(tmp_path: Path, fault: str) -> None:
    dice = random.Random(SEED)
    calls = sorted(dice.sample(range(1, 60), min(max(KILLS // 2, 1), 59)))
    for when in calls:  # those before the 20th or so make the file
        path = tmp_path / f"{when}.db"
        with appending(path, 1, 12, before=faulty(path, fault, when)) as child:
            assert child.stdout is not None
            told = acknowledged(child.stdout.readlines(), {})
        check(path, told)
        with appending(path, 1, 3) as child:
            assert child.stdout is not None
            told = acknowledged(child.stdout.readlines(), told)
        check(path, told)
        assert [one.session for one in list_sessions(path)] == ["s0"], f"seed {SEED}, call {when}"


# A disk of 256 KiB


def may_mount() -> bool:
    """Whether this process may mount a small disk for a child."""
    if shutil.which("unshare") is None:
        return False
    command = ["unshare", "-rm", "sh", "-c", "mount -t tmpfs none /mnt"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


FULL_DISK = """
mount -t tmpfs -o size=256k none "$1"
"$2" "$3" "$1/agents.db" 1 > "$4" 2> "$4.errors"
"$2" -c "
import sys
from trioloop.store import read_rows
for row in read_rows(sys.argv[1], 's0'): sys.stdout.buffer.write(row.payload + b'\\n')
" "$1/agents.db" > "$5"
"""


@pytest.mark.skipif(not may_mount(), reason="a small disk can't be mounted here")
def test_a_full_disk_fails_the_store_and_stays_readable(tmp_path: Path) -> None:
    disk, out, log = tmp_path / "disk", tmp_path / "out", tmp_path / "log"
    disk.mkdir()
    arguments = [disk, sys.executable, CHILD, out, log]
    subprocess.run(
        ["unshare", "-rm", "sh", "-ec", FULL_DISK, "sh", *map(str, arguments)], check=True
    )
    lines = out.read_text().splitlines(keepends=True)
    assert lines[-1] == "failed StoreFailedError\n"
    told = acknowledged(lines, {})
    stored = log.read_bytes().splitlines()
    assert len(stored) > told["s0"] > 0
    assert all(line == payload("s0", seq) for seq, line in enumerate(stored))
