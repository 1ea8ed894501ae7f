"""`strace` before a command: which system calls it makes on its files, and one that goes wrong."""

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

CALLS = "openat,pwrite64,write,fdatasync,fsync,ftruncate,unlink"
WHY_NOT = "strace may not inject faults here"
_CALL = re.compile(rf"^\d+ +({CALLS.replace(',', '|')})\(")


@cache
def may_trace() -> bool:
    """Whether this process may trace a child and inject faults."""
    found = shutil.which("strace")
    if found is None:
        return False
    command = [found, "-qq", "-o", os.devnull, "-e", "inject=getpid:retval=7", "true"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def faulty(files: Sequence[str], log: Path, fault: str, call: str, number: int) -> list[str]:
    """The command before one of whose calls on some files goes wrong.

    Args:
        files: their paths.
        log: where the calls are written; `has_struck` reads it.
        fault: as strace names it, such as `signal=KILL` or `error=EIO`.
        call: the name of the call.
        number: which of the calls of that name in one thread, from 1.
    """
    return [*_traced(files, log), "-e", f"inject={call}:{fault}:when={number}"]


def counting(files: Sequence[str], log: Path) -> list[str]:
    """The command before one whose calls on some files are written to a log."""
    return _traced(files, log)


def has_struck(log: Path) -> bool:
    """Whether the call that was to go wrong has been made."""
    text = log.read_text(errors="replace")
    return "(INJECTED)" in text or "killed by SIGKILL" in text


def counted(log: Path) -> list[str]:
    """The calls in such a log, in order, each as `name:number`."""
    times = Counter[str]()
    found = []
    for match in map(_CALL.match, log.read_text(errors="replace").splitlines()):
        if match is not None:
            times[match[1]] += 1
            found.append(f"{match[1]}:{times[match[1]]}")
    return found


def _traced(files: Sequence[str], log: Path) -> list[str]:
    watched = [word for file in files for word in ("-P", file)]
    return ["strace", "-f", "-q", "-o", str(log), *watched, "-e", f"trace={CALLS}"]
