"""The cases that a turn's decisions tell apart, and what each function answers in them."""

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from trioloop.events import (
    EventData,
    PendingMessage,
    ToolResultLogged,
    TurnEnded,
    TurnReason,
    wire_name,
)
from trioloop.ids import CallId
from trioloop.log.fold import LogState
from trioloop.log.inbox import Inbox
from trioloop.log.state import Claimed, Fate, OpenCall, OpenStep, OpenTurn
from trioloop.machine.inbox import claim_turn
from trioloop.machine.turn import Ending, closing_step, closing_turn, goes_on, owed
from trioloop.messages import ToolCallBlock, user_message

REASONS: tuple[TurnReason, ...] = get_args(TurnReason)
Left: TypeAlias = Literal["results", "pause", "retry"] | None
NOTHING = "-"
_OPENED = 10


def _pending(id: str, **flags: bool) -> PendingMessage:
    return PendingMessage(user_message("Hello.", id=id), **flags)


_LATE = "late"
_EARLY = "early"

NEXT_STEP: Mapping[str, tuple[PendingMessage, ...]] = {
    "nothing": (),
    "injected input": (_pending("injected", wakeup=False),),
    "steered input": (_pending("steered"),),
}
NEXT_TURN: Mapping[str, tuple[PendingMessage, ...]] = {
    "nothing": (),
    "a message that wakes nobody": (_pending("quiet", wakeup=False),),
    "a follow-up": (_pending("follow-up"),),
    "one sent after this turn was cancelled": (_pending(_LATE, after_cancel=True),),
    "one sent after an earlier turn was cancelled": (_pending(_EARLY, after_cancel=True),),
}
"""What each list may hold, in words, as far as a decision depends on it."""


def _inbox(next_turn: str, next_step: str) -> Inbox:
    return Inbox(NEXT_TURN[next_turn], NEXT_STEP[next_step])


def step_asked_for(steps: int, left: Left, *, filled: bool) -> str:
    """What asks for a step at a boundary."""
    turn = OpenTurn(1, _OPENED, steps=steps, owed=left)
    inbox = _inbox("nothing", "steered input" if filled else "nothing")
    return owed(turn, inbox) or NOTHING


def opens_turn(reason: TurnReason, next_turn: str, next_step: str) -> str:
    """Whether a further turn opens behind one that ended so."""
    inbox = _inbox(next_turn, next_step)
    state = LogState()
    state.last_turn = TurnEnded(1, reason)
    state.inbox = inbox
    state.fates = {
        one.message.id: Fate("pending", _OPENED + (-5 if one.message.id == _EARLY else 5))
        for one in inbox
    }
    return "opens" if goes_on(state, _OPENED) else NOTHING


def claims(next_turn: str, next_step: str) -> str:
    """What the first claim of a turn takes."""
    taken = [claim.list for claim in claim_turn(_inbox(next_turn, next_step))]
    return ", then ".join(taken) or NOTHING


# What closes

_BLOCK = ToolCallBlock(CallId("call"), "call", "search", "{}")
_RESULT = ToolResultLogged(CallId("call"), ())
CALLS: Mapping[str, OpenCall] = {
    "hasn't started": OpenCall(_BLOCK, 0),
    "has started": OpenCall(_BLOCK, 0, call_seq=_OPENED),
    "has its result": OpenCall(_BLOCK, 0, call_seq=_OPENED, result=_RESULT),
}
"""How far a call may be, in words."""


def request_closing(failed_inside: bool) -> str:
    """What is appended for a request that was admitted and has no attempt."""
    return _told(closing_step(OpenStep(1), 1, failed_inside=failed_inside))


def call_closing(words: str, failed_inside: bool) -> str:
    """What is appended for one call of an answer."""
    step = OpenStep(1, admitted=False, calls={CallId("call"): CALLS[words]})
    return _told(closing_step(step, 1, failed_inside=failed_inside))


def _told(closing: tuple[EventData, ...]) -> str:
    *parts, _ = closing  # the last is always step/end
    return ", ".join(map(_event, parts)) or NOTHING


def _event(fact: EventData) -> str:
    name = f"`{wire_name(type(fact))}`"
    return f"{name} `{fact.code}`" if isinstance(fact, ToolResultLogged) else f"{name}, not sent"


def left_behind(reason: TurnReason, keeps_inbox: bool) -> str:
    """What becomes of a message that the turn has claimed since its last admission."""
    claimed = Claimed(_pending("claimed"), "next-turn")
    turn = OpenTurn(1, _OPENED, claims={claimed.pending.message.id: claimed})
    *returned, ended = closing_turn(turn, Ending(reason=reason), keeps_inbox=keeps_inbox)
    assert isinstance(ended, TurnEnded)
    if returned:
        return "back to its list"
    (left,) = ended.unadmitted
    return "unadmitted, for the turn's own reason" if left.why == reason else left.why
