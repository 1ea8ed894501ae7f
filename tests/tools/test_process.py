"""Commands and what they leave behind: fault 9. Real processes, so the real clock."""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from trioloop.errors import InvalidInputError
from trioloop.tools.process import run_process

PATIENCE_S = 20  # far more than any of these takes


def runs(pid: int) -> bool:
    """Whether a process runs; a zombie that its adoptive parent hasn't reaped doesn't."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def pids(output: str) -> list[int]:
    """The numbers in an output."""
    return [int(word) for word in output.split() if word.isdigit()]


async def told(path: Path) -> list[int]:
    """The process numbers in a file that a command writes as it starts."""
    file = trio.Path(path)
    while not (await file.exists() and (await file.read_text()).endswith("\n")):  # noqa: ASYNC110
        await trio.sleep(0.005)  # nothing reports that another process has written a file
    return pids(await file.read_text())


async def test_output_and_exit_code_are_told() -> None:
    with trio.fail_after(PATIENCE_S):
        result = await run_process("echo out; echo err >&2; exit 3")
    assert (result.exit_code, result.output, result.output_bytes) == (3, "out\nerr\n", 8)
    assert not result.timed_out


async def test_program_is_run_without_a_shell() -> None:
    with trio.fail_after(PATIENCE_S):
        result = await run_process(["printf", "%s", "$HOME; *"])
    assert result.output == "$HOME; *"


async def test_folder_environment_and_input_are_given(tmp_path: Path) -> None:
    with trio.fail_after(PATIENCE_S):
        result = await run_process(
            "pwd; echo $COLOR; cat", cwd=tmp_path, env={"COLOR": "red"}, stdin=b"typed"
        )
    assert result.output == f"{tmp_path}\nred\ntyped"


async def test_input_that_nobody_reads_harms_nothing() -> None:
    with trio.fail_after(PATIENCE_S):
        result = await run_process("exit 0", stdin=b"x" * 10_000_000)
    assert result.exit_code == 0


async def test_command_cannot_wait_for_input() -> None:
    with trio.fail_after(PATIENCE_S):
        assert (await run_process("cat")).output == ""


async def test_what_it_leaves_running_is_ended() -> None:
    with trio.fail_after(PATIENCE_S):
        result = await run_process("sleep 1000 & echo $!; (sleep 1000 & echo $!)")
    assert result.exit_code == 0
    assert len(pids(result.output)) == 2
    assert not any(map(runs, pids(result.output)))


async def test_what_ignores_being_told_is_killed() -> None:
    line = "(trap '' TERM; sleep 1000 & echo $!; while :; do sleep 1000; done) & echo $!"
    with trio.fail_after(PATIENCE_S):
        result = await run_process(line, grace_s=0.1)
    assert len(pids(result.output)) == 2
    assert not any(map(runs, pids(result.output)))


async def test_pipe_held_by_another_session_does_not_hold_the_call(tmp_path: Path) -> None:
    line = f"setsid sh -c 'echo $$ >{tmp_path}/pid; exec sleep 1000' & echo started"
    with trio.fail_after(PATIENCE_S):
        result = await run_process(line)
        assert result.output == "started\n"
        for pid in await told(tmp_path / "pid"):
            os.kill(pid, signal.SIGKILL)


async def test_timeout_ends_the_group_and_keeps_the_output() -> None:
    with trio.fail_after(PATIENCE_S):
        result = await run_process("sleep 1000 & echo $! $$; wait", timeout_s=1.5, grace_s=1)
    assert result.timed_out
    assert result.exit_code == -signal.SIGTERM
    assert len(pids(result.output)) == 2
    assert not any(map(runs, pids(result.output)))


async def test_command_that_ignores_being_told_is_killed() -> None:
    with trio.fail_after(PATIENCE_S):
        result = await run_process(
            "trap '' TERM; echo ready; sleep 1000; sleep 1000", timeout_s=1, grace_s=0.1
        )
    assert (result.exit_code, result.output) == (-signal.SIGKILL, "ready\n")


async def test_command_may_clean_up_when_told(tmp_path: Path) -> None:
    line = f"trap 'echo bye >{tmp_path}/bye; exit 0' TERM; sleep 1000 & wait"
    with trio.fail_after(PATIENCE_S):
        result = await run_process(line, timeout_s=1)
    assert result.exit_code == 0
    assert (tmp_path / "bye").read_text() == "bye\n"


async def test_cancel_ends_everything_and_goes_on(tmp_path: Path) -> None:
    line = f"sleep 1000 & echo $$ $! >{tmp_path}/pids; trap '' TERM; sleep 1000 | sleep 1000"
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: run_process(line, grace_s=0.1))
            found = await told(tmp_path / "pids")
            assert all(map(runs, found))
            nursery.cancel_scope.cancel()
    assert nursery.cancel_scope.cancelled_caught
    assert not any(map(runs, found))


@pytest.mark.parametrize("after_s", [0, 0.001, 0.002, 0.004, 0.008, 0.016, 0.05])
async def test_cancel_at_any_time_leaves_nothing(after_s: float) -> None:
    mark = f"1000.{os.getpid()}{int(after_s * 1_000)}"
    with trio.fail_after(PATIENCE_S), trio.move_on_after(after_s):
        await run_process(f"sleep {mark} & sleep {mark}; sleep {mark}", grace_s=1)
    assert not [pid for pid in running_with(mark) if runs(pid)]


def running_with(mark: str) -> list[int]:
    """Processes with a word in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and mark.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


