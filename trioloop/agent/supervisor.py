"""Who starts an agent's driver, and when the agent is idle again (R9).

An idle agent has no task. A wake starts one in the nursery that the agent was made for; it runs the
driver, and turns idle in the same synchronous stretch in which that looked last for a further turn,
so that no wake falls between. Whether a further turn opens by itself is decided in `machine/turn`.
"""

import contextvars
from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

import trio

from trioloop.agent.announcing import Announcer
from trioloop.agent.closing import Closing
from trioloop.agent.driver import drive
from trioloop.agent.notifications import Settled, StatusChanged
from trioloop.agent.resources import Resources
from trioloop.agent.signal import TurnSignal
from trioloop.errors import AgentDisposedError, StoreError
from trioloop.machine.turn import goes_on
from trioloop.session import Session

ResultT = TypeVar("ResultT")
Intent = Literal["by the rules", "for a message", "for anything", "stop"]


class Supervisor:
    """The work of one agent: its status, its open turn, its task.

    Args:
        session: the agent's log.
        announcer: tells of what happens.
        make_resources: what a driver works with, made when one starts.
        on_fault: told of a fault of our own in the driver (R10).
        closing: how long what follows the end of work may take.

    Attributes:
        closing: as given.
        status: whether the agent works (S2).
        resources: what the running driver works with; None while idle.
        leaving: disposal has begun, so no further turn opens.
    """

    __slots__ = (
        "_announcer",
        "_between_turns",
        "_context",
        "_intent",
        "_maintenance",
        "_make_resources",
        "_on_fault",
        "_session",
        "_signal",
        "_turned_idle",
        "_waiting",
        "_working",
        "closing",
        "leaving",
        "status",
    )

    def __init__(
        self,
        session: Session,
        announcer: Announcer,
        make_resources: Callable[[], Resources],
        on_fault: Callable[[Exception], None],
        closing: Closing,
    ) -> None:
        self.closing = closing
        self.status: Literal["idle", "running"] = "idle"
        self.leaving = False
        self._session = session
        self._announcer = announcer
        self._make_resources = make_resources
        self._on_fault = on_fault
        self._context = contextvars.copy_context()  # the agent's own, not those of who wakes it
        self._intent: Intent = "by the rules"  # what a wake or a cancel asked for between turns
        self._working: Resources | None = None
        self._signal: TurnSignal | None = None
        self._between_turns: trio.Lock | None = None  # made when the agent first works
        self._maintenance: trio.CancelScope | None = None
        self._waiting: trio.CancelScope | None = None  # of the driver, with no turn open
        self._turned_idle: trio.Event | None = None  # made only while somebody waits
        session.on_failure = self._store_failed

    @property
    def turn(self) -> TurnSignal | None:
        """The open turn; None: there is none."""
        return self._signal if self._signal is not None and self._signal.open else None

    # What others ask of it

    def wake(self, nursery: trio.Nursery, *, explicit: bool) -> None:
        """Start the driver, or let the one that runs look again. Synchronous.

        In an open turn a waking message speaks for itself (R4, I4); only an explicit wake is kept.
        """
        if explicit:
            self._intent = "for anything"
        elif self.turn is None and self._intent != "for anything":
            self._intent = "for a message"
        self._start(nursery)

    def reopen(self, nursery: trio.Nursery) -> None:
        """Start the driver for the turn that a dead process left open (D4). Synchronous."""
        turn = self._session.state.turn
        assert turn is not None  # whoever asks has looked
        self.turn_opens(TurnSignal(turn.number, self._session.seq, self.resources.running_calls))
        self._start(nursery)

    def _start(self, nursery: trio.Nursery) -> None:
        if self.status == "idle":
            self.status = "running"
            self._announcer.tell(StatusChanged("running", agent=self._session.name))
            name = f"agent {self._session.name}"
            self._context.run(lambda: nursery.start_soon(self._run, name=name))

    def cancel(self, cause: str, *, keeps_inbox: bool) -> None:
        """Cancel the open turn, or drop a wake that has not opened one yet (I3). Synchronous."""
        signal = self.turn
        if signal is None:
            self._intent = "stop" if self.status == "running" else self._intent
            if self._waiting is not None:
                self._waiting.cancel()
            return
        signal.keeps_inbox = signal.keeps_inbox and keeps_inbox
        if not signal.scope.cancel_called:
            self._intent = "by the rules"  # a wake that came before is dropped, too
            self.resources.stuck.watch(self._session.name, signal)
        signal.cancel(cause)

    async def wait_idle(self) -> None:
        """Wait until the agent is idle. A checkpoint."""
        while self.status == "running":
            if self._turned_idle is None:
                self._turned_idle = trio.Event()
            await self._turned_idle.wait()
        await trio.lowlevel.checkpoint()

    async def maintain(self, job: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """Run a job while no turn is open and none opens. A checkpoint.

        Raises:
            AgentDisposedError: disposal began meanwhile, which cancels the job.
        """
        if self.turn is not None and not self.between_turns.locked():
            await self.wait_idle()  # a resumed turn, whose driver is about to begin (D4)
        async with self.between_turns:
            with trio.CancelScope() as self._maintenance:
                try:
                    if not self.leaving:
                        return await job()
                finally:
                    self.closing.begin()
        raise AgentDisposedError(f"{self._session.name!r} was disposed of during maintenance")

    async def maintain_nothing(self) -> None:
        """Wait until nobody maintains the agent any more. A checkpoint where somebody does."""
        if self._between_turns is not None:
            async with self._between_turns:
                pass

    def leave(self) -> None:
        """Open no further turn, and end the maintenance that may run. Synchronous."""
        self.leaving = True
        if self._maintenance is not None:
            self._maintenance.cancel()

    # What the driver asks of it

    @property
    def between_turns(self) -> trio.Lock:
        """Held by whoever must not be interrupted by a turn: a chain of turns, or maintenance."""
        if self._between_turns is None:
            self._between_turns = trio.Lock()
        return self._between_turns

    @property
    def resources(self) -> Resources:
        """What the driver works with."""
        if self._working is None:
            self._working = self._make_resources()
        return self._working

    def wants_turn(self) -> bool:
        """Whether a further turn is to open (R4, I3, I4)."""
        state = self._session.state
        if self.leaving or self._intent == "stop" or not len(state.inbox):
            return False
        if self._intent == "for anything":
            return True
        if self._intent == "for a message":  # which may have been removed since
            return any(message.wakeup for message in state.inbox)
        return self._signal is not None and goes_on(state, self._signal.opened)

    def wait_between_turns(self) -> trio.CancelScope:
        """A scope for a wait with no turn open: a cancel, or disposal, ends it."""
        self._waiting = trio.CancelScope()
        return self._waiting

    def turn_opens(self, signal: TurnSignal) -> None:
        """Take the signal of the turn that is about to open."""
        self._signal = signal
        self._intent = "by the rules"

    def chain_settled(self, settled: Settled, fault: Exception | None) -> None:
        """Tell the outcome of a chain of turns."""
        self._announcer.settled(settled, fault)

    # The task

    async def _run(self) -> None:
        fault: Exception | None = None
        try:
            await drive(self)
        except Exception as error:  # a fault of our own: told below, never lost
            fault = error
        finally:
            self._turn_idle(fault)

    @trio.lowlevel.enable_ki_protection
    def _turn_idle(self, fault: Exception | None) -> None:
        """The last stretch: no await from the last look to here."""
        self._working = None
        self._intent = "by the rules"
        self.status = "idle"
        self._announcer.driver_stopped(fault)
        self._announcer.tell(StatusChanged("idle", agent=self._session.name))
        idle, self._turned_idle = self._turned_idle, None
        if idle is not None:
            idle.set()
        if fault is not None:
            self._on_fault(fault)

    def _store_failed(self, error: StoreError) -> None:
        if self.turn is not None:
            self.turn.fail_store(error)
