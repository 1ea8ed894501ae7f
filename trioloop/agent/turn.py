"""One turn: its steps, the judgement of what came out of them, and its closing.

The page to read first: `run_turn` is the whole of a turn. What is open is read from the log, never
from local state, so that every way out closes it alike. What the turn owes is decided in
`machine/turn`.
"""

from collections.abc import Awaitable, Callable

import attrs
import trio

from trioloop.agent.notifications import TurnFailed
from trioloop.agent.resources import Resources
from trioloop.agent.signal import TurnSignal
from trioloop.agent.step import AttemptsExhausted, Entered, FreshTurn, run_open_calls, run_step
from trioloop.errors import FencedError, GrammarError, InternalError, StoreError
from trioloop.events import EventData
from trioloop.hooks.dispatch import raised_by, run_serial
from trioloop.hooks.points import TurnStopping
from trioloop.log.fold import OpenTurn
from trioloop.machine.inbox import claim_step
from trioloop.machine.turn import Ending, closing_step, closing_turn, owed
from trioloop.tools.words import code_of, words_of


@attrs.frozen
class Closed:
    """A turn is over.

    Attributes:
        ending: why.
        fresh: a turn that repeats it is due (R2); the closing events are still to be appended,
            together with that turn's start.
        raised: what must go up once the log is closed, such as KeyboardInterrupt.
        closing: the events that close it, where they are still to be appended.
    """

    ending: Ending
    fresh: bool = False
    raised: BaseException | None = None
    closing: tuple[EventData, ...] = ()


async def run_turn(resources: Resources, signal: TurnSignal) -> Closed:
    """Run the open turn to its end and close it in the log.

    A checkpoint, though a cancel isn't raised from here: it closes the turn as aborted.
    """
    came = await _contained(signal, lambda: _run_steps(resources, signal))
    return _close(resources, signal, came)


async def run_interrupted_turn(resources: Resources, signal: TurnSignal) -> Closed:
    """Run the calls again that a dead process left open, and close its turn (D4).

    A checkpoint, as `run_turn`.
    """
    came = await _contained(signal, lambda: run_open_calls(resources, signal))
    return _close(resources, signal, came)


async def _run_steps(resources: Resources, signal: TurnSignal) -> Ending | FreshTurn:
    session, limits = resources.session, resources.limits
    continuations = pauses = 0
    while True:
        outcome = await run_step(resources, signal)
        if isinstance(outcome, FreshTurn):
            signal.place = "its wait before a retry"
            await trio.sleep(outcome.delay)
        if isinstance(outcome, FreshTurn | Ending):
            return outcome
        turn = _open_turn(resources)
        due = owed(turn, session.state.inbox)
        if due == "pause":
            pauses += 1
            if pauses > limits.pauses_max:
                due = "input" if session.state.inbox.next_step else None
        elif due is None and outcome == Entered() and continuations < limits.continuations_max:
            continuations += 1
            await _ask_before_stopping(resources, signal)
            due = owed(turn, session.state.inbox)
        if due is None:
            return Ending(reason=turn.reason_so_far)
        claim = claim_step(session.state.inbox)
        if claim is not None:
            session.append(claim)


def _open_turn(resources: Resources) -> OpenTurn:
    turn = resources.session.state.turn
    assert turn is not None  # closed by `_close` alone
    return turn


async def _ask_before_stopping(resources: Resources, signal: TurnSignal) -> None:
    signal.place = "agent.turn_stopping"
    payload = TurnStopping(resources.agent, signal.turn)
    await run_serial([hooks.turn_stopping for hooks in resources.hooks], payload)
    await trio.lowlevel.checkpoint_if_cancelled()


async def _contained(
    signal: TurnSignal, steps: Callable[[], Awaitable[Ending | FreshTurn]]
) -> Ending | FreshTurn | BaseException | None:
    """What came out of the steps: an answer, an error, or None where our scope was cancelled.

    The one place that holds a `Cancelled` without raising it, to tell a stray one from ours (R8).
    The host's is raised anew by the driver's next checkpoint, after the log is closed.
    """
    try:
        with signal.scope:
            return await steps()
    except BaseException as error:  # judged in `_judge`; what isn't ours goes up from the driver
        return error
    return None


