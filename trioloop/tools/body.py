"""One run of a tool's body: awaited or in a thread, with its deadline and its end by force (T13).

A body is told to stop once; the first cause stands. What happens then depends on what it is:

- an async body is cancelled, at once or (`on_cancel="finish"`) after `grace_s`. If it goes on for
  another `grace_s`, its fence is shielded, so that it isn't woken over and over, and it is named
  in `logging` until it ends; its real result counts if one comes;
- a body in a thread learns of it from `ToolContext.check_cancelled`, and is abandoned after
  `grace_s`.
"""

import functools
import logging
import math
from collections.abc import Awaitable, Callable
from types import FrameType

import trio

from trioloop.errors import CallCancelledError, EventEncodingError, StoreError
from trioloop.limits import Limits
from trioloop.messages import ToolCallBlock
from trioloop.ports import ToolOutcome
from trioloop.tools import failures
from trioloop.tools.alarms import Alarms
from trioloop.tools.context import ToolContext
from trioloop.tools.failures import Cause
from trioloop.tools.isolation import first_of, without_cancelled
from trioloop.tools.job import CallScope
from trioloop.tools.result import encoding_failed, is_heavy, outcome_of
from trioloop.tools.threads import ToolThreads
from trioloop.tools.tool import Tool

MakeContext = Callable[[trio.Nursery | None], ToolContext]

_log = logging.getLogger("trioloop.tools")


