"""`trioloop serve`: a process that is served, as another terminal finds it."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cli.conftest import COMMAND, environment

TOOLS = '''
from trioloop import tool


@tool
async def send_mail(to: str) -> str:
    """Send a mail to somebody.

    Args:
        to: whom.
    """
    return f"sent to {to}"
'''


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[str]:
    """The address of a served runtime, which is stopped as people stop it."""
    (folder / "tools.py").write_text(TOOLS)
    command = [*COMMAND, "serve", "--tools", "tools.py", "--model", "demonstration", *options]
    with subprocess.Popen(
        command, cwd=folder, env=environment(folder), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130, "as of a command that Ctrl-C ends"


def test_it_asks_before_changes_and_answers_may_hold_and_be_taken_back(
    command: Any, tmp_path: Path
) -> None:
    ask = "send_mail to ada\n"
    with serving(tmp_path, "--ask") as address:
        done = command("attach", address, input=f"{ask}y session\n{ask}/forget\n{ask}n\n")
    assert done.err.count('May send_mail run with {"to":"ada"}? [y/n]') == 2
    assert done.out.count("gave sent to ada") == 2
    assert "it asks again" in done.err
    assert "failed: This call was not run" in done.out