@trio.lowlevel.enable_ki_protection
def _close(
    resources: Resources, signal: TurnSignal, came: Ending | FreshTurn | BaseException | None
) -> Closed:
    """Judge what came and close what is open, without awaiting."""
    turn = _open_turn(resources)
    if turn.step is not None:
        failed_inside = _is_fault(came) and _judge(resources, signal, came).code == "INTERNAL"
        resources.session.append(*closing_step(turn.step, turn.number, failed_inside=failed_inside))
    ending = _judge(resources, signal, came)  # behind that: whoever observes it may cancel
    raised = came if isinstance(came, BaseException) and _goes_up(came) else None
    if ending.reason == "error":
        _tell_failure(resources, signal, ending, came)
    closing = closing_turn(turn, ending, keeps_inbox=signal.keeps_inbox)
    signal.close()
    if isinstance(came, FreshTurn) and ending.reason == "error" and ending.code != "STORE_FAILED":
        return Closed(ending, fresh=True, closing=closing)
    resources.session.append(*closing)
    return Closed(ending, raised=raised)


def _judge(
    resources: Resources, signal: TurnSignal, came: Ending | FreshTurn | BaseException | None
) -> Ending:
    """Why the turn ends; a cancel outranks every answer (R8)."""
    also = _also(came)
    store_error = signal.store_error or resources.session.failure
    if store_error is not None:
        return _store_ending(store_error, also)
    if signal.cancelled:
        return Ending(reason="aborted", cause=signal.cause_of_end, also=also)
    if isinstance(came, Ending):
        return came
    if isinstance(came, FreshTurn):
        return Ending(reason="error", code=came.failure.code, message=came.failure.message)
    assert came is not None  # only a cancelled scope gives None
    return _error_ending(came, signal.place)


def _store_ending(error: StoreError, also: tuple[str, ...]) -> Ending:
    code = "FENCED" if isinstance(error, FencedError) else "STORE_FAILED"
    return Ending(reason="error", code=code, message=words_of(error), also=also)


def _error_ending(error: BaseException, place: str) -> Ending:
    by = raised_by(error)
    if isinstance(error, AttemptsExhausted):
        return Ending(reason="error", code=error.failure.code, message=error.failure.message, by=by)
    if isinstance(error, trio.Cancelled):
        return Ending(
            reason="error",
            code="LEAKED_CANCEL",
            message=f"a Cancelled was raised in {place} that belongs to no open scope",
            by=by,
        )
    return Ending(
        reason="error",
        code=InternalError.code if _is_fault(error) else code_of(error) or "UNKNOWN",
        message=words_of(error) or type(error).__name__,
        by=by,
    )


def _also(came: object) -> tuple[str, ...]:
    """What else was raised while the turn was cancelled, in words."""
    if isinstance(came, BaseExceptionGroup):
        return tuple(text for error in came.exceptions for text in _also(error))
    if isinstance(came, BaseException) and not isinstance(came, trio.Cancelled):
        return (f"{type(came).__name__}: {words_of(came)}",)
    return ()


def _goes_up(error: BaseException) -> bool:
    """Whether an error is none of a turn's: KeyboardInterrupt and its like, or our own fault."""
    if isinstance(error, BaseExceptionGroup):
        return any(_goes_up(inner) for inner in error.exceptions)
    return _is_fault(error) or not isinstance(error, Exception | trio.Cancelled)


def _is_fault(came: object) -> bool:
    """Whether what came is an error that shows a fault of trioloop's own (P21, R10)."""
    return isinstance(came, InternalError | GrammarError) and raised_by(came) is None


def _tell_failure(resources: Resources, signal: TurnSignal, ending: Ending, came: object) -> None:
    resources.notifications.send(
        TurnFailed(
            agent=resources.agent.name,
            turn=signal.turn,
            code=ending.code or "UNKNOWN",
            message=ending.message or "",
            by=ending.by,
            error=came if isinstance(came, BaseException) else None,
        )
    )
