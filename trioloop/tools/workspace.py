"""Ready-made tools for the files of a project: read, list, search, write, edit, run a command.

Paths can't leave the root. A command can: whoever may run a shell may do what its user may do, so
leave `run_command` out, or put the whole program into a container, where that matters.
"""

import os
import re
import sys
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Annotated, BinaryIO

from msgspec import Meta

from trioloop.errors import ToolError
from trioloop.ports import ToolOutcome
from trioloop.tools import search
from trioloop.tools.context import ToolContext
from trioloop.tools.folder import SKIPPED, Entry, Folder, shown
from trioloop.tools.process import ProcessResult, run_process
from trioloop.tools.tool import Tool, tool

_LINES = 2_000
_LINE_BYTES_MAX = 2_000
_TEXT_BYTES_MAX = 48 * 1024
_EDITED_BYTES_MAX = 16 * 1024 * 1024
_SAMPLE_BYTES = 8 * 1024
_SEARCH_S = 20.0
_COMMAND_S = 120.0
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)

Count = Annotated[int, Meta(ge=1, le=100_000)]
Seconds = Annotated[float, Meta(gt=0, le=3_600)]


def workspace_tools(
    root: str | os.PathLike[str],
    *,
    read_only: bool = False,
    env: Mapping[str, str] | None = None,
) -> list[Tool]:
    """Tools for working on the files below a folder.

    Args:
        root: the folder, which file tools can't leave.
        read_only: leave out the tools that write files or run commands.
        env: the environment of commands; None: this process's own, without variables whose names
            look like those of secrets.

    Raises:
        InvalidInputError: the root is no folder.
    """
    workspace = _Workspace(Folder(root), _environment() if env is None else dict(env))
    looking = tool(effects="read-only")
    tools = [
        looking(workspace.read_file),
        looking(workspace.list_files),
        looking(workspace.search_files),
    ]
    if not read_only:
        tools += [
            tool(effects="idempotent")(workspace.write_file),
            tool(workspace.edit_file),
            tool(workspace.run_command),
        ]
    return tools


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not _SECRET.search(name)}


class _Workspace:
    def __init__(self, folder: Folder, env: dict[str, str]) -> None:
        self._folder = folder
        self._env = env

    def read_file(
        self, path: str, context: ToolContext, first_line: Count = 1, lines: Count = _LINES
    ) -> str:
        """Read a text file of the workspace, with line numbers.

        Long files come in parts: the last line then says where to go on.

        Args:
            path: relative to the workspace.
            first_line: number of the first line to read, from 1.
            lines: how many lines to read at most.
        """
        with self._folder.opened(path) as file:
            if (told := _not_text(file)) is not None:
                return told
            return _numbered(file, first_line, lines, context)

    def list_files(self, folder: str = ".", pattern: str = "", limit: Count = 500) -> str:
        """List what a folder of the workspace holds, or find files by name.

        Args:
            folder: relative to the workspace.
            pattern: find files at any depth below the folder by name or path, as *.py or
                tests/*.py; version control and installed packages are skipped. Empty: list the
                folder itself.
            limit: how many to list at most.
        """
        found = self._folder.matching(folder, pattern) if pattern else self._folder.entries(folder)
        listed = list(islice(found, limit + 1))
        text = "\n".join(_line(entry) for entry in listed[:limit])
        if len(listed) > limit:
            return f"{text}\n[stopped after {limit}: list a narrower folder or pattern]"
        return text or "(nothing)"

    async def search_files(
        self, expression: str, folder: str = ".", files: str = "*", limit: Count = 100
    ) -> str:
        """Search the text files of the workspace by a regular expression, line by line.

        Version control, installed packages and binary files are skipped.

        Args:
            expression: in Python's syntax; (?i) at its start ignores case.
            folder: where to search, relative to the workspace.
            files: which files, by name or path, as *.py.
            limit: how many matching lines to show at most.
        """
        if "\0" in expression or "\0" in files:
            raise ToolError("a search can't hold NUL characters: leave them out")
        prefix = "/".join((*self._folder.parts(folder), ""))
        with self._folder.opened_folder(folder) as opened:
            program = [sys.executable, "-I", "-S", str(Path(search.__file__))]
            wanted = [str(opened), prefix, expression, files, str(limit), "/".join(SKIPPED)]
            result = await run_process(
                [*program, *wanted], timeout_s=_SEARCH_S, grace_s=0.5, pass_fds=[opened]
            )
        return _found(result, expression)

    def write_file(self, path: str, text: str) -> str:
        """Write a text file of the workspace, whole; missing folders are made.

        Args:
            path: relative to the workspace.
            text: the file's whole content.
        """
        content = text.encode()
        is_new = self._folder.replace(path, content)
        return f"{'created' if is_new else 'replaced'} {path}: {len(content):,} bytes"

    def edit_file(self, path: str, old: str, new: str, every: bool = False) -> str:
        """Replace a passage in a text file of the workspace.

        Args:
            path: relative to the workspace.
            old: the passage exactly as it stands in the file, without line numbers; with enough
                around it to occur only once.
            new: what to put in its place.
            every: replace each occurrence, however many there are.
        """
        with self._folder.opened(path) as file:
            if (told := _not_text(file)) is not None:
                raise ToolError(f"{path!r} can't be edited: {told}")
            content = file.read(_EDITED_BYTES_MAX + 1)
        if len(content) > _EDITED_BYTES_MAX:
            raise ToolError(f"{path!r} is too large to edit: use a command")
        changed, count = _replaced(content, old.encode(), new.encode(), path, every)
        self._folder.replace(path, changed)
        return f"replaced {count} passage{'s' if count > 1 else ''} in {path}"

    async def run_command(self, command: str, timeout_s: Seconds = _COMMAND_S) -> ToolOutcome:
        """Run a shell command in the workspace; output and errors come together.

        Whatever it leaves running is ended with it. It can't be asked for input.

        Args:
            command: a line for /bin/sh.
            timeout_s: seconds after which it is ended.
        """
        result = await run_process(
            command, cwd=self._folder.root, env=self._env, timeout_s=timeout_s
        )
        if result.timed_out:
            end = f"[ended after {timeout_s:g} s: it took too long]"
        else:
            end = f"[exit code {result.exit_code}]"
        return ToolOutcome(
            content=f"{result.output.rstrip()}\n{end}".lstrip("\n"),
            value={"exit_code": result.exit_code, "output": result.output},
            meta={"exit_code": result.exit_code, "output_bytes": result.output_bytes},
        )


