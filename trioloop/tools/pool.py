"""The pool that runs the calls of one message: many at once, in order, each on its own.

Theory of operation
===================

A batch is a list of calls in the order in which the model wrote them. Two lanes pass over it from
front to back, and never wait for each other (T4):

- *Starting*. The head is the first call that hasn't started. It starts once a place is free, no
  barrier is in the way and, if it's a barrier itself, all before it are recorded. What has to be
  asked before it may run (an approval, say) is asked in the lane, so that calls are asked about in
  order, and while no place is held. Then it takes a place, and the lane is free for the next.
- *Recording*. A result is recorded as soon as it's there and all earlier ones are recorded. What
  has to be awaited before that (a policy that reads the result) is awaited in the lane too.

Between the lanes bodies overlap. `machine.plan.Plan` does the bookkeeping of both lanes; it is
pure. This file gives it tasks, scopes and context variables. What a call is, it doesn't know: it
drives anything that has the methods of `Job`.

Workers. A task for each call would cost more than most calls. A batch has at most `limit` workers,
and each takes the head again and again. They are started one by one: whoever lets a call run sees
whether one more could start beside it, and if so wakes a parked worker or starts a new one. So
calls start strictly in model order whatever order Trio runs its tasks in, a batch of quick calls
never has more than two workers, and a worker that finds nothing to do parks in a lot where each
start, and each record that a barrier waits for, wakes one. A worker that has ended a body needs no
waking: it looks at the head itself. Nothing polls; n calls cost O(n).

Who records. The worker that ended a body records it, and whatever was waiting for it, as long as
no policy has to be awaited. As soon as one has to, a task of its own, the poster, goes on with the
recording lane, and the worker with its next call: a slow policy never holds a place.

Scopes. Each worker has an outer cancel scope, each call an inner one in it, the fence.

    turn's scope > nursery > worker's scope > fence > the call's own coroutine

`job.start` is given the outer one: cancelling it cancels that call alone. A scope can't be used
again after that, so the worker opens a new one. The fence has three uses. It can be shielded, for
a body that may finish, or that swallows its cancel and would otherwise be woken 60,000 times a
second; a scope can't be shielded from its own cancellation, which is why there are two. And a body
that forgets to close a scope would leave its worker inside it, where a later cancel passes the
worker by: closing the fence repairs Trio's stack and raises, so the fault stays with its call.

Context variables. The coroutine of a call runs in a copy of the batch's context, in which
`in_context` steps it by hand. A copy costs nothing until somebody sets a variable, and nothing
that a body sets is seen by the worker's next call.

Cancelling. Before each start, directly, `checkpoint_if_cancelled` is asked: looking at a scope
would miss cancels from further out, and workers that run in the same batch of task steps as the
one who cancelled would each start one more. A body that is cancelled ends in its worker, which
records it like any other end (T9). The worker then ends at its next look. When all have ended, the
task that called the pool lets what never started be skipped, records the rest in order, and lets
`Cancelled` go up.

That task does nothing else, so it keeps the time: it runs `watch`, where the caller of the pool
can wait for deadlines, and learns of the cancel before anything has to end.

Faults. Whatever a call's coroutine raises goes to `job.end`; the pool raises none of it. An
exception that `job.end` gives back, `KeyboardInterrupt` above all, and one that a job raises
outside its coroutine stop the pool: nothing starts any more, bodies are cancelled, the rest is
recorded, and it goes up. Workers run protected from `KeyboardInterrupt`, bodies don't.

A body that leaves a *nursery* open leaves it in its worker's task, which Trio then lets end only
with an error. That worker cancels the nursery, gives its work to a new one and waits for the end
of the batch before it ends, when its error can't hurt anybody.
"""

import math
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextvars import Context, copy_context
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import attrs
import outcome
import trio

from trioloop.errors import LeakedCancelError
from trioloop.machine.plan import Mode, Plan
from trioloop.tools.places import Capacity, Place, whole_number

ResultT = TypeVar("ResultT")
Watch: TypeAlias = Callable[[trio.Event], Awaitable[None]]


