"""The commands that look into a store's file, with their options."""

import math
import sys
from pathlib import Path

import click
import trio

from trioloop.cli.comparing import compare
from trioloop.cli.console import Output
from trioloop.cli.exits import USAGE, CommandError, ExitCode
from trioloop.cli.explaining import explain_message, explain_messages, explain_origin
from trioloop.cli.inspecting import check_sessions, show_sessions
from trioloop.cli.readable import readable
from trioloop.cli.replaying import show_again
from trioloop.cli.transferring import export, import_lines, rebuild

_FILE = click.Path(path_type=Path)
_SEQ = click.IntRange(min=0)


@click.command("sessions")
@click.argument("file", type=_FILE)
@click.option("--quick", is_flag=True, help="Without their states: reads no session.")
def sessions_command(file: Path, quick: bool) -> ExitCode:
    """List the sessions in a store, with their sizes and states."""
    return show_sessions(file, Output().out, quick=quick)


@click.command("check")
@click.argument("file", type=_FILE)
@click.argument("name", required=False)
@click.option("--deep", is_flag=True, help="Beyond the logs: streams, repair, pages, side files.")
def check_command(file: Path, name: str | None, deep: bool) -> ExitCode:
    """Verify the sessions in a store, or the one named."""
    return check_sessions(file, name, Output().out, deep=deep)


@click.command("explain")
@click.argument("file", type=_FILE)
@click.argument("name")
@click.argument("message_id", required=False)
@click.option("--request", type=_SEQ, metavar="SEQ", help="Which events made that attempt's.")
def explain_command(file: Path, name: str, message_id: str | None, request: int | None) -> ExitCode:
    """Tell what became of a message, or of all of them; or what a request was made of."""
    out = Output().out
    if request is not None:
        if message_id is not None:
            raise CommandError("give a message or --request, not both", USAGE)
        return explain_origin(file, name, request, out)
    if message_id is not None:
        return explain_message(file, name, message_id, out)
    return explain_messages(file, name, out)


@click.command("diff", epilog="Exit codes: 0 equal, 1 different or an error, 2 wrong usage.")
@click.argument("file", type=_FILE)
@click.argument("name")
@click.argument("file2", type=_FILE)
@click.argument("name2")
@click.option("--ignore-times", is_flag=True, help="Whenever and however fast things came.")
@click.option("--ignore-ids", is_flag=True, help="Whatever messages, calls, sessions are called.")
def diff_command(
    file: Path, name: str, file2: Path, name2: str, *, ignore_times: bool, ignore_ids: bool
) -> ExitCode:
    """Show the first event in which two sessions differ."""
    out = Output().out
    return compare(file, name, file2, name2, out, times=not ignore_times, ids=not ignore_ids)


@click.command("rebuild")
@click.argument("file", type=_FILE)
@click.argument("name")
@click.argument("seq", type=_SEQ)
@click.option("--pretty", is_flag=True, help="Over several lines, for people.")
def rebuild_command(file: Path, name: str, seq: int, pretty: bool) -> ExitCode:
    """Print the exact request of an attempt as canonical JSON.

    SEQ is that of its assistant/message or assistant/attempt event.
    """
    Output()  # sets the streams up
    return rebuild(file, name, seq, pretty=pretty)


@click.command("replay")
@click.argument("file", type=_FILE)
@click.argument("name")
@click.option("--speed", type=click.FloatRange(min=0, min_open=True), help="Times as fast.")
@click.option("--fast", is_flag=True, help="Wait for nothing.")
def replay_command(file: Path, name: str, speed: float | None, fast: bool) -> ExitCode:
    """Show a session again, in its own time. Waits between turns are cut to 2 seconds."""
    if fast and speed is not None:
        raise CommandError("give --speed or --fast, not both", USAGE)
    if speed is not None and not math.isfinite(speed):
        raise CommandError(f"--speed takes a number, not {speed}: see --fast", USAGE)
    read = readable(file, name)
    return trio.run(show_again, read, math.inf if fast else speed or 1, Output())


@click.command("export")
@click.argument("file", type=_FILE)
@click.argument("name")
def export_command(file: Path, name: str) -> ExitCode:
    """Print a session as JSON Lines: one event a line, each with its CRC."""
    Output()  # sets the streams up
    return export(file, name)


@click.command("import")
@click.argument("file", type=_FILE)
@click.argument("name", required=False)
def import_command(file: Path, name: str | None) -> ExitCode:
    """Add a session that was exported; its lines come from standard input.

    All is verified before anything is written. NAME, if given, must be the session's own.
    """
    if sys.stdin.isatty():
        raise CommandError("import reads lines from standard input: add < FILE.jsonl", USAGE)
    return import_lines(file, name, sys.stdin.buffer, Output().out)


STORE_COMMANDS = (
    sessions_command,
    check_command,
    explain_command,
    diff_command,
    rebuild_command,
    replay_command,
    export_command,
    import_command,
)
"""All of them."""
