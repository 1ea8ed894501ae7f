"""Sockets to listen on: TCP, or a Unix socket that nobody else may use."""

import os
import socket
import stat
import struct
from pathlib import Path

import trio

from trioloop.control.address import Listen
from trioloop.errors import InvalidInputError

_PEER_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid
_BACKLOG = 128


async def listeners(where: Listen) -> list[trio.SocketListener]:
    """Listen. A checkpoint.

    Raises:
        InvalidInputError: a Unix socket's path is taken by something else, or by a live endpoint.
        OSError: the address can't be had.
    """
    if where.path is not None:
        return [_unix(Path(where.path))]
    return await trio.open_tcp_listeners(where.port, host=where.host, backlog=_BACKLOG)


def _unix(path: Path) -> trio.SocketListener:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = path.parent.stat()
    if folder.st_uid != os.geteuid() or folder.st_mode & 0o077:
        raise InvalidInputError(
            f"the folder of {path} must be yours alone (mode 0700), since whoever can come to a "
            "socket may connect to it"
        )
    _remove_stale(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        before = os.umask(0o177)
        try:
            listening.bind(str(path))
        finally:
            os.umask(before)
        listening.listen(_BACKLOG)
        return trio.SocketListener(trio.socket.from_stdlib_socket(listening))
    except BaseException:  # whatever it was, nobody else would close it
        listening.close()
        raise


def _remove_stale(path: Path) -> None:
    """Remove a socket that nobody listens on any more."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise InvalidInputError(f"{path} is there and no socket: choose another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
        else:
            raise InvalidInputError(f"an endpoint listens on {path} already: choose another path")


def peer_of(stream: trio.SocketStream) -> str | None:
    """Who is at the other side: an address, or ourselves; None: another user, or nobody."""
    try:
        if stream.socket.family == socket.AF_UNIX:
            raw = stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER_CREDENTIALS.size)
            _, user, _ = _PEER_CREDENTIALS.unpack(raw)
            return f"user {user}" if user == os.geteuid() else None
        return str(stream.socket.getpeername()[0])
    except OSError:
        return None
