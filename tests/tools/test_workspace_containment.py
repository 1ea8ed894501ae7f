"""The root of a workspace can't be left by its file tools, whatever a path says."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trioloop.errors import InvalidInputError, ToolError
from trioloop.tools.folder import Folder
from trioloop.tools.workspace import workspace_tools

SECRET = "top secret"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace beside a file that it must not reach."""
    (tmp_path / "secret.txt").write_text(SECRET)
    (tmp_path / "rootless").mkdir()
    (tmp_path / "rootless" / "secret.txt").write_text(SECRET)
    root = tmp_path / "root"
    (root / "inner").mkdir(parents=True)
    (root / "inner" / "note.txt").write_text("a note\n")
    (root / "out").symlink_to(tmp_path)
    (root / "secret_link").symlink_to(tmp_path / "secret.txt")
    (root / "inner" / "up").symlink_to("../..")
    (root / "note_link").symlink_to("inner/note.txt")
    (root / "folder_link").symlink_to(root / "inner")
    (root / "circle").symlink_to("circle")
    (root / "dangling").symlink_to(tmp_path / "new.txt")
    os.mkfifo(root / "pipe")
    return root


OUTSIDE = [
    "../secret.txt",
    "inner/../../secret.txt",
    "out/secret.txt",
    "secret_link",
    "inner/up/secret.txt",
    "folder_link/up/secret.txt",
    "/etc/passwd",
    "../rootless/secret.txt",
    "../root/../secret.txt",
    "dangling",
    "./out/../secret.txt",
]
UNUSABLE = ["a\0b", "circle", "circle/x", "inner/note.txt/x", "x" * 300, "x/" * 3_000, "\ud800"]


def call(root: Path, name: str) -> Callable[..., Any]:
    """The body of a workspace tool."""
    return next(made for made in workspace_tools(root) if made.name == name)


@pytest.mark.parametrize("path", [*OUTSIDE, *UNUSABLE, "pipe", "."])
def test_reading_elsewhere_is_refused(root: Path, path: str) -> None:
    with pytest.raises(ToolError) as raised:
        call(root, "read_file")(path, None)
    assert SECRET not in str(raised.value)
    assert len(str(raised.value)) < 400 or "outside" in str(raised.value)
    str(raised.value).encode()


@pytest.mark.parametrize("path", [*OUTSIDE, *UNUSABLE[:-3], UNUSABLE[-1], "pipe", "."])
def test_writing_elsewhere_is_refused(root: Path, path: str) -> None:
    before = {file: file.read_text() for file in root.parent.rglob("*.txt")}
    for name, given in [("write_file", ["x"]), ("edit_file", ["top", "no"])]:
        with pytest.raises(ToolError):
            call(root, name)(path, *given)
    assert {file: file.read_text() for file in root.parent.rglob("*.txt")} == before


@pytest.mark.parametrize("path", [*OUTSIDE, "out", "inner/up", "..", "/", "/etc", *UNUSABLE[:2]])
async def test_listing_and_searching_elsewhere_is_refused(root: Path, path: str) -> None:
    with pytest.raises(ToolError):
        call(root, "list_files")(path)
    with pytest.raises(ToolError):
        call(root, "list_files")(path, "*")
    with pytest.raises(ToolError):
        await call(root, "search_files")("secret", path)


async def test_walks_do_not_follow_links(root: Path) -> None:
    assert "rootless" not in call(root, "list_files")(".", "*")
    assert await call(root, "search_files")(SECRET) == "(no match)"


@pytest.mark.parametrize(
    "path", ["inner/note.txt", "note_link", "folder_link/note.txt", "./inner/../inner/note.txt"]
)
def test_links_inside_may_be_followed(root: Path, path: str) -> None:
    assert call(root, "read_file")(path, None).endswith("a note")
    assert call(root, "read_file")(str(root / path), None).endswith("a note")


def test_writing_through_a_link_inside_keeps_the_link(root: Path) -> None:
    call(root, "write_file")("note_link", "changed\n")
    assert (root / "note_link").is_symlink()
    assert (root / "inner" / "note.txt").read_text() == "changed\n"


class Swapping(Folder):
    """A folder in which somebody puts a link where a file or folder was just looked at."""

    def __init__(self, root: Path, swap: Callable[[], None]) -> None:
        super().__init__(root)
        self._swap = swap

    def parts(self, path: str) -> tuple[str, ...]:
        """The components, of which one is replaced before they are opened."""
        found = super().parts(path)
        self._swap()
        return found


def test_link_put_there_after_the_look_is_not_followed(root: Path) -> None:
    def swap_file() -> None:
        (root / "inner" / "note.txt").unlink(missing_ok=True)
        (root / "inner" / "note.txt").symlink_to(root.parent / "secret.txt")

    with (
        pytest.raises(ToolError, match="link"),
        Swapping(root, swap_file).opened("inner/note.txt") as file,
    ):
        file.read()


def test_folder_swapped_for_a_link_after_the_look_is_not_entered(root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "secret.txt").write_text("harmless")

    def swap_folder() -> None:
        if not (root / "sub").is_symlink():
            (root / "sub").rename(root / "moved")
            (root / "sub").symlink_to(root.parent)

    folder = Swapping(root, swap_folder)
    with pytest.raises(ToolError), folder.opened("sub/secret.txt") as file:
        file.read()
    with pytest.raises(ToolError):
        folder.replace("sub/secret.txt", b"overwritten")
    assert (root.parent / "secret.txt").read_text() == SECRET


def test_root_must_be_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "none", tmp_path / "file", "a\0b"):
        with pytest.raises(InvalidInputError, match="workspace"):
            workspace_tools(path)
