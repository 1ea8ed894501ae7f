"""The driver: opens turns while there is work, settles chains of them, then ends.

`drive` is one agent's task. It is started by a waking send and ends when nothing more is wanted;
an idle agent has no task (R9). What a turn does is in `turn`.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

import trio

from trioloop.agent.closing import Closing
from trioloop.agent.notifications import Settled
from trioloop.agent.resources import Resources
from trioloop.agent.signal import TurnSignal, enter
from trioloop.agent.turn import Closed, run_interrupted_turn, run_turn
from trioloop.chunks import Usage
from trioloop.errors import StoreError
from trioloop.events import (
    AssistantAttemptLogged,
    AssistantMessageLogged,
    Event,
    EventData,
    TurnStarted,
)
from trioloop.ids import SessionId
from trioloop.machine.inbox import claim_step, claim_turn
from trioloop.machine.turn import Ending


class Desk(Protocol):
    """What the driver is given by the agent that it works for."""

    @property
    def resources(self) -> Resources:
        """The services that it works with."""
        ...

    @property
    def between_turns(self) -> trio.Lock:
        """Held while a chain of turns runs."""
        ...

    @property
    def turn(self) -> TurnSignal | None:
        """The open turn: as the driver starts, one that a dead process left open (D4)."""
        ...

    def wants_turn(self) -> bool:
        """Whether a further turn is to open (R4, I3, I4)."""
        ...

    def wait_between_turns(self) -> trio.CancelScope:
        """A scope for a wait with no turn open: a cancel, or disposal, ends it."""
        ...

    def turn_opens(self, signal: TurnSignal) -> None:
        """Take the signal of the turn that is about to open, before its first event."""
        ...

    @property
    def closing(self) -> Closing:
        """How long what follows the end of work may take."""
        ...

    def chain_settled(self, settled: Settled, fault: Exception | None) -> None:
        """The last turn of a chain is over, perhaps by a fault of our own."""
        ...


async def drive(desk: Desk) -> None:
    """Run chains of turns until no further one is wanted; first close what a dead process left.

    A checkpoint. Host cancellation is raised from here once the open turn is closed in the log.
    """
    if desk.turn is not None:
        await _end_interrupted(desk, desk.turn)
    await trio.lowlevel.checkpoint_if_cancelled()
    while desk.wants_turn() and await _store_is_good(desk):
        await _acquire(desk.between_turns)
        try:
            if not desk.wants_turn():
                return
            closed = await _run_chain(desk)
        finally:
            desk.between_turns.release()
        if closed.raised is not None:
            raise closed.raised


async def _acquire(lock: trio.Lock) -> None:
    """Take a lock. A checkpoint only where it is held: a turn has plenty of its own."""
    if lock.locked():
        await lock.acquire()
    else:
        lock.acquire_nowait()


async def _end_interrupted(desk: Desk, signal: TurnSignal) -> None:
    """Carry the turn to its end that a dead process left open (D4)."""
    turn = desk.resources.session.state.turn
    assert turn is not None  # it is what the signal is for
    desk.between_turns.acquire_nowait()  # free: whoever maintains waits while a turn is open
    try:
        enter(signal)
        first_seq = turn.start_seq
        closed = await run_interrupted_turn(desk.resources, signal)
        await _settle(desk, first_seq, closed)
    finally:
        desk.between_turns.release()
    if closed.raised is not None:
        raise closed.raised


async def _store_is_good(desk: Desk) -> bool:
    """Whether turns may open; after a store failure only once the store takes what is kept (D3)."""
    session = desk.resources.session
    if session.failure is None:
        return True
    with desk.wait_between_turns(), suppress(StoreError):
        await session.retry_store()
        return True
    return False


async def _run_chain(desk: Desk) -> Closed:
    """Run a turn and the retry turns behind it (R2), and settle them (S4)."""
    resources = desk.resources
    first_seq = resources.session.seq + 1
    retries = 0
    signal = _open_turn(desk, retry_of=None, closing=())
    closed = await run_turn(resources, signal)
    while closed.fresh:
        if retries == resources.limits.retry_turns_max:
            resources.session.append(*closed.closing)
            break
        retries += 1
        signal = _open_turn(desk, retry_of=signal.turn, closing=closed.closing)
        closed = await run_turn(resources, signal)
    await _settle(desk, first_seq, closed)
    return closed


@trio.lowlevel.enable_ki_protection
def _open_turn(desk: Desk, *, retry_of: int | None, closing: tuple[EventData, ...]) -> TurnSignal:
    """Open a turn and claim its first messages: one append, which also ends the turn it retries."""
    session = desk.resources.session
    state = session.state
    resources = desk.resources
    signal = TurnSignal(
        state.turns + 1, session.seq + 1, resources.running_calls, resources.host_cause
    )
    claims = claim_turn(state.inbox) if retry_of is None else _next_step_alone(resources)
    desk.turn_opens(signal)
    enter(signal)
    session.append(*closing, TurnStarted(signal.turn, retry_of), *claims)
    return signal


def _next_step_alone(resources: Resources) -> tuple[EventData, ...]:
    claim = claim_step(resources.session.state.inbox)
    return () if claim is None else (claim,)


async def _settle(desk: Desk, first_seq: int, closed: Closed) -> None:
    """Wait until the chain is durable, then tell its outcome.

    The wait is shielded, so that a cancelled turn is durable too, and bounded by `close_s` (D2),
    which it shares with a disposal behind it (P18).
    """
    session, limits = desk.resources.session, desk.resources.limits
    store_error: str | None = None
    desk.closing.begin()
    with trio.CancelScope(shield=True, deadline=desk.closing.flushed_by) as scope:
        try:
            await session.checkpoint()
        except StoreError as error:
            store_error = str(error)
    if scope.cancelled_caught:
        store_error = f"not durable within the {limits.close_s:g} s of close_s"
    fault = closed.raised if isinstance(closed.raised, Exception) else None
    settled = settlement(session.name, session.events(first_seq - 1), closed.ending, store_error)
    desk.chain_settled(settled, fault)


_TELLING = frozenset({TurnStarted, AssistantMessageLogged, AssistantAttemptLogged})


def settlement(
    agent: SessionId, events: Iterable[Event], ending: Ending, store_error: str | None
) -> Settled:
    """What a chain of turns came to, read from its events.

    Args:
        agent: whose chain.
        events: from the chain's first `turn/start` on.
        ending: how its last turn ended.
        store_error: what kept it from becoming durable.
    """
    turns: list[int] = []
    text = ""
    usage = Usage()
    for data in [event.data for event in events if type(event.data) in _TELLING]:
        if isinstance(data, TurnStarted):
            turns.append(data.turn)
            continue
        assert isinstance(data, AssistantMessageLogged | AssistantAttemptLogged)
        if isinstance(data, AssistantMessageLogged):
            text = data.message.text or text
        if data.usage is not None:
            usage += data.usage
    return Settled(
        agent=agent,
        turn=turns[-1],
        turns=tuple(turns),
        reason=ending.reason,
        code=ending.code,
        message=ending.message,
        cause=ending.cause,
        text=text,
        usage=usage,
        store_error=store_error,
    )
