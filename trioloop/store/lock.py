"""The lock by which one owner at a time writes a file: `flock` on another file beside it.

The kernel drops it with its holder's last breath, so a dead holder never blocks anybody. It
belongs to an open file, not to a process: two runtimes in one process exclude each other too.
"""

import contextlib
import fcntl
import os

import msgspec

from trioloop.errors import SessionLockedError
from trioloop.ports import Owner

_HOLDER_BYTES_MAX = 4096


class FileLock:
    """Excludes other writers of the file at `path`. The lock file is never deleted.

    Args:
        path: the file that is written, links resolved.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self, owner: Owner) -> None:
        """Take the lock, or leave it if it is held by this object already.

        Raises:
            SessionLockedError: somebody else has it.
            OSError: the lock file can't be opened.
        """
        if self._descriptor is not None:
            return
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(f"{self._path}.lock", flags, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(descriptor)
            os.close(descriptor)
            raise SessionLockedError(f"the store {self._path!r}", holder) from None
        except BaseException:  # the descriptor is closed and the error goes on
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        with contextlib.suppress(OSError):  # a full disk: the lock holds without its note
            _note(descriptor, msgspec.json.encode(owner))

    def release(self) -> None:
        """Give the lock back. Releasing again does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with contextlib.suppress(OSError):
                _note(descriptor, b"")
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # also where a forked child still has it open
            os.close(descriptor)


def _note(descriptor: int, text: bytes) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text, 0)


def noted_holder(path: str) -> Owner | None:
    """Who noted last that they have the lock of a file, dead or alive. It isn't taken."""
    try:
        descriptor = os.open(f"{path}.lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return _noted(descriptor)
    finally:
        os.close(descriptor)


def _holder(descriptor: int) -> str:
    owner = _noted(descriptor)
    return "somebody who left no name" if owner is None else str(owner)


def _noted(descriptor: int) -> Owner | None:
    try:
        return msgspec.json.decode(os.pread(descriptor, _HOLDER_BYTES_MAX, 0), type=Owner)
    except (OSError, msgspec.DecodeError):
        return None