class Job(Protocol):
    """One call, as the pool drives it. Methods without `async` are one synchronous stretch.

    An exception out of `admit` or `run` is the call's; one out of any other method is a fault that
    stops the pool.
    """

    def mode(self) -> Mode | None:
        """Its mode, read when it is about to start (T1). None: it needs no body and no place."""
        ...

    def start(self, scope: trio.CancelScope | None) -> bool:
        """It starts. `scope` cancels it alone; there is one where the pool has a `watch`.

        Returns:
            Whether `admit` has to be awaited first.
        """
        ...

    async def admit(self) -> bool:
        """Ask whether it may run. Without a place, one call at a time, in order."""
        ...

    async def run(self, fence: trio.CancelScope, place: Place | None) -> None:
        """Run its body, in a place and inside its fence."""
        ...

    def end(self, error: BaseException | None) -> BaseException | None:
        """It has ended, by what its coroutine raised, if anything. Outside its fence.

        Returns:
            What has to stop the pool and go up; None: go on.
        """
        ...

    def skip(self) -> None:
        """It never started, and won't."""
        ...

    @property
    def waits_for_policy(self) -> bool:
        """Whether `post` has to be awaited before `record`."""
        ...

    async def post(self) -> None:
        """Ask what becomes of its result. Ends in bounded time even when cancelled."""
        ...

    def record(self) -> None:
        """Record its result."""
        ...


async def run_jobs(
    jobs: Sequence[Job], *, limit: int, capacity: Capacity | None = None, watch: Watch | None = None
) -> None:
    """Run the calls of a batch: each started in order, and ended, or skipped; all recorded.

    A checkpoint. Cancelled, it ends when all bodies have ended and all results are recorded.

    Args:
        jobs: the calls in model order.
        limit: how many run at once.
        capacity: places shared with other pools, one for each body.
        watch: runs in the calling task until the event it is given is set; cancelled, it may go
            on under a shield for as long as bodies do. With it, each call can be cancelled alone.

    Raises:
        InvalidInputError: the limit is no number from 1 on.
        BaseException: what stopped the pool.
    """
    await _Pool(jobs, whole_number("limit", limit), capacity, watch).run()


