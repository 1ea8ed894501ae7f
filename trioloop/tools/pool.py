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
and each takes the head again and again. They are summoned by need: when a body first waits, its
worker sees whether more could start beside it, and if so gets at most two others to look at the
head, parked ones or new ones; they do the same. Whoever looks first takes the head, so calls start
strictly in model order whatever order Trio runs its tasks in, and a batch of calls that never wait
has one worker. Who finds nothing to do parks in a lot. A worker that has ended a body needs no
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

from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from typing import TypeVar

import outcome
import trio

from trioloop.machine.plan import Mode, Plan
from trioloop.tools.isolation import first_of, in_context, left_nursery_open
from trioloop.tools.job import CallScope, Job, Watch
from trioloop.tools.places import Capacity, Place, whole_number
from trioloop.tools.plain import Call, PlainJob, run_alone

__all__ = ["Call", "run_calls", "run_jobs"]

ResultT = TypeVar("ResultT")

_SUMMONED_MAX = 2  # each who lets a call run: so all places are taken soon, and O(1) for a call


async def run_jobs(
    jobs: Sequence[Job],
    *,
    limit: int,
    capacity: Capacity | None = None,
    watch: Watch | None = None,
    on_fault: Callable[[BaseException], None] | None = None,
) -> None:
    """Run the calls of a batch: each started in order, and ended, or skipped; all recorded.

    A checkpoint. Cancelled, it ends when all bodies have ended and all results are recorded.

    Args:
        jobs: the calls in model order.
        limit: how many run at once.
        capacity: places shared with other pools, one for each body.
        watch: runs in the calling task until the event it is given is set; cancelled, it may go
            on under a shield for as long as bodies do. With it, each call can be cancelled alone.
        on_fault: told what is going to stop the pool, before anything is cancelled.

    Raises:
        InvalidInputError: the limit is no number from 1 on.
        BaseException: what stopped the pool.
    """
    pool = _Pool(jobs, whole_number("limit", limit), capacity, watch, on_fault)
    await pool.run()


class _Pool:
    """One batch under way."""

    def __init__(
        self,
        jobs: Sequence[Job],
        limit: int,
        capacity: Capacity | None,
        watch: Watch | None,
        on_fault: Callable[[BaseException], None] | None,
    ) -> None:
        self._jobs = jobs
        self._plan = Plan(len(jobs), limit)
        self._capacity = capacity
        self._watch = watch
        self._on_fault = on_fault
        self._context = copy_context()
        self._lot = trio.lowlevel.ParkingLot()  # workers that may not start the head
        self._quiet = trio.lowlevel.ParkingLot()  # the starting call, which became a barrier
        self._done = trio.Event()
        self._fault: BaseException | None = None
        self._mode: Mode | None = None  # of the head, as it was just read
        self._posting = False
        self._summoned = 0  # workers on their way to look at the head
        self._workers = 0
        self._workers_max = min(limit, len(jobs))
        self._alive = 0

    @trio.lowlevel.enable_ki_protection
    async def run(self) -> None:
        """Run the batch to its end; see `run_jobs`."""
        stopped = None
        try:
            await trio.lowlevel.checkpoint_if_cancelled()
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
        cancelled = first_of(stopped, trio.Cancelled)
        if cancelled is not None:
            raise cancelled
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
            if self._on_fault is not None:
                self._on_fault(fault)
        self._nursery.cancel_scope.cancel()

    @trio.lowlevel.enable_ki_protection
    async def _work(self) -> None:
        """A worker: take the head, again and again, until none is left."""
        self._summoned = max(self._summoned - 1, 0)
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
        clean = True
        with trio.CancelScope() as outer:
            scope = CallScope(outer)
            clean = await self._run_head(scope)
            while clean and not scope.cancelled and await self._wait_for_head():
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
            self._summoned = max(self._summoned - 1, 0)
        return False

    def _summon(self) -> None:
        """Get workers to look at the head, if it might start now."""
        while self._summoned < min(_SUMMONED_MAX, self._plan.room):
            if self._lot:
                self._lot.unpark()
            elif self._workers < self._workers_max:
                self._spawn_worker()
            else:
                return
            self._summoned += 1

    async def _run_head(self, scope: CallScope | None) -> bool:
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
        return error is None or not left_nursery_open()

    async def _run_fenced(self, job: Job, asks: bool) -> BaseException | None:
        """Run a call inside its fence and in its own context variables.

        Returns:
            What its coroutine raised.
        """
        context = copy_context()
        place = None if self._capacity is None else Place(self._capacity)
        try:
            with trio.CancelScope() as fence:
                if asks and not await in_context(context, job.admit()):
                    return None
                if asks or place is not None:
                    await self._wait_for_place(job, asks, place)
                self._plan.run(self._mode)
                await in_context(context, job.run(fence, place), self._summon)
        except BaseException as error:  # whatever a body raises is its call's end
            return error
        finally:
            if place is not None:
                place.give_back()
        return None

    async def _wait_for_place(self, job: Job, asks: bool, place: Place | None) -> None:
        """Wait for what the starting call may still have to wait for, and look once more."""
        if asks:
            while not self._plan.fits(mode := job.mode()):
                await self._quiet.park()  # its arguments were changed, and made it a barrier
            self._mode = mode
        if place is not None:
            await place.take()
        await trio.lowlevel.checkpoint_if_cancelled()

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
            if job.waits_for_policy and (fault := await job.post()) is not None:
                self._stop(fault)
            self._record_next()
            self._summon()


# The pool alone (T10)


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
    jobs = [PlainJob(call) for call in calls]
    if len(jobs) == 1:
        whole_number("limit", limit)
        await run_alone(jobs[0])
    else:
        await run_jobs(jobs, limit=limit)
    return [job.result for job in jobs]
