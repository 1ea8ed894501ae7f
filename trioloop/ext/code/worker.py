"""The worker process that runs one program: the only importer of pydantic_monty.

Monty's own asynchronous class wants asyncio, so this is the synchronous one. Its methods block;
each belongs in a thread, one at a time. Only `kill` may be called at any moment.

A program never waits inside the worker: where it calls a function that it doesn't define, it is
handed back here. A known name gives it a promise, and it goes on; only when it can't go on without
an answer, the calls made so far are handed out together.
"""

import contextlib
import os
import signal
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NoReturn, Protocol, TypeAlias

import attrs
import pydantic_monty as monty

from trioloop.errors import InternalError
from trioloop.ext.code.limits import ProgramLimits


@attrs.frozen
class ProgramCall:
    """A call that a program makes, in order of `number`."""

    number: int
    name: str
    args: tuple[Any, ...]  # Any: whatever the program has made
    kwargs: dict[str, Any]


@attrs.frozen
class Value:
    """What a call gives its program."""

    value: object


@attrs.frozen
class Raised:
    """What a call raises in its program: the name of a builtin exception, and its message."""

    kind: str
    message: str


Answer: TypeAlias = Value | Raised


@attrs.frozen
class Waiting:
    """The program waits for the answers to these calls."""

    calls: tuple[ProgramCall, ...]


@attrs.frozen
class Ended:
    """The program ended. `value` is that of its last expression."""

    value: object


@attrs.frozen
class Failed:
    """The program can't be run, or raised. `kind` names the exception, `text` has the traceback."""

    kind: str
    text: str


Stop: TypeAlias = Waiting | Ended | Failed


class _Resumable(Protocol):
    """What every snapshot of a paused program is to us."""

    def resume(self, answer: Any, /) -> Any: ...


class Worker:
    """One program in a process of its own, which has no files, no network and no clock.

    Args:
        names: the functions that it can call, beside Python's own.
        limits: what it may use up.
        seed: of its random numbers, so that equal programs do equal things.
        printed: given what it prints.
    """

    def __init__(
        self,
        *,
        names: Collection[str],
        limits: ProgramLimits,
        seed: str,
        printed: Callable[[str], None],
    ) -> None:
        self._names = names
        self._printed = printed
        self._made: list[ProgramCall] = []
        self._paused: _Resumable | None = None
        self._kill_process: Callable[[], None] | None = None
        self._killed = False
        self._pool = monty.Monty(max_processes=1)
        self._session = self._pool.checkout(
            limits={
                "max_feed_duration_secs": limits.run_s,
                "max_memory": limits.memory_bytes_max,
                "max_recursion_depth": limits.recursion_max,
                "max_suspensions": 8 * limits.calls_max + 1_000,  # calls, waits, names, imports
            },
            os_policy={
                "datetime": "call_host",
                "sleep": "call_host",
                "random_start": {"seed": seed},
            },
        )
        self._open = contextlib.ExitStack()

    def start(self, code: str) -> Stop:
        """Run a program to where it first stops."""
        self._open.enter_context(self._pool)
        self._open.enter_context(self._session)
        pid = self._session.worker_pid
        assert pid is not None
        self._kill_process = self._open.enter_context(_killing(pid))
        if self._killed:
            self._kill_process()
        return self._advance(
            lambda: self._session.feed_start(
                code, print_callback=lambda _, text: self._printed(text)
            )
        )

    def resume(self, answers: Mapping[int, Answer]) -> Stop:
        """Give a waiting program its answers, and run it to where it stops next."""
        paused = self._paused
        assert paused is not None
        settled = {number: _settled(answer) for number, answer in answers.items()}
        return self._advance(lambda: paused.resume(settled))

    def kill(self) -> None:
        """End the process at once. From any thread, up to `close`, also before it has begun."""
        self._killed = True
        if self._kill_process is not None:
            self._kill_process()

    def close(self) -> None:
        """Wait for the end of the process, which was killed, and free what it held."""
        self._open.close()

    def _advance(self, step: Callable[[], Any]) -> Stop:  # Any: one of Monty's snapshots
        self._made = []
        try:
            snapshot = step()
            while True:
                match snapshot:
                    case monty.MontyComplete():
                        return Ended(snapshot.output)
                    case monty.FutureSnapshot():
                        self._paused = snapshot
                        return Waiting(tuple(self._made))
                    case monty.FunctionSnapshot():
                        snapshot = self._called(snapshot)
                    case _:
                        snapshot = self._looked_up(snapshot)
        except monty.MontyError as error:
            return _failed(error)

    def _called(self, snapshot: monty.FunctionSnapshot) -> Any:  # Any: the next snapshot
        if snapshot.is_os_function:
            return snapshot.resume_not_handled()
        name = str(snapshot.function_name)
        if name not in self._names:
            return snapshot.resume(
                {"exc_type": "NameError", "message": f"name {name!r} is not defined"}
            )
        self._made.append(ProgramCall(snapshot.call_id, name, snapshot.args, snapshot.kwargs))
        return snapshot.resume({"future": ...})

    def _looked_up(self, snapshot: monty.NameLookupSnapshot) -> Any:  # Any: the next snapshot
        name = snapshot.variable_name
        return snapshot.resume(value=_stand_in(name)) if name in self._names else snapshot.resume()


@contextlib.contextmanager
def _killing(pid: int) -> Iterator[Callable[[], None]]:
    """A way to kill a process, which is never another one that has got its id since."""
    descriptor = os.pidfd_open(pid)

    def kill() -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)

    try:
        yield kill
    finally:
        os.close(descriptor)


def _stand_in(name: str) -> Callable[..., object]:
    """A function that stands for a tool in the program, which hands its calls back by this name."""

    def stand_in(*_: object, **__: object) -> NoReturn:
        raise InternalError(f"the program called the stand-in for {name!r}, not the tool")

    stand_in.__name__ = name
    return stand_in


def _settled(answer: Answer) -> Any:  # Any: Monty's union of answers
    if isinstance(answer, Value):
        return {"return_value": answer.value}
    return {"exc_type": answer.kind, "message": answer.message}


def _failed(error: monty.MontyError) -> Failed:
    inner = error.exception()
    kind = type(inner).__name__
    if isinstance(error, monty.MontyRuntimeError | monty.MontySyntaxError):
        return Failed(kind, error.display())
    if isinstance(error, monty.MontyCrashedError):
        return Failed("WorkerCrashed", "the process that ran the program ended by itself")
    return Failed(kind, str(error))
