"""Drives one program on Trio: its worker in threads, its calls through the step's tools.

One thread hop starts the program, and one more follows each call or gather. Whatever ends the
block, the worker process is killed and waited for, so nothing of a program outlives its call.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias, TypeVar

import trio

from trioloop.ext.code.worker import Answer, Ended, Failed, Stop, Waiting, Worker

ResultT = TypeVar("ResultT")

_THREADS_MAX = 16  # programs at work at once; one that waits for calls has no thread

_limiter = trio.lowlevel.RunVar[trio.CapacityLimiter]("trioloop.ext.code.limiter")

AnswerCalls: TypeAlias = Callable[[Waiting], Awaitable[Mapping[int, Answer]]]


async def run_program(worker: Worker, code: str, answer: AnswerCalls) -> Ended | Failed:
    """Run a program to its end.

    A checkpoint. Cancelled, it kills the worker at once.

    Args:
        worker: a fresh one.
        code: the program.
        answer: makes the calls that it waits for.

    Raises:
        Exception: whatever `answer` raised.
    """
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_kill_at_the_end, worker)
            stop = await _drive(worker, code, answer)
            nursery.cancel_scope.cancel()
        return stop
    finally:
        with trio.CancelScope(shield=True):  # bounded: the process was killed
            await _in_thread(worker.close)


async def _drive(worker: Worker, code: str, answer: AnswerCalls) -> Ended | Failed:
    stop: Stop = await _in_thread(lambda: worker.start(code))
    while isinstance(stop, Waiting):
        answers = await answer(stop)
        stop = await _in_thread(lambda answers=answers: worker.resume(answers))  # type: ignore[misc]
    return stop


async def _kill_at_the_end(worker: Worker) -> None:
    """Kill the worker when the program ends or is cancelled, so that its thread comes back."""
    try:
        await trio.sleep_forever()
    finally:
        worker.kill()


async def _in_thread(work: Callable[[], ResultT]) -> ResultT:
    """Run what blocks. It isn't abandoned when cancelled: killing the worker ends it."""
    try:
        limiter = _limiter.get()
    except LookupError:
        limiter = trio.CapacityLimiter(_THREADS_MAX)
        _limiter.set(limiter)
    return await trio.to_thread.run_sync(work, limiter=limiter, thread_name="trioloop program")
