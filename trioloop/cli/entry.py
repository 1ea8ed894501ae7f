"""The commands with their options, and the one place where errors become a line and a code."""

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import click
import trio

from trioloop.cli.chat import chat as hold_chat
from trioloop.cli.console import LogLines, Output
from trioloop.cli.demonstration import demonstration_tools
from trioloop.cli.exits import FAILED, OK, SIGNALLED, USAGE, CommandError, ExitCode, explained
from trioloop.cli.model_choice import choose_model
from trioloop.cli.one_turn import run_turn
from trioloop.cli.setup import FIRST_STEP, Setup
from trioloop.cli.store_commands import STORE_COMMANDS
from trioloop.cli.tools_file import load_tools
from trioloop.errors import InvalidInputError
from trioloop.tools import Tool

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
_FILE = click.Path(path_type=Path)
_CONTROL_PACKAGES = ("h11", "trio_websocket", "wsproto")


def run(arguments: Sequence[str]) -> ExitCode:
    """Run a command line and return its exit code. Errors become one line on standard error."""
    output = Output()
    with _warnings_as_lines(output):
        return _run(arguments, output)


@contextmanager
def _warnings_as_lines(output: Output) -> Iterator[None]:
    logger, lines = logging.getLogger("trioloop"), LogLines(output)
    propagated, logger.propagate = logger.propagate, False
    logger.addHandler(lines)
    try:
        yield
    finally:
        logger.removeHandler(lines)
        logger.propagate = propagated


