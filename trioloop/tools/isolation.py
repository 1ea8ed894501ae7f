"""What keeps one call's faults to itself: its context variables, its exceptions, its nurseries."""

import types
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from typing import Any, TypeVar

import trio

ResultT = TypeVar("ResultT")


def left_nursery_open() -> bool:
    """Whether a body has left a nursery open in this worker; if so, it is cancelled."""
    nurseries = trio.lowlevel.current_task().child_nurseries
    for nursery in nurseries:
        nursery.cancel_scope.cancel()
    return bool(nurseries)


@types.coroutine
def in_context(
    context: Context,
    coroutine: Coroutine[Any, Any, ResultT],  # what it yields is Trio's own
    at_first_wait: Callable[[], None] | None = None,
) -> Generator[Any, Any, ResultT]:
    """Await a coroutine whose context variables are those of `context`.

    Args:
        context: where it runs.
        coroutine: what is awaited.
        at_first_wait: called when it first hands control to Trio; a quick one never does.
    """
    step: Callable[[Any], Any] = coroutine.send
    value: Any = None
    while True:
        try:
            asked = context.run(step, value)
        except StopIteration as end:
            result: ResultT = end.value
            return result
        if at_first_wait is not None:
            at_first_wait()
            at_first_wait = None
        try:
            value = yield asked
        except BaseException as error:  # thrown into us, so into the coroutine
            step, value = coroutine.throw, error
        else:
            step = coroutine.send


def first_of(error: BaseException | None, kind: type[BaseException]) -> BaseException | None:
    """The first exception of a kind in an error: itself, or a leaf of a group."""
    if error is None:
        return None
    if isinstance(error, BaseExceptionGroup):
        return next((leaf for part in error.exceptions if (leaf := first_of(part, kind))), None)
    return error if isinstance(error, kind) else None


def without_cancelled(error: BaseException) -> BaseException | None:
    """What is left of an error without each `trio.Cancelled` in it."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(trio.Cancelled)[1]
    return None if isinstance(error, trio.Cancelled) else error
