"""A plain call of an async function, as the pool drives it (T10)."""

import math
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Any, Generic, TypeVar

import attrs
import outcome
import trio

from trioloop.errors import LeakedCancelError
from trioloop.machine.plan import Mode
from trioloop.tools.isolation import first_of, in_context, without_cancelled
from trioloop.tools.job import CallScope
from trioloop.tools.places import Place

ResultT = TypeVar("ResultT")


@attrs.frozen
class Call(Generic[ResultT]):
    """A call of an async function, for `run_calls`.

    Attributes:
        fn: what is called.
        args: its positional arguments.
        mode: whether it may overlap with others, or runs alone.
    """

    fn: Callable[..., Awaitable[ResultT]]
    args: tuple[Any, ...] = ()  # whatever `fn` takes
    mode: Mode = attrs.field(
        default="concurrent", validator=attrs.validators.in_(("concurrent", "barrier"))
    )


class PlainJob(Generic[ResultT]):
    """A `Call` with what it came to."""

    __slots__ = ("_call", "_value", "result")

    waits_for_policy = False
    result: outcome.Outcome[ResultT]

    def __init__(self, call: Call[ResultT]) -> None:
        self._call = call

    def mode(self) -> Mode:
        return self._call.mode

    def start(self, scope: CallScope | None) -> bool:
        return False

    async def admit(self) -> bool:
        return True

    @trio.lowlevel.disable_ki_protection
    async def run(self, fence: trio.CancelScope, place: Place | None) -> None:
        self._value = await self._call.fn(*self._call.args)

    def end(self, error: BaseException | None) -> BaseException | None:
        if error is None:
            self.result = outcome.Value(self._value)
            return None
        self.result = outcome.Error(_without_leak(error))
        return first_of(error, KeyboardInterrupt)

    def skip(self) -> None:
        """The pool raises `Cancelled`, so nobody sees its result."""

    async def post(self) -> BaseException | None:
        return None  # there is no policy

    def record(self) -> None:
        """Its result is there already."""


def _without_leak(error: BaseException) -> BaseException:
    """An error without each `Cancelled` that is nobody's."""
    rest = without_cancelled(error)
    if rest is not None:
        return rest
    if trio.current_effective_deadline() == -math.inf:
        return error
    return LeakedCancelError("the call raised trio.Cancelled though nothing was cancelled")


@trio.lowlevel.enable_ki_protection
async def run_alone(job: PlainJob[ResultT]) -> None:
    """A batch of one: in the task that asks, as nothing can overlap."""
    await trio.lowlevel.checkpoint_if_cancelled()
    error = None
    try:
        with trio.CancelScope() as fence:
            await in_context(copy_context(), job.run(fence, None))
    except BaseException as raised:  # whatever a body raises is its call's end
        error = raised
    fault = job.end(error)
    if fault is not None:
        raise fault
    if first_of(error, trio.Cancelled) is not None:
        await trio.lowlevel.checkpoint_if_cancelled()
    await trio.lowlevel.cancel_shielded_checkpoint()  # a schedule point; the result is there
