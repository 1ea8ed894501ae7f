"""What closes the log of a process that died (D4).

Pure: read from the folded log, given back as the facts to append. A log with only the first part
of its repair behind it repairs to the same end, so a crash during a repair does no harm.
"""

from collections.abc import Callable, Iterable, Iterator

from trioloop.codes import ToolCode
from trioloop.events import (
    Event,
    EventData,
    NestedResultLogged,
    StepEnded,
    ToolResultLogged,
    TurnEnded,
    Unadmitted,
)
from trioloop.log.fold import LogState, fold
from trioloop.log.inbox import put_back
from trioloop.log.state import OpenCall, OpenTurn
from trioloop.messages import TextBlock

DROPPED = "dropped"
"""Why a message wasn't admitted that a step passed by."""

_UNKNOWN = (
    "The process ended while this call ran: whether it took effect is unknown. "
    "Find out before you repeat it."
)
_NOT_STARTED = "The process ended before this call ran: it had no effect."


def _nothing(_: OpenCall) -> bool:
    return False


def repair(
    log: LogState | Iterable[Event], *, rerun: Callable[[OpenCall], bool] = _nothing
) -> tuple[EventData, ...]:
    """The facts that close what a log left open; none where nothing is open.

    Args:
        log: the events from the first on, or what they add up to.
        rerun: whether a call that had been dispatched is run again by the driver. From the first
            of those on each call is left open, for the driver to close.

    Raises:
        GrammarError: the events are no log.
    """
    state = log if isinstance(log, LogState) else fold(log)
    turn = state.turn
    if turn is None:
        return ()
    restored = put_back((claim.list, claim.pending) for claim in turn.fresh)
    if turn.step is None:
        return (*restored, _turn_end(turn))
    unanswered = [turn.step.calls[block.call] for block in turn.step.unanswered]
    results: list[EventData] = []
    for call in unanswered:
        results.extend(_lost_nested(call))
    for call in unanswered:
        if call.dispatched and rerun(call):
            return (*restored, *results)
        results.append(lost_result(call))
    return (*restored, *results, StepEnded(turn.number, turn.step.number), _turn_end(turn))


def lost_result(call: OpenCall) -> ToolResultLogged:
    """The result of a call whose process died."""
    code, text = _lost(call.dispatched)
    return ToolResultLogged(
        call.block.call, (TextBlock(text),), is_error=True, code=code, call_seq=call.call_seq
    )


def _lost_nested(call: OpenCall) -> Iterator[NestedResultLogged]:
    """The results of the calls that a call had made and not seen the end of."""
    for id in call.unanswered:
        assert call.nested is not None
        code, text = _lost(call.nested[id].dispatched)
        yield NestedResultLogged(id, call.block.call, (TextBlock(text),), is_error=True, code=code)


def _lost(dispatched: bool) -> tuple[ToolCode, str]:
    return ("TOOL_OUTCOME_UNKNOWN", _UNKNOWN) if dispatched else ("TOOL_NOT_STARTED", _NOT_STARTED)


def _turn_end(turn: OpenTurn) -> TurnEnded:
    left = tuple(
        Unadmitted(claim.pending.message.id, claim.list, DROPPED) for claim in turn.dropped
    )
    return TurnEnded(turn.number, "interrupted", unadmitted=left)
