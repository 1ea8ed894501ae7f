"""What a turn owes, why it ended, and whether another one follows: decisions, without awaiting.

Everything is read from the folded log and from the few facts that a turn's own task knows; nothing
here changes anything. What carries a decision out is in `agent/`.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import attrs

from trioloop.chunks import EMPTY_STREAM
from trioloop.codes import ToolCode
from trioloop.events import (
    AssistantAttemptLogged,
    EventData,
    StepEnded,
    ToolResultLogged,
    TurnEnded,
    TurnReason,
    Unadmitted,
)
from trioloop.ids import CallId
from trioloop.log.fold import Claimed, LogState, OpenStep, OpenTurn
from trioloop.log.inbox import Inbox, put_back
from trioloop.messages import TextBlock

Owed: TypeAlias = Literal["results", "pause", "retry", "input"]


@attrs.frozen(kw_only=True)
class Ending:
    """Why a turn ends, in the words of its `turn/end`."""

    reason: TurnReason
    code: str | None = None
    message: str | None = None
    cause: str | None = None
    by: str | None = None
    also: tuple[str, ...] = ()


def owed(turn: OpenTurn, inbox: Inbox) -> Owed | None:
    """What asks for a step at a step boundary, if anything does (R7).

    Before the first step only a retry turn's own request does, beside the messages that the turn
    has claimed; behind it, what the last step left owed, or input in next-step.
    """
    if turn.owed is not None:
        return turn.owed
    return "input" if turn.steps > 0 and inbox.next_step else None


def goes_on(state: LogState, opened: int) -> bool:
    """Whether a further turn opens by itself after one has closed (R4, I4).

    Args:
        state: the log, behind the end of the turn that closed last.
        opened: the seq at which that turn opened; what an earlier cancel left is parked by now.
    """
    ended, inbox = state.last_turn, state.inbox
    if ended is None:
        return False
    if any(one.after_cancel and state.fates[one.message.id].seq > opened for one in inbox):
        return True
    if ended.reason == "interrupted":  # a turn that a dead process left: what it had stays parked
        return any(one.wakeup and state.fates[one.message.id].seq > opened for one in inbox)
    if ended.reason in ("completed", "max-tokens", "blocked"):
        return bool(inbox.next_turn) or any(message.wakeup for message in inbox.next_step)
    return False


def closing_step(
    step: OpenStep, turn: int, *, failed_inside: bool = False
) -> tuple[EventData, ...]:
    """What closes a step that is still open, read from the log (P8, P10, P12, P21).

    Args:
        step: the open step.
        turn: its turn's number.
        failed_inside: the scheduler itself failed, so that nothing is known of its calls.
    """
    closing: list[EventData] = []
    if step.admitted:
        closing.append(AssistantAttemptLogged(EMPTY_STREAM, cancelled=True, sent=False))
    closing.extend(
        _unrun(call.block.call, call.call_seq, failed_inside=failed_inside)
        for call in step.calls.values()
        if call.result is None
    )
    return (*closing, StepEnded(turn, step.number))


def _unrun(call: CallId, call_seq: int | None, *, failed_inside: bool) -> ToolResultLogged:
    code: ToolCode
    if failed_inside:
        code, text = "TOOL_INTERNAL", "the tool scheduler failed: the effects of this are unknown"
    elif call_seq is None:
        code, text = "TOOL_ABORTED_BEFORE_DISPATCH", "not run: the turn was cancelled before"
    else:
        code, text = "TOOL_ABORTED", "cancelled while it ran: its effects are unknown"
    return ToolResultLogged(
        call=call, content=(TextBlock(text),), is_error=True, code=code, call_seq=call_seq
    )


def closing_turn(turn: OpenTurn, ending: Ending, *, keeps_inbox: bool) -> tuple[EventData, ...]:
    """What closes a turn: messages that go back to their lists, and its `turn/end` (R5).

    Args:
        turn: the open turn, with no step open.
        ending: why it ends.
        keeps_inbox: a cancel didn't ask to drop what is pending.
    """
    goes_back = ending.reason == "aborted" and keeps_inbox
    returned = put_back((one.list, one.pending) for one in turn.fresh) if goes_back else ()
    left = [_left(one, "dropped") for one in turn.dropped]
    if not goes_back:
        left.extend(_left(one, ending.reason) for one in turn.fresh)
    return (*returned, _ended(turn, ending, left))


def _left(claimed: Claimed, why: str) -> Unadmitted:
    return Unadmitted(claimed.pending.message.id, claimed.list, why)


def _ended(turn: OpenTurn, ending: Ending, left: Sequence[Unadmitted]) -> TurnEnded:
    return TurnEnded(
        turn=turn.number,
        reason=ending.reason,
        code=ending.code,
        message=ending.message,
        cause=ending.cause,
        by=ending.by,
        unadmitted=tuple(left),
        also=ending.also,
    )