class Body:
    """The run of one call's body, from before it starts to its end.

    Attributes:
        cause: why it was told to stop; None: it wasn't.
        started: whether any of the tool's code has run.
        ended: whether it has come to an end.
        completed: whether it came to it with an outcome.
        abandoned: whether its thread was left behind.
    """

    __slots__ = (
        "_alarms",
        "_block",
        "_fence",
        "_limits",
        "_scope",
        "_stopped_at",
        "_threads",
        "_tool",
        "abandoned",
        "cause",
        "completed",
        "ended",
        "started",
    )

    def __init__(
        self, block: ToolCallBlock, limits: Limits, alarms: Alarms, threads: ToolThreads
    ) -> None:
        self._block = block
        self._limits = limits
        self._alarms = alarms
        self._threads = threads
        self._stopped_at: float | None = None
        self._scope: CallScope | None = None
        self.cause: Cause | None = None
        self.started = False
        self.ended = False
        self.completed = False
        self.abandoned = False

    @property
    def _name(self) -> str:
        return f"{self._block.name} ({self._block.call})"

    def enter(self, scope: CallScope | None) -> None:
        """Its call starts inside `scope`, which cancels it alone."""
        self._scope = scope

    # Stopping

    def stop(self, cause: Cause) -> None:
        """Tell it to stop. Only the first cause counts, and none after its end."""
        if self.cause is not None or self.ended:
            return
        self.cause = cause
        if not self.started:
            self._cancel()
        elif not self._tool.is_async:
            self._alarms.after(self._limits.grace_s, self._abandon)
        elif self._tool.on_cancel == "finish" and cause != "timeout":
            self._alarms.after(self._limits.grace_s, self._cancel_running)
        else:
            self._cancel_running()

    def _cancel(self) -> None:
        if self.cause != "aborted" and self._scope is not None:  # else the turn's scope does it
            self._scope.cancel()

    def _cancel_running(self) -> None:
        if self.ended:
            return
        self._fence.shield = False
        self._cancel()
        self._stopped_at = trio.current_time()
        self._alarms.after(self._limits.grace_s, self._name_stuck)

    def _name_stuck(self) -> None:
        if self.ended:
            return
        self._fence.shield = True  # it swallows each `Cancelled`: more of them only burn a core
        assert self._stopped_at is not None
        after = trio.current_time() - self._stopped_at
        _log.warning("%s was cancelled %.0f s ago and goes on", self._name, after)
        self._alarms.after(self._limits.stuck_warning_s, self._name_stuck)

    def _abandon(self) -> None:
        if not self.ended:
            self._fence.cancel()

    async def look(self) -> None:
        """Raise its cancel once more, if it has been cancelled, even where it is named as stuck."""
        if self._stopped_at is not None:
            self._fence.shield = False
            await trio.lowlevel.checkpoint_if_cancelled()

    # Running

    async def run(
        self,
        tool: Tool,
        arguments: dict[str, object],
        context: MakeContext,
        fence: trio.CancelScope,
    ) -> ToolOutcome:
        """Run it and tell what it came to, whatever it raised.

        Raises:
            trio.Cancelled: it was cancelled, or its thread abandoned.
            KeyboardInterrupt: it came while the body ran.
            StoreError: the body met the failure of a store.
        """
        self._tool = tool
        self._fence = fence
        try:
            if tool.is_async:
                outcome = await self._run_awaited(arguments, context)
            else:
                outcome = await self._run_in_thread(arguments, context)
        except BaseException as error:  # a body may raise anything; most of it is its own result
            outcome = self._outcome_of_error(error)
        finally:
            self._rest()
        self.completed = True
        return outcome

    async def _run_awaited(self, arguments: dict[str, object], context: MakeContext) -> ToolOutcome:
        self._begin()
        if self._tool.context_parameter is None:
            value = await _unprotected(self._tool.run(arguments))
        else:
            value = await self._run_with_nursery(arguments, context)
        self._rest()
        if is_heavy(value):
            with trio.CancelScope(shield=True):  # bounded by the size of the value
                return await trio.to_thread.run_sync(_outcome, value)
        return _outcome(value)

    def _begin(self) -> None:
        """The tool's code runs from here on."""
        self.started = True
        if not self._tool.is_async or self._tool.on_cancel == "finish":
            self._fence.shield = True
        if self._tool.timeout_s is not None:
            self._alarms.after(self._tool.timeout_s, functools.partial(self.stop, "timeout"))

    def _rest(self) -> None:
        self.ended = True
        if self._fence.shield:  # setting it costs more than looking
            self._fence.shield = False

    async def _run_with_nursery(self, arguments: dict[str, object], context: MakeContext) -> object:
        async with trio.open_nursery() as nursery:
            value = await _unprotected(self._tool.run(arguments, context(nursery)))
            nursery.cancel_scope.cancel()
        return value

    async def _run_in_thread(
        self, arguments: dict[str, object], context: MakeContext
    ) -> ToolOutcome:
        tool = self._tool
        given = None if tool.context_parameter is None else context(None)
        try:
            return await self._threads.run(
                self._name, lambda: _outcome(tool.run(arguments, given)), self._begin
            )
        except trio.Cancelled:
            self.abandoned = self._fence.cancel_called  # which only `_abandon` does
            raise

    def _outcome_of_error(self, error: BaseException) -> ToolOutcome:
        """The outcome of a body that raised; what isn't its own is raised on."""
        interrupt = first_of(error, KeyboardInterrupt)
        if interrupt is not None:
            raise interrupt
        store = first_of(error, StoreError)
        if store is not None:
            raise store
        rest = without_cancelled(error)
        if rest is None:
            if self.cause is None and trio.current_effective_deadline() != -math.inf:
                return failures.leaked()
            raise error
        if self.cause is not None and isinstance(rest, CallCancelledError):
            return failures.stopped(self.cause, ran=True)
        return failures.raised(rest)


def body_in(frame: FrameType) -> str | None:
    """The tool whose body runs inside a frame; None: the frame is none that runs one."""
    if frame.f_code is not Body.run.__code__:
        return None
    body: Body = frame.f_locals["self"]
    return f"the tool {body._name}"


def _outcome(value: object) -> ToolOutcome:
    try:
        return outcome_of(value)
    except EventEncodingError as error:
        return encoding_failed(error)


@trio.lowlevel.disable_ki_protection
async def _unprotected(body: Awaitable[object]) -> object:
    """Let Ctrl-C interrupt the tool's own code, as in any program."""
    return await body