class _Pool:
    """One batch under way."""

    __slots__ = (
        "_alive",
        "_capacity",
        "_context",
        "_done",
        "_fault",
        "_jobs",
        "_lot",
        "_mode",
        "_nursery",
        "_plan",
        "_posting",
        "_quiet",
        "_summoned",
        "_watch",
        "_workers",
        "_workers_max",
    )

    def __init__(
        self, jobs: Sequence[Job], limit: int, capacity: Capacity | None, watch: Watch | None
    ) -> None:
        self._jobs = jobs
        self._plan = Plan(len(jobs), limit)
        self._capacity = capacity
        self._watch = watch
        self._context = copy_context()
        self._lot = trio.lowlevel.ParkingLot()  # workers that may not start the head
        self._quiet = trio.lowlevel.ParkingLot()  # the starting call, which became a barrier
        self._done = trio.Event()
        self._fault: BaseException | None = None
        self._mode: Mode | None = None  # of the head, as it was just read
        self._posting = False
        self._summoned = False  # a worker is on its way to look at the head
        self._workers = 0
        self._workers_max = min(limit, len(jobs))
        self._alive = 0

    @trio.lowlevel.enable_ki_protection
    async def run(self) -> None:
        """Run the batch to its end; see `run_jobs`."""
        stopped = None
        try:
            async with trio.open_nursery() as self._nursery:
                if self._jobs:
                    self._spawn_worker()
                    if self._watch is not None:
                        await self._keep_watch(self._watch)
        except BaseException as error:  # everything is to be recorded first; then it goes on
            stopped = error
        await self._finish(stopped)

    async def _keep_watch(self, watch: Watch) -> None:
        try:
            await watch(self._done)
        except trio.Cancelled:
            raise
        except BaseException as error:  # it goes up when all is recorded
            self._stop(error)

    async def _finish(self, stopped: BaseException | None) -> None:
        """Record what is left, then let go up what stopped the pool."""
        plan = self._plan
        while plan.head < plan.calls:
            self._jobs[plan.skip()].skip()
        await self._post()
        assert plan.recorded == plan.calls, "a call has no result"
        fault = self._fault or first_of(stopped, KeyboardInterrupt)
        if fault is not None:
            raise fault
        if stopped is not None and first_of(stopped, trio.Cancelled) is not None:
            await trio.lowlevel.checkpoint_if_cancelled()
            raise stopped
        # What else may have come is Trio's word about a nursery that a body left open: that body's
        # call has been told.

    # Tasks

    def _spawn_worker(self) -> None:
        self._workers += 1
        self._spawn(self._work)

    def _spawn(self, task: Callable[[], Awaitable[None]]) -> None:
        """Start a task of the batch, in the batch's context whatever the current one is."""
        self._alive += 1
        self._context.run(self._nursery.start_soon, task)

    def _leave(self) -> None:
        self._alive -= 1
        if not self._alive:
            self._done.set()

    def _stop(self, fault: BaseException) -> None:
        """Let nothing start any more, and cancel what runs. The first fault goes up."""
        if self._fault is None:
            self._fault = fault
        self._nursery.cancel_scope.cancel()

    @trio.lowlevel.enable_ki_protection
    async def _work(self) -> None:
        """A worker: take the head, again and again, until none is left."""
        self._summoned = False
        clean = True
        try:
            while clean and await self._wait_for_head():
                clean = await (self._run_head(None) if self._watch is None else self._serve())
        except trio.Cancelled:
            raise
        except BaseException as error:  # a fault of ours or of a job; it goes up from `run`
            self._stop(error)
        finally:
            if not clean:
                self._workers -= 1
                self._spawn_worker()
            self._leave()
        if not clean:
            await self._done.wait()

    async def _serve(self) -> bool:
        """Run calls, from the head that may start now on, until one is cancelled alone.

        Returns:
            Whether this task is as it was before.
        """
        with trio.CancelScope() as scope:
            clean = await self._run_head(scope)
            while clean and not scope.cancel_called and await self._wait_for_head():
                clean = await self._run_head(scope)
        return clean

    # The starting lane

    async def _wait_for_head(self) -> bool:
        """Wait until the head may start.

        Returns:
            False: none is left.
        """
        plan = self._plan
        while plan.head < plan.calls:
            if plan.may_start and plan.fits(mode := self._jobs[plan.head].mode()):
                self._mode = mode
                await trio.lowlevel.checkpoint_if_cancelled()
                return True
            await self._lot.park()
            self._summoned = False
        return False

    def _summon(self) -> None:
        """Get a worker to look at the head, if it might start now."""
        if self._summoned or not self._plan.may_start:
            return
        if self._lot:
            self._summoned = True
            self._lot.unpark()
        elif self._workers < self._workers_max:
            self._summoned = True
            self._spawn_worker()

    async def _run_head(self, scope: trio.CancelScope | None) -> bool:
        """Take the head from its start to its end.

        Returns:
            Whether this task is as it was before.
        """
        mode = self._mode
        index = self._plan.start(mode)
        job = self._jobs[index]
        if self._plan.head == self._plan.calls and self._lot:
            self._lot.unpark_all()  # nothing is left for those who wait
        error = None
        try:
            asks = job.start(scope)
            if mode is not None:
                error = await self._run_fenced(job, asks)
            fault = job.end(error)
            if fault is not None:
                self._stop(fault)
        finally:
            self._plan.end(index)
            self._record_ended()
        return error is None or not _left_nursery_open()

    async def _run_fenced(self, job: Job, asks: bool) -> BaseException | None:
        """Run a call inside its fence and in its own context variables.

        Returns:
            What its coroutine raised.
        """
        context = copy_context()
        place = None
        try:
            with trio.CancelScope() as fence:
                if asks and not await in_context(context, job.admit()):
                    return None
                if asks or self._capacity is not None:
                    place = await self._wait_for_place(job, asks)
                self._plan.run(self._mode)
                await in_context(context, job.run(fence, place), self._summon)
        except BaseException as error:  # whatever a body raises is its call's end
            return error
        finally:
            if place is not None:
                place.give_back()
        return None

    async def _wait_for_place(self, job: Job, asks: bool) -> Place | None:
        """Wait for what the starting call may still have to wait for, and look once more."""
        while asks and not self._plan.fits(mode := job.mode()):
            await self._quiet.park()  # its arguments were changed, and made it a barrier
        if asks:
            self._mode = mode
        place = None
        if self._capacity is not None:
            place = Place(self._capacity)
            await place.take()
        await trio.lowlevel.checkpoint_if_cancelled()
        return place

    # The recording lane

    def _record_ended(self) -> None:
        """Record what is there to be recorded, up to the first that waits for a policy."""
        plan = self._plan
        while not self._posting and plan.may_record:
            if self._jobs[plan.recorded].waits_for_policy:
                self._posting = True
                self._spawn(self._post_ended)
            else:
                self._record_next()

    def _record_next(self) -> None:
        self._jobs[self._plan.recorded].record()
        self._plan.record()
        if self._quiet:
            self._quiet.unpark()

    @trio.lowlevel.enable_ki_protection
    async def _post_ended(self) -> None:
        """The poster: goes on with the recording lane until nothing is there to be recorded."""
        try:
            await self._post()
        except trio.Cancelled:
            raise
        except BaseException as error:  # a fault of ours or of a job; it goes up from `run`
            self._stop(error)
        finally:
            self._posting = False
            self._leave()

    async def _post(self) -> None:
        plan = self._plan
        while plan.may_record:
            job = self._jobs[plan.recorded]
            if job.waits_for_policy:
                await job.post()
            self._record_next()
            self._summon()