async def test_no_zombie_and_no_descriptor_is_left() -> None:
    descriptors = len(os.listdir("/proc/self/fd"))
    leaders: list[int] = []

    async def one(line: str) -> None:
        with trio.move_on_after(3):
            leaders.extend(pids((await run_process(line, stdin=b"x")).output))

    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            for line in ["echo $$", "echo $$; sleep 1000 &", "sleep 1000", "exit 1"] * 3:
                nursery.start_soon(one, line)
    assert len(leaders) == 6
    assert not {str(pid) for pid in leaders} & set(os.listdir("/proc"))
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 1  # trio's own for waiting


async def test_output_is_bounded_and_whole_in_the_side_file(tmp_path: Path) -> None:
    side = tmp_path / "whole"
    with trio.fail_after(PATIENCE_S):
        result = await run_process(
            "echo first; yes | head -c 1000000; echo last", output_bytes_max=1_000, side_file=side
        )
    assert result.output_bytes == side.stat().st_size == 1_000_011
    assert side.read_bytes().startswith(b"first\ny\n")
    assert side.read_bytes().endswith(b"y\nlast\n")
    assert result.output.startswith("first\ny\n")
    assert result.output.endswith("y\nlast\n")
    assert "bytes left out" in result.output
    assert len(result.output.encode()) <= 1_000


async def test_short_output_needs_no_side_file(tmp_path: Path) -> None:
    with trio.fail_after(PATIENCE_S):
        await run_process("echo short", side_file=tmp_path / "whole")
    assert not (tmp_path / "whole").exists()


async def test_side_file_that_cannot_be_written_is_told_at_the_end(tmp_path: Path) -> None:
    line = f"yes | head -c 100000; touch {tmp_path}/ended"
    with trio.fail_after(PATIENCE_S), pytest.raises(FileNotFoundError):
        await run_process(line, output_bytes_max=300, side_file=tmp_path / "none" / "whole")
    assert (tmp_path / "ended").exists()


async def test_endless_output_is_read_in_bounded_memory() -> None:
    with trio.fail_after(PATIENCE_S):
        result = await run_process("yes", timeout_s=1, output_bytes_max=1_000)
    assert result.timed_out
    assert result.output_bytes > 1_000
    assert len(result.output) <= 1_000


async def test_bytes_that_are_no_text_are_shown() -> None:
    with trio.fail_after(PATIENCE_S):
        result = await run_process([sys.executable, "-c", "import os; os.write(1, b'a\\xff\\xc3')"])
    assert result.output == "a\\xff\\xc3"


@pytest.mark.parametrize("command", ["", "  ", [], "echo a\0b", ["echo", "a\0b"], [""]])
async def test_command_that_is_none_is_refused(command: str | list[str]) -> None:
    with pytest.raises(InvalidInputError, match="command"):
        await run_process(command)


@pytest.mark.parametrize(
    ("command", "folder"), [(["/no/such/program"], "."), (["true"], "/no/such/folder")]
)
async def test_program_or_folder_that_is_missing_is_told(command: list[str], folder: str) -> None:
    with pytest.raises(FileNotFoundError):
        await run_process(command, cwd=folder)


async def test_other_tasks_go_on_meanwhile() -> None:
    ticks = 0

    async def tick(stop: Callable[[], bool]) -> None:
        nonlocal ticks
        while not stop():
            await trio.sleep(0.001)
            ticks += 1

    ended = False
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tick, lambda: ended)
            await run_process("yes | head -c 20000000; sleep 0.1", output_bytes_max=1_000)
            ended = True
    assert ticks > 5