def _run(arguments: Sequence[str], output: Output) -> ExitCode:
    try:
        answered = commands.main(args=[*arguments], prog_name="trioloop", standalone_mode=False)
    except click.ClickException as error:
        return _complain(output, error.format_message(), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return _complain(output, "stopped by Ctrl-C", SIGNALLED + 2)
    except Exception as error:
        if os.environ.get("TRIOLOOP_DEBUG"):
            raise
        told = explained(error)
        if told is None:
            text = f"a fault of trioloop's own: {type(error).__name__}: {error} "
            return _complain(output, f"{text}(TRIOLOOP_DEBUG=1 shows where)", FAILED)
        return _complain(output, str(told), told.exit_code)
    return answered if isinstance(answered, int) else OK


def _complain(output: Output, text: str, code: ExitCode) -> ExitCode:
    output.complain(text)
    return code


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("trioloop"), prog_name="trioloop")
@click.pass_context
def commands(context: click.Context) -> None:
    """A structured-concurrency runtime for LLM agents, on Trio."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def _agent_options(command: CommandT) -> CommandT:
    for option in reversed(
        (
            click.option("--model", "-m", metavar="MODEL", help="SERVICE:MODEL, or demonstration."),
            click.option(
                "--base-url", metavar="URL", help="A server that speaks OpenAI's chat API."
            ),
            click.option(
                "--tools",
                "-t",
                "tool_files",
                type=_FILE,
                multiple=True,
                metavar="FILE.py",
                help="Functions decorated with @tool, or a list named tools. May be repeated.",
            ),
            click.option(
                "--workspace",
                type=_FILE,
                metavar="DIR",
                help="Tools to read, search and change the files there, and to run commands.",
            ),
            click.option("--system", default="", metavar="TEXT", help="The system prompt."),
            click.option(
                "--session", metavar="NAME", help="Go on with it, or begin it; in --store."
            ),
            click.option("--store", type=_FILE, metavar="FILE", help="Where sessions are kept."),
            click.option(
                "--tool-choice",
                metavar="CHOICE",
                help="auto, none, required, a tool's name; or first: a call in the first step of "
                "a turn, none later, for very small models.",
            ),
            click.option("--max-tokens", type=click.IntRange(min=1), help="Of one answer."),
            click.option("--temperature", type=click.FloatRange(min=0), help="Of sampling."),
        )
    ):
        command = option(command)
    return command


_EXIT_CODES = """Exit codes: 0 completed, 1 error, 2 wrong usage, 3 cut at the maximum of tokens,
4 blocked by a policy, 5 aborted; 130 by Ctrl-C, 143 by SIGTERM."""


@commands.command("run", epilog=_EXIT_CODES)
@click.argument("prompt")
@_agent_options
@click.option("--json", "as_json", is_flag=True, help="Print events as JSON lines.")
def run_command(prompt: str, as_json: bool, **options: Any) -> ExitCode:  # Any: click's values
    """Run one turn on PROMPT; "-" reads it from standard input."""
    text = sys.stdin.read() if prompt == "-" else prompt
    if not text.strip():
        raise CommandError("the prompt is empty: say what the agent shall do", USAGE)
    return trio.run(run_turn, _setup(**options), text, Output(json=as_json))


@commands.command("chat")
@_agent_options
@click.option("--json", "as_json", is_flag=True, help="Print events as JSON lines.")
def chat_command(as_json: bool, **options: Any) -> ExitCode:  # Any: click's values
    """Talk with an agent.

    What you type while it works steers it. Ctrl-C cancels its turn; twice leaves, as Ctrl-D does.
    """
    return trio.run(hold_chat, _setup(**options), Output(json=as_json))


@commands.command("serve")
@_agent_options
@click.option(
    "--listen",
    default="127.0.0.1:0",
    show_default=True,
    metavar="ADDRESS",
    help="HOST:PORT, port 0 for any that is free, or unix:PATH.",
)
@click.option(
    "--token-file", type=_FILE, metavar="FILE", help="Keep the token there; made if it is missing."
)
@click.option("--ask", "asks", is_flag=True, help="Ask before tools that aren't read-only run.")
@click.option(
    "--origin",
    "origins",
    multiple=True,
    metavar="URL",
    help="A page beside the console that may connect. May be repeated.",
)
@click.option(
    "--certificate", type=_FILE, metavar="FILE.pem", help="Speak TLS, with this and its key."
)
@click.option("--insecure", is_flag=True, help="Listen beyond this machine without TLS.")
def serve_command(
    *,
    listen: str,
    token_file: Path | None,
    asks: bool,
    origins: tuple[str, ...],
    certificate: Path | None,
    insecure: bool,
    **options: Any,  # Any: click's values
) -> ExitCode:
    """Serve agents to browsers, terminals and programs, until Ctrl-C.

    Prints the address once, with the token that opens it.
    """
    with _needs_control():
        from trioloop.cli.serve import Serving, serve_setup
    if options["session"] is not None:
        raise CommandError("serve has no --session: agents are made by those who connect", USAGE)
    serving = Serving(
        listen=listen,
        token_file=token_file,
        asks=asks,
        origins=origins,
        certificate=certificate,
        insecure=insecure,
    )
    return trio.run(serve_setup, _setup(**options), serving, Output())


@commands.command("attach")
@click.argument("address")
@click.option("--agent", metavar="NAME", help="Made if it is missing; else the only live one.")
@click.option("--json", "as_json", is_flag=True, help="Print events as JSON lines.")
def attach_command(address: str, agent: str | None, as_json: bool) -> ExitCode:
    """Talk with a served agent; ADDRESS is what `trioloop serve` prints.

    What you type while it works steers it. Ctrl-C cancels its turn; twice leaves, as Ctrl-D does,
    and the agent goes on.
    """
    with _needs_control():
        from trioloop.cli.attach import attach
    return trio.run(attach, address, agent, Output(json=as_json))


@contextmanager
def _needs_control() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _CONTROL_PACKAGES:
            raise
        raise CommandError("this command needs: pip install 'trioloop[control]'") from None


for _command in STORE_COMMANDS:
    commands.add_command(_command)


def _setup(
    *,
    model: str | None,
    base_url: str | None,
    tool_files: Sequence[Path],
    workspace: Path | None,
    system: str,
    session: str | None,
    store: Path | None,
    tool_choice: str | None,
    max_tokens: int | None,
    temperature: float | None,
) -> Setup:
    if session is not None and store is None:
        raise CommandError("--session needs --store: name the file that keeps it", USAGE)
    chosen = choose_model(model, base_url, os.environ)
    tools = [one for file in tool_files for one in load_tools(file)]
    tools += _workspace_tools(workspace) if workspace is not None else []
    if chosen.is_demonstration and not tools:
        tools = demonstration_tools()
    if tool_choice not in (None, "auto", "none") and not tools:
        raise CommandError(f"--tool-choice {tool_choice} needs tools: see --tools", USAGE)
    return Setup(
        model=chosen,
        tools=tuple(tools),
        system=system,
        store=store,
        session=session,
        tool_choice=FIRST_STEP if tool_choice == "first:required" else tool_choice,
        max_tokens=max_tokens,
        temperature=temperature,
    )


def _workspace_tools(folder: Path) -> list[Tool]:
    from trioloop.tools.workspace import workspace_tools  # loaded where it is asked for

    try:
        return workspace_tools(folder)
    except InvalidInputError as error:
        raise CommandError(f"--workspace: {error}") from None
