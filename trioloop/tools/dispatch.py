"""Runs the calls of an answer, and those that a running call makes itself (T14).

What a call goes through is in `call`, when it does so in `pool`.
"""

import functools
from collections.abc import Sequence

import trio

from trioloop.errors import InvalidInputError
from trioloop.log.state import OpenCall
from trioloop.messages import ToolCallBlock
from trioloop.ports import ToolOutcome
from trioloop.tools import failures
from trioloop.tools.batch import Batch, BatchRun
from trioloop.tools.call import RunningCall
from trioloop.tools.context import NestedCall
from trioloop.tools.job import Watch
from trioloop.tools.nested import RunningNestedCall, nested_cause
from trioloop.tools.places import Capacity, Places
from trioloop.tools.pool import run_jobs
from trioloop.tools.rerun import RepeatedCall


async def run_batch(batch: Batch, calls: Sequence[ToolCallBlock], *, cut: bool = False) -> None:
    """Run the calls of an answer; each has exactly one result in the log, in model order (G4).

    A checkpoint. Cancelled, nothing starts any more; when all bodies have ended, everything is
    recorded and `Cancelled` goes up.

    Args:
        batch: what they run with.
        calls: the calls in model order.
        cut: the answer was cut at max tokens, so none of them may run (P14).

    Raises:
        KeyboardInterrupt: it came while a body ran.
        StoreError: the session's store failed while a call waited for it (P19).
        Exception: the scheduler itself failed (P21).
    """
    run = BatchRun(batch, _capacity(batch, calls), run_nested)
    jobs = [RunningCall(run, block) for block in calls]
    if cut:
        await _record_cut(jobs)
    else:
        await _run_watched(run, jobs)


async def run_open_calls(batch: Batch, calls: Sequence[OpenCall]) -> None:
    """Run the calls again that a dead process left open and that may be, as `run_batch` does (D4).

    A checkpoint. The others get the result that repair would have given them.

    Args:
        batch: what they run with.
        calls: all that have no result, in model order.

    Raises:
        KeyboardInterrupt, StoreError, Exception: as `run_batch`.
    """
    run = BatchRun(batch, _capacity(batch, [call.block for call in calls]), run_nested)
    await _run_watched(run, [RepeatedCall(run, call) for call in calls])


async def _run_watched(run: BatchRun, jobs: Sequence[RunningCall]) -> None:
    try:
        await _run_recorded(run, jobs, functools.partial(run.watch, jobs))
    finally:
        contexts = tuple(message for job in jobs for message in job.contexts)
        if contexts:
            run.batch.add_contexts(contexts)


def _capacity(batch: Batch, calls: Sequence[ToolCallBlock]) -> Capacity | None:
    """Places that an answer's calls share with the calls that they make, if any can make some."""
    for name in {block.name for block in calls}:
        tool = batch.tools.lookup(name)
        if tool is not None and tool.is_async and tool.context_parameter is not None:
            return Places(batch.limits.calls_max, wider=batch.places)
    return batch.places


async def _record_cut(jobs: Sequence[RunningCall]) -> None:
    for job in jobs:
        job.outcome = failures.cut()
        job.record()
    await trio.lowlevel.checkpoint()


async def _run_recorded(run: BatchRun, jobs: Sequence[RunningCall], watch: Watch) -> None:
    """Run calls in the pool; however that ends, each of them is recorded."""
    batch = run.batch
    batch.running.update((job.id, job) for job in jobs)
    try:
        await run_jobs(
            jobs,
            limit=batch.limits.calls_max,
            capacity=run.capacity,
            watch=watch,
            on_fault=run.fail,
        )
    except Exception:  # what is missing gets its result; then it goes on
        for job in jobs:
            if not job.recorded:
                job.outcome = failures.internal()
                job.record()
        raise
    finally:
        for job in jobs:
            batch.running.pop(job.id, None)


async def run_nested(parent: RunningCall, calls: Sequence[NestedCall]) -> list[ToolOutcome]:
    """Run calls for the body of a call, which lends them its place meanwhile (T14).

    A checkpoint. The calls are a batch of their own: the limit counts them beside all others,
    barriers are alone among them. Groups that one body asks for at once run one after the other.

    Returns:
        What each came to, in the order given.

    Raises:
        InvalidInputError: the call that asks for them has ended.
    """
    if parent.given.closed:
        raise InvalidInputError(f"the call {parent.id!r} has ended: it can't make calls")
    run = parent.batch_run
    async with parent.given.nesting, parent.given.lend_place():
        jobs = [RunningNestedCall(parent, call) for call in calls]
        try:
            cause = functools.partial(nested_cause, parent)
            await _run_recorded(run, jobs, functools.partial(run.follow, jobs, cause))
            await parent.look()
        except Exception as error:
            parent.fault = error if run.failed else None
            raise
        finally:
            parent.given.contexts.extend(message for job in jobs for message in job.contexts)
    return [job.outcome for job in jobs if job.outcome is not None]