def _left_nursery_open() -> bool:
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
    if isinstance(error, BaseExceptionGroup):
        return next((leaf for part in error.exceptions if (leaf := first_of(part, kind))), None)
    return error if isinstance(error, kind) else None


# The pool alone (T10)


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


async def run_calls(
    calls: Sequence[Call[ResultT]], *, limit: int
) -> list[outcome.Outcome[ResultT]]:
    """Run calls side by side, at most `limit` at once, barriers alone (T2, T3, T10).

    A checkpoint. One call's failure doesn't touch the others. Cancelled, it cancels the calls that
    run, waits for them and starts no more.

    Args:
        calls: what to call, in order of their starts.
        limit: how many run at once.

    Returns:
        What each returned (`outcome.Value`) or raised (`outcome.Error`), in the order given. A
        call that raised `Cancelled` though nothing was cancelled has a `LeakedCancelError`.

    Raises:
        InvalidInputError: the limit is no number from 1 on.
        KeyboardInterrupt: a call raised it; the others have been cancelled.
    """
    jobs = [_CallJob(call) for call in calls]
    if len(jobs) == 1:
        whole_number("limit", limit)
        await _run_alone(jobs[0])
    else:
        await run_jobs(jobs, limit=limit)
    return [job.result for job in jobs]


class _CallJob(Generic[ResultT]):
    """A `Call` with what it came to."""

    __slots__ = ("_call", "_value", "result")

    waits_for_policy = False
    result: outcome.Outcome[ResultT]

    def __init__(self, call: Call[ResultT]) -> None:
        self._call = call

    def mode(self) -> Mode:
        return self._call.mode

    def start(self, scope: trio.CancelScope | None) -> bool:
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

    async def post(self) -> None:
        """There is no policy."""

    def record(self) -> None:
        """Its result is there already."""


def _without_leak(error: BaseException) -> BaseException:
    """An error without `Cancelled` of nobody's."""
    if first_of(error, trio.Cancelled) is None:
        return error
    if isinstance(error, BaseExceptionGroup):
        rest = error.split(trio.Cancelled)[1]
        if rest is not None:
            return rest
    if trio.current_effective_deadline() == -math.inf:
        return error
    return LeakedCancelError("the call raised trio.Cancelled though nothing was cancelled")


@trio.lowlevel.enable_ki_protection
async def _run_alone(job: _CallJob[ResultT]) -> None:
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
