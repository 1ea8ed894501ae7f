"""A folder that can't be left: every path is resolved, judged, and then opened step by step.

Paths may be relative to the root, or absolute below it; links may point where they like as long as
that is below the root. What was resolved is opened component by component without following links,
so a link that is put there between the look and the opening is refused, not followed.

All of this blocks for I/O. What reads or writes content belongs in a worker thread.
"""

import difflib
import errno
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO

import attrs

from trioloop.errors import InvalidInputError, ToolError
from trioloop.tools.excerpt import clean

SKIPPED = frozenset({".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv"})

_PATH_CHARACTERS = 200  # shown of a path in an error
_STEP = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@attrs.frozen
class Entry:
    """Something in a folder: its path from the root, and its size in bytes where it is a file."""

    path: str
    is_folder: bool
    size: int


class Folder:
    """Everything below a root.

    Raises:
        InvalidInputError: the root is no folder.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        try:
            self.root = Path(root).resolve(strict=True)
        except (OSError, ValueError) as error:
            raise InvalidInputError(f"{os.fspath(root)!r} can't be a workspace: {error}") from None
        if not self.root.is_dir():
            raise InvalidInputError(f"{os.fspath(root)!r} can't be a workspace: it is no folder")

    def parts(self, path: str) -> tuple[str, ...]:
        """The components of a path below the root, with links resolved.

        Raises:
            ToolError: it leads out of the root, or can't be a path.
        """
        if "\0" in path:
            raise ToolError(f"{path!r} holds a NUL character, so it is no path")
        try:
            resolved = os.path.realpath(self.root / path)
        except (OSError, UnicodeError) as error:
            raise ToolError(f"{path!r} can't be resolved: {_reason(error)}") from None
        try:
            return Path(resolved).relative_to(self.root).parts
        except ValueError:
            raise ToolError(
                f"{path!r} lies outside of the workspace: give a path relative to its root"
            ) from None

    @contextmanager
    def opened(self, path: str) -> Iterator[BinaryIO]:
        """A regular file, for reading.

        Raises:
            ToolError: there is none, it is no regular file, or it lies outside of the root.
        """
        parts = self.parts(path)
        with self._told(path):
            if not parts:
                raise IsADirectoryError(errno.EISDIR, "is a folder")
            with self._folder(parts[:-1]) as above:
                file = os.open(parts[-1], _READ, dir_fd=above)
            with os.fdopen(file, "rb") as opened:
                _require_file(os.fstat(opened.fileno()).st_mode)
                yield opened

    @contextmanager
    def opened_folder(self, path: str) -> Iterator[int]:
        """A descriptor of a folder.

        Raises:
            ToolError: there is none, or it lies outside of the root.
        """
        parts = self.parts(path)
        with self._told(path), self._folder(parts) as folder:
            yield folder

    def replace(self, path: str, content: bytes) -> bool:
        """Write a file, whole or not at all, with the folders above it; whether it is a new one.

        Raises:
            ToolError: it can't be written, or lies outside of the root.
        """
        parts = self.parts(path)
        with self._told(path):
            if not parts:
                raise IsADirectoryError(errno.EISDIR, "is a folder")
            with self._folder(parts[:-1], create=True) as above:
                return _replace(above, parts[-1], content)

    def entries(self, path: str) -> Iterator[Entry]:
        """What a folder holds itself, in order of names.

        Raises:
            ToolError: there is no such folder, or it lies outside of the root.
        """
        base = "/".join(self.parts(path))
        with self.opened_folder(path) as folder, os.scandir(folder) as found:
            for item in sorted(found, key=lambda item: item.name):
                yield _entry(base, item)

    def matching(self, path: str, pattern: str) -> Iterator[Entry]:
        """Files at any depth below a folder whose name, or path from it, matches a pattern.

        Folders of version control and of installed packages (`SKIPPED`) are left out.

        Raises:
            ToolError: there is no such folder, or it lies outside of the root.
        """
        base = "/".join(self.parts(path))
        with self.opened_folder(path) as folder:
            for above, folders, files, at in os.fwalk(".", dir_fd=folder):
                folders[:] = sorted(set(folders) - SKIPPED)
                for name in sorted(files):
                    below = os.path.normpath(os.path.join(above, name))
                    if fnmatchcase(name, pattern) or fnmatchcase(below, pattern):
                        yield Entry(_joined(base, below), False, _size_at(name, at))

    @contextmanager
    def _folder(self, parts: tuple[str, ...], *, create: bool = False) -> Iterator[int]:
        """A descriptor of a folder below the root, reached without following any link."""
        at = os.open(self.root, _STEP)
        try:
            for part in parts:
                if create:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=at)
                following = os.open(part, _STEP, dir_fd=at)
                os.close(at)
                at = following
            yield at
        finally:
            os.close(at)

    @contextmanager
    def _told(self, path: str) -> Iterator[None]:
        """Tell the model of a failure in a sentence."""
        try:
            yield
        except FileNotFoundError:
            raise ToolError(f"there is no {_named(path)}{self._perhaps(path)}") from None
        except OSError as error:
            raise ToolError(f"{_named(path)} {_reason(error)}") from None

    def _perhaps(self, path: str) -> str:
        """Names beside a missing one that may have been meant."""
        above, name = os.path.split(path.rstrip("/"))
        try:
            with self._folder(self.parts(above or ".")) as folder:
                near = difflib.get_close_matches(name, os.listdir(folder), n=3)
        except (OSError, ToolError):
            return ""
        named = " or ".join(repr(clean(os.path.join(above, other))) for other in near)
        return f": perhaps {named}" if near else ""


def shown(path: str) -> str:
    """A path as text for a model: one line, whatever the file's name holds."""
    return path if path.isprintable() else ascii(path)[1:-1]


def _named(path: str) -> str:
    return repr(clean(path if len(path) <= _PATH_CHARACTERS else f"{path[:_PATH_CHARACTERS]}..."))


def _joined(base: str, name: str) -> str:
    return f"{base}/{name}" if base else name


def _entry(base: str, item: os.DirEntry[str]) -> Entry:
    try:
        size = item.stat(follow_symlinks=False).st_size
    except OSError:
        size = 0
    return Entry(_joined(base, item.name), item.is_dir(follow_symlinks=False), size)


def _size_at(name: str, folder: int) -> int:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_size
    except OSError:
        return 0


def _require_file(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder")
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "is no regular file, but a device, pipe or socket")


def _replace(folder: int, name: str, content: bytes) -> bool:
    """Write beside a file and move it there, so that no reader ever sees half of it."""
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        _require_file(mode)
    except FileNotFoundError:
        mode = None
    beside = f".trioloop-{os.getpid()}-{threading.get_ident()}.tmp"
    with suppress(FileNotFoundError):
        os.unlink(beside, dir_fd=folder)
    try:
        with os.fdopen(os.open(beside, _CREATE, 0o666, dir_fd=folder), "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
            file.write(content)
        os.replace(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:  # whatever it is goes on; nothing half-written may stay
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=folder)
        raise
    return mode is None


_REASONS = {
    errno.ELOOP: "is a link that leads in a circle, or was put there meanwhile",
    errno.ENOTDIR: "leads through something that is no folder",
    errno.EISDIR: "is a folder: list_files shows what it holds",
    errno.EACCES: "can't be opened: no permission",
    errno.EPERM: "can't be opened: no permission",
    errno.ENAMETOOLONG: "is too long for a path",
}


def _reason(error: Exception) -> str:
    number = getattr(error, "errno", None)
    return _REASONS.get(number or 0) or getattr(error, "strerror", None) or str(error)
