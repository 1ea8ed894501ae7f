"""Identifiers: what they look like and how they are made.

Only the three identifiers of the log live here. A run is reproducible when its
`Ids` is: nothing else in trioloop draws a random name.
"""

import re
import secrets
from collections.abc import Callable
from functools import lru_cache
from typing import NewType, cast

import attrs

from trioloop.errors import InvalidInputError

SessionId = NewType("SessionId", str)
MessageId = NewType("MessageId", str)
CallId = NewType("CallId", str)

_SESSION_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def session_id(text: str) -> SessionId:
    """Check a session's name and return it as a `SessionId`.

    Args:
        text: 1 to 64 characters of `a-z`, `0-9`, `_` and `-`, the first of them a letter or digit.

    Raises:
        InvalidInputError: the name has another form.
    """
    if _SESSION_ID.fullmatch(text) is None:
        raise InvalidInputError(
            f"{text!r} can't name a session: use 1 to 64 characters of a-z, 0-9, '_' and '-', "
            "the first of them a letter or digit"
        )
    return SessionId(text)


def call_id(turn: int, step: int, index: int) -> CallId:
    """The id of the call at `index` (from 0) in the answer of a step: unique in its session.

    It is derived, never drawn, so that the same log always gives the same ids.
    """
    return CallId(f"call_{turn}_{step}_{index}")


def call_ids(turn: int, step: int, calls: int) -> list[CallId]:
    """The ids of the calls in the answer of a step, in order, when it has so many."""
    begin = f"call_{turn}_{step}_"
    return cast("list[CallId]", [begin + index for index in _indexes(calls)])


@lru_cache  # writing numbers would be most of the work
def _indexes(calls: int) -> tuple[str, ...]:
    return tuple(map(str, range(calls)))


def nested_call_id(parent: CallId, index: int) -> CallId:
    """The id of the nested call at `index` (from 0) of a call that runs calls of its own."""
    return CallId(f"{parent}_{index}")


@attrs.frozen
class Ids:
    """Makes the identifiers that can't be derived.

    Args:
        token_hex: given a number of bytes, returns twice as many hexadecimal characters that were
            never returned before. A seeded one makes equal runs write equal logs (G10).
    """

    token_hex: Callable[[int], str] = secrets.token_hex

    def message(self) -> MessageId:
        """A new message's id."""
        return MessageId(f"msg_{self.token_hex(8)}")

    def session(self) -> SessionId:
        """A new session's name."""
        return SessionId(f"s{self.token_hex(6)}")
