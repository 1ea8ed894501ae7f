"""What the calls of one answer are given, and what they share while they run."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeAlias

import attrs
import trio

from trioloop.errors import StoreError
from trioloop.events import Event, EventData
from trioloop.handles import AgentHandle
from trioloop.hooks import Hooks
from trioloop.ids import CallId
from trioloop.limits import Limits
from trioloop.messages import UserMessage
from trioloop.ports import Approver, ToolOutcome
from trioloop.tools.alarms import Alarms
from trioloop.tools.context import NestedCall
from trioloop.tools.failures import Cause
from trioloop.tools.places import Capacity
from trioloop.tools.policies import Policies
from trioloop.tools.registry import ResolvedToolSet
from trioloop.tools.threads import ToolThreads


class SessionLog(Protocol):
    """What calls need of the session that they are recorded in."""

    @property
    def failure(self) -> StoreError | None:
        """Why its store takes no more; None: it does."""
        ...

    def append(self, *facts: EventData) -> tuple[Event, ...]:
        """Append facts, all or none."""
        ...

    async def gate(self) -> None:
        """Wait until everything appended so far is durable (D2)."""
        ...


@attrs.frozen
class Progress:
    """A running call reports progress."""

    call: CallId
    message: str | None = None
    done: float | None = None
    total: float | None = None


@attrs.frozen
class BodyEnded:
    """A call's body has ended; its result is recorded once all before it are (T4)."""

    call: CallId


@attrs.frozen(eq=False, kw_only=True)
class Batch:
    """What a step gives its calls.

    Attributes:
        agent: whose calls.
        session: where they are recorded.
        tools: the step's tool set, with its guards.
        hooks: of each scope, the widest first.
        limits: how many may run, and for how long after a cancel.
        threads: for synchronous bodies.
        places: shared with other agents; None: only the agent's own limit counts.
        approver: asks a person; None: nobody can be asked.
        add_contexts: given the messages that results added, after all are recorded (T7).
        notify: told of progress, and of the ends of bodies.
        running: where each call of the batch can be found as long as it has no result (T12).
    """

    agent: AgentHandle
    session: SessionLog
    tools: ResolvedToolSet
    hooks: tuple[Hooks, ...]
    limits: Limits
    threads: ToolThreads
    places: Capacity | None
    approver: Approver | None
    add_contexts: Callable[[tuple[UserMessage, ...]], None]
    notify: Callable[[Progress | BodyEnded], None]
    running: dict[CallId, Any]  # Any: of `RunningCall`, which is made from this


class Stoppable(Protocol):
    """A call that can be told to stop."""

    def cancel(self) -> None:
        """Cancel it alone (T12)."""
        ...

    def stop(self, cause: Cause) -> None:
        """Tell it to stop."""
        ...


# Any: a `RunningCall`, which is made from this
Nest: TypeAlias = Callable[[Any, Sequence[NestedCall]], Awaitable[list[ToolOutcome]]]


class BatchRun:
    """What the calls of one batch, and the calls that those make, share while it runs.

    Args:
        batch: what they run with.
        capacity: the places that all of them stand in; None: the batch's limit is enough.
        nest: runs calls for the body of one of them.
    """

    __slots__ = ("alarms", "batch", "capacity", "failed", "nest", "policies", "post_left_s")

    def __init__(self, batch: Batch, capacity: Capacity | None, nest: Nest) -> None:
        self.batch = batch
        self.capacity = capacity
        self.nest = nest
        self.policies = Policies(batch.hooks, batch.approver)
        self.alarms = Alarms()
        self.post_left_s = batch.limits.post_s
        self.failed = False

    def fail(self, fault: BaseException) -> None:
        """The pool is about to stop; only what isn't a fault of its own is nobody's failure."""
        self.failed = not isinstance(fault, KeyboardInterrupt | StoreError)

    async def watch(self, jobs: Sequence[Stoppable], done: trio.Event) -> None:
        """Keep the batch's times; cancelled, tell every call and keep them until all have ended."""
        await _attend(jobs, lambda: "aborted", lambda: self.alarms.keep(done))

    async def follow(
        self, jobs: Sequence[Stoppable], cause: Callable[[], Cause], done: trio.Event
    ) -> None:
        """As `watch`, for calls that a call of the batch makes: the batch's watch keeps times."""
        await _attend(jobs, cause, done.wait)


async def _attend(
    jobs: Sequence[Stoppable],
    cause: Callable[[], Cause],
    wait: Callable[[], Awaitable[None]],
) -> None:
    """Wait for the end of calls; cancelled, tell each of them, and wait on until all have ended."""
    try:
        await wait()
    except trio.Cancelled:
        for job in jobs:
            job.stop(cause())
        with trio.CancelScope(shield=True):  # bounded by the bodies, see T13
            await wait()
        raise
