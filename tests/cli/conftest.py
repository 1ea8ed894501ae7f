"""Running the command line as people do: in a process of its own, at a pipe or at a terminal."""

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import attrs
import pytest

COMMAND = [sys.executable, "-m", "trioloop"]
PATIENCE_S = 60


def environment(folder: Path, **extra: str) -> dict[str, str]:
    """An environment without keys, and without what belongs to whoever runs the tests."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    root = str(Path(__file__).resolve().parent.parent.parent)
    return kept | {"HOME": str(folder), "PYTHONPATH": root, "PYTHONUTF8": "1"} | extra


@attrs.frozen
class Done:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """What it complained of, checked to be one line and no traceback."""
        assert "Traceback" not in self.err
        lines = [line for line in self.err.splitlines() if line.startswith("trioloop: ")]
        assert len(lines) == 1, self.err
        return lines[0].removeprefix("trioloop: ")


Command = Callable[..., Done]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Runs `trioloop` with some arguments and waits for its end."""

    def run(*arguments: str | Path, input: str = "", **extra: str) -> Done:
        done = subprocess.run(
            [*COMMAND, *map(str, arguments)],
            cwd=tmp_path,
            env=environment(tmp_path, **extra),
            input=input,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def command_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """The same without a process of its own, which takes a hundredth of the time."""
    from trioloop.cli.entry import run

    def run_here(*arguments: str | Path, **extra: str) -> Done:
        with monkeypatch.context() as patch:
            patch.chdir(tmp_path)
            for name in [name for name in os.environ if name.endswith(("_API_KEY", "_BASE_URL"))]:
                patch.delenv(name)
            for name, value in extra.items():
                patch.setenv(name, value)
            code = run([str(argument) for argument in arguments])
        told = capsys.readouterr()
        return Done(code, told.out, told.err)

    return run_here


@attrs.define(eq=False)
class Running:
    """A command that runs in a process group of its own."""

    process: subprocess.Popen[str]

    def signal_group(self, number: int) -> None:
        """What a terminal does at Ctrl-C."""
        os.killpg(self.process.pid, number)

    def wait_for(self, text: str) -> None:
        """Wait until standard error has said something."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if text in line:
                return
        pytest.fail(f"{text!r} was never said")

    def end(self) -> Done:
        """How it ended."""
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return Done(self.process.returncode, out, err)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Starts `trioloop` in a process group of its own; what still runs afterwards is killed."""
    processes: list[subprocess.Popen[str]] = []

    def start(*arguments: str | Path) -> Running:
        process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            cwd=tmp_path,
            env=environment(tmp_path),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
            start_new_session=True,
        )
        processes.append(process)
        return Running(process)

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


class Terminal:
    """A command at a pseudo-terminal, 80 columns wide unless `COLUMNS` tells otherwise.

    It is its session's terminal, so Ctrl-C works.
    """

    def __init__(self, arguments: Sequence[str], folder: Path, **extra: str) -> None:
        self.seen = ""
        self._passed = 0  # how much of it was waited for
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execve(
                sys.executable, [*COMMAND, *arguments], environment(folder, TERM="xterm", **extra)
            )
        termios.tcsetwinsize(self._master, (24, 80))

    def wait_for(self, text: str) -> None:
        """Read until the screen shows a text, behind the one that was waited for before."""
        deadline = time.monotonic() + PATIENCE_S
        while (place := self.seen.find(text, self._passed)) < 0:
            if time.monotonic() > deadline or not self._read():
                pytest.fail(f"{text!r} was never shown:\n{self.seen!r}")
        self._passed = place + len(text)

    def type(self, text: str) -> None:
        """Type something."""
        os.write(self._master, text.encode())

    def end(self) -> int:
        """Read on until it ends, and return its exit code."""
        while self._read():
            pass
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return os.waitstatus_to_exitcode(status)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], PATIENCE_S)
        if not ready:
            return False
        try:
            data = os.read(self._master, 65_536)
        except OSError:  # how Linux tells that nobody has the other side open
            return False
        self.seen += data.decode("utf-8", "replace")
        return bool(data)

    def close(self) -> None:
        """Kill it if it still runs."""
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._master)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """Runs `trioloop` at a terminal."""
    opened: list[Terminal] = []

    def open_one(*arguments: str, **extra: str) -> Terminal:
        opened.append(Terminal(arguments, tmp_path, **extra))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


@pytest.fixture
def tools_file(tmp_path: Path) -> Path:
    """A file with tools of all manners: polite, failing, hostile."""
    path = tmp_path / "my_tools.py"
    path.write_text(
        '''
from trioloop import ToolError, tool


@tool(effects="read-only")
def greeting(name: str) -> str:
    """Greeting for a person."""
    return f"Hello, {name}!"


@tool
async def failing(why: str) -> str:
    """Failing for a reason."""
    raise ToolError(why)


@tool(effects="read-only")
def hostile() -> str:
    """Hostile text for terminals."""
    return "\\x1b]0;owned\\x07\\x1b[2J \\u202e back\\x9b31m"
'''
    )
    return path
