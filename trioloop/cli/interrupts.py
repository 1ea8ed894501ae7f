"""Ctrl-C and SIGTERM, as something that a command reacts to and not as an exception."""

import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import attrs
import trio

from trioloop.cli.exits import SIGNALLED, ExitCode

_CAUSES = {signal.SIGINT: "user", signal.SIGTERM: "terminated"}


@attrs.define(eq=False)
class Interrupts:
    """Signals that a command gets while it runs.

    Attributes:
        scope: what a command does; cancelled by a signal that nothing else reacts to.
        last: the last signal that came.
        react: told of each signal; whether it took care of it. None: nothing does yet.
    """

    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    last: int | None = None
    react: Callable[[int], bool] | None = None

    @property
    def exit_code(self) -> ExitCode | None:
        """128 and the number of the signal, as shells have it; None: there was no signal."""
        return None if self.last is None else SIGNALLED + self.last

    @property
    def word(self) -> str:
        """What happened, for people."""
        return "stopped by Ctrl-C" if self.last == signal.SIGINT else "stopped by SIGTERM"

    async def watch(self, *, task_status: trio.TaskStatus[None]) -> None:
        """React to signals until cancelled."""
        came = 0
        with trio.open_signal_receiver(*_CAUSES) as signals:
            task_status.started()
            async for number in signals:
                self.last = number
                came += self.scope.cancel_called
                if came > 1:  # something swallows its cancel, and a person has lost patience
                    _give_up(number)
                if self.react is None or not self.react(number):
                    self.scope.cancel()


def _give_up(number: int) -> None:
    """End the process at once; the log is repaired when it is opened again (D4)."""
    print("trioloop: gave up waiting; an open turn is closed on resuming", file=sys.stderr)
    sys.stderr.flush()
    os._exit(SIGNALLED + number)


def cause_of(number: int) -> str:
    """The cause that a turn cancelled by a signal is recorded with."""
    return _CAUSES[signal.Signals(number)]


@asynccontextmanager
async def interruptible() -> AsyncIterator[Interrupts]:
    """Run the block so that signals are reacted to; one that nothing reacts to leaves it."""
    interrupts = Interrupts()
    async with trio.open_nursery() as nursery:
        await nursery.start(interrupts.watch)
        with interrupts.scope:
            yield interrupts
        nursery.cancel_scope.cancel()