def _not_text(file: BinaryIO) -> str | None:
    """What a file is instead of text; looks at its beginning only."""
    sample = file.read(_SAMPLE_BYTES)
    file.seek(0)
    if b"\0" not in sample:
        return None
    return f"a binary file of {os.fstat(file.fileno()).st_size:,} bytes"


def _numbered(file: BinaryIO, first: int, count: int, context: ToolContext) -> str:
    number, room = 0, _TEXT_BYTES_MAX
    shown_lines: list[str] = []
    while (line := _next_line(file)) is not None:
        number += 1
        if number % 1_000 == 0:
            context.check_cancelled()
        if number < first:
            continue
        text = f"{number:>6}\t{line}"
        room -= len(text.encode()) + 1
        if number >= first + count or room < 0:
            end = f"[the file goes on: read it again with first_line={number}]"
            return "\n".join([*shown_lines, end])
        shown_lines.append(text)
    if shown_lines:
        return "\n".join(shown_lines)
    return f"[the file has {number} lines]" if number else "[the file is empty]"


def _next_line(file: BinaryIO) -> str | None:
    """The next line as text, of a long one the beginning; None at the end."""
    piece = file.readline(_LINE_BYTES_MAX)
    if not piece:
        return None
    rest = 0
    last = piece
    while not last.endswith(b"\n") and (last := file.readline(_LINE_BYTES_MAX)):
        rest += len(last.rstrip(b"\r\n"))
    text = piece.decode("utf-8", "ignore" if rest else "backslashreplace").rstrip("\r\n")
    return f"{text} [... {rest:,} more bytes in this line]" if rest else text


def _line(entry: Entry) -> str:
    path = shown(entry.path)
    return f"{path}/" if entry.is_folder else f"{path} ({entry.size:,} bytes)"


def _found(result: ProcessResult, expression: str) -> str:
    text = result.output.rstrip("\n")
    if result.timed_out:
        return f"{text}\n[ended after {_SEARCH_S:g} s: search for something simpler]".lstrip("\n")
    if result.exit_code == 2:
        raise ToolError(f"the expression {expression!r} is wrong: {text}")
    if result.exit_code:
        raise ToolError(f"the search failed: {text[-500:]}")
    return text or "(no match)"


def _replaced(content: bytes, old: bytes, new: bytes, path: str, every: bool) -> tuple[bytes, int]:
    if b"\r\n" in content and b"\r" not in old:
        old, new = old.replace(b"\n", b"\r\n"), new.replace(b"\n", b"\r\n")
    count = content.count(old) if old else 0
    if count == 0:
        raise ToolError(f"{path!r} doesn't hold that passage: read it again and copy it exactly")
    if count > 1 and not every:
        raise ToolError(
            f"{path!r} holds that passage {count} times: give more of what is around it"
        )
    return content.replace(old, new), count
