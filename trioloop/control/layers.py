"""Exceptions that come out of our own nurseries as they went in."""

from collections.abc import Iterator
from contextlib import contextmanager

import trio


@contextmanager
def own_layers_off() -> Iterator[None]:
    """Take off the groups that nurseries put around what the block raises.

    A `Cancelled` beside something else is an echo of it, and is left out.
    """
    try:
        yield
    except BaseExceptionGroup as group:
        raise _inner(group) from None


def _inner(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        others = error.split(trio.Cancelled)[1]
        error = error if others is None else others
        if len(error.exceptions) != 1:
            return error.exceptions[0] if others is None else error
        error = error.exceptions[0]
    return error
