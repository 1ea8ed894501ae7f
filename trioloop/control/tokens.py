"""Tokens: who may do what. A token is a secret of 256 bits; only its digest is kept.

What a client may do comes from the token's record, never from what the client says.
"""

import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias

import attrs

from trioloop.errors import InvalidInputError
from trioloop.hooks import Registration

Scope: TypeAlias = Literal["read", "control", "admin"]
SCOPES: tuple[Scope, ...] = ("read", "control", "admin")  # each includes those before it

_TOKEN_BYTES = 32


@attrs.frozen(eq=False)
class Grant:
    """What one token allows.

    Attributes:
        name: what people call it; it may be logged.
        scope: the widest of its scopes.
    """

    name: str
    scope: Scope

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """All that it allows."""
        return SCOPES[: SCOPES.index(self.scope) + 1]

    def allows(self, scope: Scope) -> bool:
        """Whether it allows something that needs a scope."""
        return scope in self.scopes


class Tokens:
    """The tokens that an endpoint knows, or several endpoints."""

    def __init__(self) -> None:
        self._grants: dict[bytes, Grant] = {}
        self._observers: tuple[Callable[[Grant], None], ...] = ()

    def issue(self, name: str, scope: Scope = "control", *, token: str | None = None) -> str:
        """Add a token; one of the same name ends.

        Args:
            name: what people call it.
            scope: the widest of its scopes.
            token: the secret; left out, one is made.

        Raises:
            InvalidInputError: a given token is short or isn't ASCII, or there is no such scope.
        """
        if scope not in SCOPES:
            raise InvalidInputError(f"{scope!r} is no scope: {SCOPES}")
        secret = token if token is not None else secrets.token_urlsafe(_TOKEN_BYTES)
        if len(secret) < _TOKEN_BYTES or not secret.isascii() or not secret.isprintable():
            raise InvalidInputError("a token has at least 32 characters, all of them ASCII")
        self.revoke(name)
        self._grants[_digest(secret.encode())] = Grant(name, scope)
        return secret

    def revoke(self, name: str) -> bool:
        """End a token and close its connections at once; False: there is none of that name."""
        found = [(digest, grant) for digest, grant in self._grants.items() if grant.name == name]
        for digest, grant in found:
            del self._grants[digest]
            for observer in self._observers:
                observer(grant)
        return bool(found)

    def observe(self, observer: Callable[[Grant], None]) -> Registration:
        """Call `observer(grant)` whenever a token ends."""
        self._observers = (*self._observers, observer)

        def remove() -> None:
            self._observers = tuple(one for one in self._observers if one is not observer)

        return Registration(remove)

    def check(self, presented: bytes) -> Grant | None:
        """What a presented token allows; None: it is unknown. Takes the same time for every one."""
        digest, found = _digest(presented), None
        for known, grant in self._grants.items():
            if hmac.compare_digest(known, digest):
                found = grant
        return found


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def token_file(path: Path) -> str:
    """The token in a file that nobody else may read; where there is none, one is made.

    Raises:
        InvalidInputError: others may read the file, it isn't a plain file of ours, or it is empty.
        OSError: it can't be read or made.
    """
    try:
        return _read(path)
    except FileNotFoundError:
        return _write(path)


def _read(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(descriptor, encoding="ascii", errors="replace") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise InvalidInputError(f"{path} must be a file of yours that nobody else may read")
        token = file.read(1_000).strip()
    if len(token) < _TOKEN_BYTES:
        raise InvalidInputError(f"{path} holds no token: remove it, and one is made")
    return token


def _write(path: Path) -> str:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    with open(os.open(path, flags, 0o600), "w", encoding="ascii") as file:
        file.write(token + "\n")
    return token
