"""What the workspace tools tell a model."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import trio

from trioloop.errors import CallCancelledError, ToolError
from trioloop.handles import AgentHandle
from trioloop.messages import text_of
from trioloop.tools import Tool, ToolContext
from trioloop.tools.workspace import workspace_tools

Call = Callable[..., Any]


def context(*, cancelled: bool = False) -> ToolContext:
    """A context that does nothing."""
    return ToolContext(
        agent=cast("AgentHandle", object()),
        call=cast("Any", "call_1_1_0"),
        key="session/call_1_1_0",
        report=lambda message, done, total: None,
        add_context=lambda message: None,
        append=lambda event: None,
        is_cancelled=lambda: cancelled,
        tools=lambda: (),
        call_tools=cast("Any", None),
        lend_place=cast("Any", None),
    )


@pytest.fixture
def tools(tmp_path: Path) -> dict[str, Tool]:
    """The tools of a workspace at `tmp_path`."""
    return {made.name: made for made in workspace_tools(tmp_path)}


@pytest.fixture
def read(tools: dict[str, Tool]) -> Call:
    """Reads a file."""
    return lambda path, **given: tools["read_file"](path, context(), **given)


def test_set_and_its_effects(tools: dict[str, Tool], tmp_path: Path) -> None:
    assert {name: made.effects for name, made in tools.items()} == {
        "read_file": "read-only",
        "list_files": "read-only",
        "search_files": "read-only",
        "write_file": "idempotent",
        "edit_file": "once",
        "run_command": "once",
    }
    assert tools["read_file"].mode_of({}) == "concurrent"
    assert tools["run_command"].mode_of({}) == "barrier"
    assert all(made.description for made in tools.values())
    looking = [made.name for made in workspace_tools(tmp_path, read_only=True)]
    assert looking == ["read_file", "list_files", "search_files"]


# read_file


def test_lines_are_numbered(read: Call, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\r\n\nfour")
    assert read("a.txt") == "     1\tone\n     2\ttwo\n     3\t\n     4\tfour"


def test_part_of_a_file_says_where_to_go_on(read: Call, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 11)))
    assert read("a.txt", first_line=4, lines=2) == (
        "     4\tline 4\n     5\tline 5\n[the file goes on: read it again with first_line=6]"
    )
    assert read("a.txt", first_line=10) == "    10\tline 10"
    assert read("a.txt", first_line=11) == "[the file has 10 lines]"


def test_large_file_comes_in_bounded_parts(read: Call, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("é" * 900 + "\n" + "x" * 1_000_000 + "\n" + "y" * 40 + "\n")
    with (tmp_path / "a.txt").open("a") as file:
        file.writelines(f"{n} {'z' * 100}\n" for n in range(4, 5_000))
    text = read("a.txt")
    assert len(text.encode()) < 64 * 1024
    assert "[... 998,000 more bytes in this line]" in text
    assert "     3\t" + "y" * 40 in text
    following = int(text.rpartition("first_line=")[2].rstrip("]"))
    assert read("a.txt", first_line=following).startswith(f"{following:>6}\t{following} zzz")


def test_long_line_is_cut_between_characters(read: Call, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x" + "\U0001f600" * 1_000)
    assert "\\x" not in read("a.txt")


def test_empty_and_binary_files_are_said_plainly(read: Call, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "image").write_bytes(b"\x89PNG\0\0" * 1_000)
    (tmp_path / "latin").write_bytes(b"caf\xe9\n")
    assert read("empty") == "[the file is empty]"
    assert read("image") == "a binary file of 6,000 bytes"
    assert read("latin") == "     1\tcaf\\xe9"


def test_missing_file_names_what_is_near(read: Call, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").touch()
    with pytest.raises(ToolError, match=r"no 'src/mian.py': perhaps 'src/main.py'"):
        read("src/mian.py")
    with pytest.raises(ToolError, match="list_files"):
        read("src")


def test_reading_stops_when_cancelled(tools: dict[str, Tool], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n" * 5_000)
    with pytest.raises(CallCancelledError):
        tools["read_file"]("a.txt", context(cancelled=True), first_line=4_000)


# list_files


def test_folder_is_listed(tools: dict[str, Tool], tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a.txt").write_text("1234")
    (tmp_path / "line\nbreak").touch()
    assert tools["list_files"]() == "a.txt (4 bytes)\nb/\nline\\nbreak (0 bytes)"
    assert tools["list_files"]("b") == "(nothing)"


def test_files_are_found_by_name_or_path(tools: dict[str, Tool], tmp_path: Path) -> None:
    for path in ("a.py", "src/b.py", "src/c.txt", ".git/d.py", "x/node_modules/e.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    assert tools["list_files"](pattern="*.py") == "a.py (0 bytes)\nsrc/b.py (0 bytes)"
    assert tools["list_files"](pattern="src/*") == "src/b.py (0 bytes)\nsrc/c.txt (0 bytes)"
    assert tools["list_files"]("src", "*.py") == "src/b.py (0 bytes)"
    assert tools["list_files"](pattern="*", limit=1) == (
        "a.py (0 bytes)\n[stopped after 1: list a narrower folder or pattern]"
    )


# search_files


async def test_lines_are_found_with_path_and_number(tools: dict[str, Tool], tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("import os\nx = 1\n\nIMPORT = 2\n")
    (tmp_path / "b.txt").write_text("import x: y\n")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "c").write_text("import hidden\n")
    (tmp_path / "bin").write_bytes(b"import\0\n")
    search = tools["search_files"]
    with trio.fail_after(20):
        assert await search("import") == "b.txt:1: import x: y\nsrc/a.py:1: import os"
        assert await search("(?i)import", "src") == "src/a.py:1: import os\nsrc/a.py:4: IMPORT = 2"
        assert await search("import", files="*.txt") == "b.txt:1: import x: y"
        assert (await search("import", limit=1)).startswith("b.txt:1: import x: y\n[stopped after")
        assert await search("^nothing$") == "(no match)"


async def test_long_line_is_shown_around_its_match(tools: dict[str, Tool], tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x" * 5_000 + "needle" + "y" * 5_000 + "\n")
    with trio.fail_after(20):
        found = await tools["search_files"]("needle")
    assert "needle" in found
    assert len(found) < 400


@pytest.mark.parametrize("expression", ["(", "*", "[a", "(?P<x"])
async def test_wrong_expression_is_told(tools: dict[str, Tool], expression: str) -> None:
    with trio.fail_after(20), pytest.raises(ToolError, match="is wrong"):
        await tools["search_files"](expression)


async def test_expression_that_never_ends_holds_up_nobody(
    tools: dict[str, Tool], tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("a" * 5_000 + "!\n")
    with trio.fail_after(20), trio.move_on_after(0.5) as scope:
        await tools["search_files"]("(a+)+$")
    assert scope.cancelled_caught


async def test_dashes_and_nul_characters_in_a_search_are_no_options(
    tools: dict[str, Tool], tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("--help\n")
    with trio.fail_after(20):
        assert await tools["search_files"]("--help") == "a:1: --help"
    with pytest.raises(ToolError, match="NUL"):
        await tools["search_files"]("a\0")


# write_file and edit_file


def test_file_is_written_whole_with_its_folders(tools: dict[str, Tool], tmp_path: Path) -> None:
    assert tools["write_file"]("a/b/c.txt", "naïve\n") == "created a/b/c.txt: 7 bytes"
    assert (tmp_path / "a/b/c.txt").read_text() == "naïve\n"
    (tmp_path / "a/b/c.txt").chmod(0o750)
    assert tools["write_file"]("a/b/c.txt", "") == "replaced a/b/c.txt: 0 bytes"
    assert stat.S_IMODE((tmp_path / "a/b/c.txt").stat().st_mode) == 0o750
    assert os.listdir(tmp_path / "a/b") == ["c.txt"]


def test_failed_write_leaves_the_file_as_it_was(tools: dict[str, Tool], tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ToolError, match="folder"):
        tools["write_file"]("folder", "x")
    assert os.listdir(tmp_path) == ["folder"]


def test_passage_is_replaced_once(tools: dict[str, Tool], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two\none three\n")
    edit = tools["edit_file"]
    assert edit("a.txt", "one two", "1 2") == "replaced 1 passage in a.txt"
    with pytest.raises(ToolError, match="doesn't hold"):
        edit("a.txt", "one two", "")
    with pytest.raises(ToolError, match="doesn't hold"):
        edit("a.txt", "", "x")
    (tmp_path / "a.txt").write_text("x y x")
    with pytest.raises(ToolError, match="2 times"):
        edit("a.txt", "x", "z")
    assert edit("a.txt", "x", "z", every=True) == "replaced 2 passages in a.txt"
    assert (tmp_path / "a.txt").read_text() == "z y z"


def test_line_ends_of_the_file_are_kept(tools: dict[str, Tool], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    tools["edit_file"]("a.txt", "one\ntwo", "1\n2")
    assert (tmp_path / "a.txt").read_bytes() == b"1\r\n2\r\nthree\r\n"


def test_binary_file_is_not_edited(tools: dict[str, Tool], tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x\0y")
    with pytest.raises(ToolError, match="binary"):
        tools["edit_file"]("a", "x", "z")


# run_command


async def test_command_runs_in_the_root_and_tells_its_end(
    tools: dict[str, Tool], tmp_path: Path
) -> None:
    with trio.fail_after(20):
        outcome = await tools["run_command"]("pwd; exit 2")
    assert text_of(outcome.content) == f"{tmp_path}\n[exit code 2]"
    assert outcome.value == {"exit_code": 2, "output": f"{tmp_path}\n"}
    assert outcome.meta == {"exit_code": 2, "output_bytes": len(str(tmp_path)) + 1}


async def test_slow_command_is_ended_and_said_so(tools: dict[str, Tool]) -> None:
    with trio.fail_after(20):
        outcome = await tools["run_command"]("echo begun; sleep 1000", timeout_s=1)
    assert text_of(outcome.content) == "begun\n[ended after 1 s: it took too long]"


async def test_secrets_of_the_environment_are_not_passed_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "k")
    monkeypatch.setenv("SOME_NAME", "n")
    (*_, run) = workspace_tools(tmp_path)
    with trio.fail_after(20):
        outcome = await run("echo [$SOME_API_KEY$SOME_NAME]")
    assert text_of(outcome.content).startswith("[n]")
    (*_, run) = workspace_tools(tmp_path, env={"SOME_API_KEY": "k"})
    with trio.fail_after(20):
        assert text_of((await run("echo [$SOME_API_KEY]")).content).startswith("[k]")


@pytest.mark.parametrize("command", ["", "a\0b"])
async def test_command_that_is_none_is_refused(tools: dict[str, Tool], command: str) -> None:
    with pytest.raises(ValueError, match="command"):
        await tools["run_command"](command)
