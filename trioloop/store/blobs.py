"""Large content in files of its own, named by its hash and synced before anything names it."""

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from trioloop.errors import StoreError

_LOCATOR = re.compile(r"[0-9a-f]{64}")


class BlobFiles:
    """Content-addressed files in one folder, made when the first is put.

    A file appears under its name only when it is whole and synced, so a crash leaves at most an
    unfinished one under `new/`, which the next owner removes.

    Args:
        folder: where they are kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._unfinished = folder / "new"

    def put(self, content: bytes) -> str:
        """Keep content, synced when this returns.

        Returns:
            Its locator, which equal content shares.

        Raises:
            OSError: it can't be written.
        """
        locator = hashlib.sha256(content).hexdigest()
        path = self._path(locator)
        if not _holds(path, content):
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._new_file() as (descriptor, name):
                with open(descriptor, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(name, path)
        for folder in (path.parent, self._folder, self._folder.parent):
            _sync_folder(folder)
        return locator

    def get(self, locator: str) -> bytes:
        """The content of a locator.

        Raises:
            StoreError: there is none, or it isn't what was put.
        """
        if _LOCATOR.fullmatch(locator) is None:
            raise StoreError(f"{locator!r} is no locator of content: it has 64 hexadecimal digits")
        try:
            content = self._path(locator).read_bytes()
        except OSError as error:
            raise StoreError(f"the content {locator} can't be read: {error}") from error
        if hashlib.sha256(content).hexdigest() != locator:
            raise StoreError(f"the content {locator} isn't what was put: its file is damaged")
        return content

    def locators(self) -> Iterator[str]:
        """Those of all content that is kept, in order; whether it is whole is for `get` to say."""
        for path in sorted(self._folder.glob("*/*")):
            if _LOCATOR.fullmatch(path.name) is not None:
                yield path.name

    def clean(self) -> None:
        """Remove what a crash left unfinished. Only for the one owner of the folder."""
        for path in self._unfinished.glob("*"):
            with contextlib.suppress(OSError):
                path.unlink()

    def _path(self, locator: str) -> Path:
        return self._folder / locator[:2] / locator

    @contextlib.contextmanager
    def _new_file(self) -> Iterator[tuple[int, str]]:
        """A file under a name of its own, gone again unless it was renamed."""
        self._unfinished.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=self._unfinished)
        try:
            yield descriptor, name
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)


def _holds(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:
        return False


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
