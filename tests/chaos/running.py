"""`trioloop run` as a process of its own, made to die or to fail, and what it told before."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

SESSION = "ledger"
NOTHING = "nothing"
PROMPT = 'Read the ledger, then write "x 7" into the ledger'
ROOT = Path(__file__).resolve().parent.parent.parent
_TOOLS = Path(__file__).with_name("ledger_tools.py")
_PATIENCE_S = 120
_TURN_S = 0.7  # about how long the turn takes once its first event is in the log


@attrs.frozen
class Place:
    """The files of one trial.

    Attributes:
        folder: of its own.
        disk: where the store is; None: in the folder, too.
    """

    folder: Path
    disk: Path | None = None

    @property
    def store(self) -> Path:
        """The store's file."""
        return (self.disk or self.folder) / "agents.db"

    @property
    def ledger(self) -> Path:
        """What the tool writes."""
        return self.folder / "ledger.txt"

    @property
    def files(self) -> list[str]:
        """All that `trioloop run` writes."""
        sides = ("", "-wal", "-shm", ".lock")
        return [*(f"{self.store}{side}" for side in sides), str(self.ledger)]

    def ledger_keys(self) -> list[str]:
        """The key of each line of the ledger."""
        if not self.ledger.exists():
            return []
        return [line.split(" ")[0] for line in self.ledger.read_text().splitlines() if " " in line]


@attrs.frozen
class Told:
    """What a process told before its end.

    Attributes:
        lines: whole lines, in order.
        code: its exit code; negative: the signal that ended it.
        errors: its standard error.
    """

    lines: tuple[str, ...]
    code: int
    errors: str = ""

    @property
    def appended(self) -> dict[int, str]:
        """The types of the events that were in its log, by seq."""
        found = [line.split(" ") for line in self.lines if line.startswith("appended ")]
        return {int(seq): kind for _, seq, kind in found}

    @property
    def last_appended(self) -> str:
        """The last event that was in its log."""
        seq = max(self.appended, default=-1)
        return f"{seq} {self.appended[seq]}" if seq >= 0 else NOTHING

    @property
    def acknowledged(self) -> dict[int, int]:
        """The CRCs of the events that it knew to be durable, by seq."""
        found = [line.split(" ") for line in self.lines if line.startswith("durable ")]
        return {int(seq): int(crc) for _, seq, crc in found}

    @property
    def effects_after_failure(self) -> list[str]:
        """The effects that began after the store had failed."""
        if "failed" not in self.lines:
            return []
        later = self.lines[self.lines.index("failed") :]
        return [line for line in later if line.startswith("effect")]


@attrs.define
class Child:
    """A `trioloop run` under way."""

    process: subprocess.Popen[str]
    _pipe: int
    _text: str = ""

    def wait_for(self, fact: str) -> None:
        """Read until it has told a fact, or has ended."""
        while fact not in self._text and self._read():
            pass

    def kill(self) -> None:
        """Kill it."""
        self.process.kill()

    def end(self) -> Told:
        """Wait for its end."""
        while self._read():
            pass
        os.close(self._pipe)
        _, errors = self.process.communicate(timeout=_PATIENCE_S)
        whole = self._text.rpartition("\n")[0]
        return Told(tuple(whole.splitlines()), self.process.returncode, errors)

    def _read(self) -> bool:
        data = os.read(self._pipe, 65_536)
        self._text += data.decode()
        return bool(data)


def start(
    place: Place,
    *,
    at: str = "",
    before: Sequence[str] = (),
    prompt: str = PROMPT,
    extra: Mapping[str, str] | None = None,
) -> Child:
    """Start `trioloop run` on a place's store.

    Args:
        place: where.
        at: the beginning of the fact at which it sends itself a signal; "": none.
        before: a command to run it under, such as strace.
        prompt: what it is asked.
        extra: further settings of `ledger_tools`.
    """
    reading, writing = os.pipe()
    environment = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    environment |= {"HOME": str(place.folder), "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    environment |= {"CHAOS_PIPE": str(writing), "CHAOS_LEDGER": str(place.ledger), "CHAOS_AT": at}
    environment |= extra or {}
    command = [*before, sys.executable, "-B", "-m", "trioloop", "run", prompt]
    command += ["--model", "demonstration", "--tools", str(_TOOLS), "--system", "Be brief."]
    command += ["--store", str(place.store), "--session", SESSION]
    process = subprocess.Popen(
        command,
        env=environment,
        pass_fds=[writing],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writing)
    return Child(process, reading)


def run(place: Place, **how: object) -> Told:
    """Run it to its end, however it ends; arguments are those of `start`."""
    return start(place, **how).end()  # type: ignore[arg-type]


def run_killed_at_random(place: Place, seed: int) -> Told:
    """Kill it at a moment that a seed decides, counted from its first event."""
    child = start(place)
    child.wait_for("appended 0")
    time.sleep(random.Random(seed).random() * _TURN_S)  # the moment at which it dies
    child.kill()
    return child.end()
