"""`trioloop rebuild`, `export` and `import`: requests and logs as JSON.

What goes to a file or a pipe is exact, to the byte. At a terminal, characters that would steer it
are shown as JSON escapes.
"""

import sys
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import msgspec
from rich.console import Console

from trioloop.cli.exits import OK, ExitCode
from trioloop.cli.inspecting import check_sessions
from trioloop.cli.json_lines import harmless
from trioloop.cli.pipes import write
from trioloop.cli.readable import read_to_attempt
from trioloop.codec import canonical
from trioloop.errors import DamagedSessionError
from trioloop.log.rebuild import rebuild_request
from trioloop.store.transfer import export_session, import_session

_LINES_AT_ONCE = 256


def rebuild(file: Path, name: str, seq: int, *, pretty: bool) -> ExitCode:
    """Print the request of an attempt as canonical JSON."""
    events = read_to_attempt(file, name, seq)
    request = canonical(rebuild_request(events, seq))
    _print_json([(msgspec.json.format(request, indent=2) if pretty else request) + b"\n"])
    return OK


def export(file: Path, name: str) -> ExitCode:
    """Print a session as JSON Lines; of a damaged one, what stands before the damage."""
    try:
        _print_json(export_session(file, name))
    except DamagedSessionError as error:
        _print_json(export_session(file, name, before=error.seq))
        raise
    return OK


def import_lines(file: Path, name: str | None, lines: BinaryIO, out: Console) -> ExitCode:
    """Add a session from JSON Lines, then check what was written."""
    session = import_session(file, lines, name=name)
    return check_sessions(file, session, out)


def _print_json(lines: Iterable[bytes]) -> None:
    if sys.stdout.isatty():
        for line in lines:
            write(sys.stdout, harmless(line.decode("utf-8", "replace")))
        return
    remaining = iter(lines)
    while block := b"".join(islice(remaining, _LINES_AT_ONCE)):
        write(sys.stdout.buffer, block)
