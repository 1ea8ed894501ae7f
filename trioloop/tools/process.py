"""Runs a command so that nothing of it outlives the call.

Each command leads a session, and so a process group, of its own. Whenever the call ends, by itself,
by its deadline or by a cancel, what is left of the group is told to end, and after `grace_s` made
to. A process that leaves the group on purpose, by a session of its own, isn't found again.

A grandchild may hold the pipe for as long as it lives, so the pipe is left soon after the command
itself has exited.
"""

import glob
import logging
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

import attrs
import trio

from trioloop.errors import InvalidInputError
from trioloop.tools.excerpt import HeadAndTail

_LOGGER = logging.getLogger("trioloop.tools")

GRACE_S: Final = 5.0
OUTPUT_BYTES_MAX: Final = 48 * 1024
_LINGER_S = 0.2  # for output that was written just before the command exited
_REAP_S = 2.0  # after a KILL; only a process stuck in the kernel takes longer
_LOOK_S = 0.01  # first pause between looks at a group that was told to end; nothing reports that
_LOOK_LEAST_OFTEN_S = 0.1
_READ_BYTES = 64 * 1024


@attrs.frozen(kw_only=True)
class ProcessResult:
    """How a command ended.

    Attributes:
        exit_code: its exit status; negative: the signal that ended it; None: it had to be killed
            and is stuck in the kernel.
        output: standard output and error as they came, head and tail, as text.
        output_bytes: how much there was.
        timed_out: it was ended by its deadline.
    """

    exit_code: int | None
    output: str
    output_bytes: int
    timed_out: bool = False


async def run_process(
    command: str | Sequence[str],
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout_s: float | None = None,
    grace_s: float = GRACE_S,
    output_bytes_max: int = OUTPUT_BYTES_MAX,
    side_file: str | os.PathLike[str] | None = None,
    pass_fds: Sequence[int] = (),
) -> ProcessResult:
    """Run a command to its end, whatever it does. A checkpoint.

    Cancelled, it ends the command's group within about `grace_s`, and then lets the cancel go on.

    Args:
        command: a line for `/bin/sh`, or a program with its arguments.
        cwd: the folder that it runs in.
        env: its whole environment; None: that of this process.
        stdin: what it can read.
        timeout_s: seconds that it may take; then it is ended, and `timed_out` says so.
        grace_s: seconds between TERM and KILL.
        output_bytes_max: how much output is kept, head and tail.
        side_file: a file for the whole output, written only where that is longer.
        pass_fds: descriptors of this process that it has, too.

    Raises:
        InvalidInputError: the command is empty, or holds a NUL character.
        OSError: the program or the folder can't be used, or the side file can't be written.
    """
    words = _words(command)
    output = _Output(output_bytes_max, side_file)
    process = await trio.lowlevel.open_process(
        words,
        stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        cwd=cwd,
        env=env,
        pass_fds=pass_fds,
    )
    timed_out = False
    try:
        with trio.move_on_after(float("inf") if timeout_s is None else timeout_s) as deadline:
            await _until_exit(process, output, stdin)
        timed_out = deadline.cancelled_caught
    finally:
        await _end_group(process, grace_s)  # noqa: ASYNC102 - it shields itself, and is bounded
    if output.failure is not None:
        raise output.failure
    return ProcessResult(
        exit_code=process.returncode,
        output=output.kept.text(),
        output_bytes=output.kept.total,
        timed_out=timed_out,
    )


def _words(command: str | Sequence[str]) -> list[str]:
    words = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
    if not words or not words[-1].strip():
        raise InvalidInputError(f"the command {command!r} is empty: give a program to run")
    if any("\0" in word for word in words):
        raise InvalidInputError(f"the command {command!r} holds a NUL character: leave it out")
    return words


class _Output:
    """What a command wrote: head and tail in memory, and perhaps all of it in a side file."""

    def __init__(self, bytes_max: int, side_file: str | os.PathLike[str] | None) -> None:
        self.kept = HeadAndTail(bytes_max)
        self._side_path = side_file
        self.failure: OSError | None = None
        self._before = bytearray()  # all of it, until it is known whether a side file is needed

    async def read(self, pipe: trio.abc.ReceiveStream) -> None:
        """Read to the end of the pipe, or until cancelled."""
        while data := await pipe.receive_some(_READ_BYTES):
            self.kept.feed(data)
            if self._side_path is None:
                continue
            self._before += data
            if not self.kept.is_whole:
                await self._read_aside(self._side_path, pipe)
                return

    async def _read_aside(self, path: str | os.PathLike[str], pipe: trio.abc.ReceiveStream) -> None:
        try:
            async with await trio.open_file(path, "wb") as side:
                await side.write(self._before)
                while data := await pipe.receive_some(_READ_BYTES):
                    self.kept.feed(data)
                    await side.write(data)
        except OSError as error:  # the command goes on; its caller is told when it has ended
            self.failure = error
            while data := await pipe.receive_some(_READ_BYTES):
                self.kept.feed(data)


async def _until_exit(process: trio.Process, output: _Output, stdin: bytes) -> None:
    assert process.stdout is not None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(output.read, process.stdout)
        if stdin:
            nursery.start_soon(_write, process, stdin)
        await process.wait()
        nursery.cancel_scope.deadline = trio.current_time() + _LINGER_S


async def _write(process: trio.Process, stdin: bytes) -> None:
    assert process.stdin is not None
    with suppress(trio.BrokenResourceError):  # it needn't read what it is given
        await process.stdin.send_all(stdin)
    await process.stdin.aclose()


async def _end_group(process: trio.Process, grace_s: float) -> None:
    """End what is left of a command's group, and close its pipes.

    Shielded, as what was started must be ended: bounded by `grace_s` and `_REAP_S`.
    """
    with trio.CancelScope(shield=True):
        if _signal_group(process, signal.SIGTERM):
            with trio.move_on_after(grace_s):
                await _until_gone(process)
            if _signal_group(process, signal.SIGKILL):
                with trio.move_on_after(_REAP_S):
                    await _until_gone(process)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                await pipe.aclose()
    if process.returncode is None:
        _LOGGER.error("process %d was killed and is stuck in the kernel", process.pid)


def _signal_group(process: trio.Process, number: signal.Signals) -> bool:
    """Signal a group; whether there was anything left of it.

    The group's number can't be taken by others while its leader isn't reaped or a member lives.
    """
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return process.returncode is None
    except PermissionError:  # a member that changed its user, or on some systems a zombie
        return process.returncode is None
    return True


async def _until_gone(process: trio.Process) -> None:
    """Wait until nothing of a group runs; zombies that others have to reap don't count."""
    await process.wait()
    pause = _LOOK_S
    while _runs(process.pid):
        await trio.sleep(pause)
        pause = min(2 * pause, _LOOK_LEAST_OFTEN_S)


def _runs(group: int) -> bool:
    """Whether any member of a group still runs."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    members = [state for state, of in _processes() if of == group]
    return not members or any(state not in ("Z", "X") for state in members)


def _processes() -> Iterator[tuple[str, int]]:
    """State and group of every process, where the system lists them in `/proc`."""
    for entry in glob.iglob("/proc/[0-9]*/stat"):
        with suppress(OSError), open(entry, encoding="utf-8", errors="replace") as stat:
            state, _parent, group, *_ = stat.read().rpartition(")")[2].split()
            yield state, int(group)
