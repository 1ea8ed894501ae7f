"""Where a log can stand, and which events may follow there: the grammar's table.

The table is the whole of the grammar that depends on order alone; what an event must say besides
is in `grammar.py`. Pictures of the grammar are drawn from it.
"""

import enum
from collections.abc import Mapping
from typing import TypeAlias

from trioloop.events import (
    AssistantAttemptLogged,
    AssistantMessageLogged,
    EventData,
    InboxSpliced,
    NestedCallStarted,
    NestedResultLogged,
    RequestContextLogged,
    RequestHeaderLogged,
    SessionOpened,
    StepEnded,
    StepStarted,
    SystemMessageLogged,
    ToolCallStarted,
    ToolDispatched,
    ToolResultLogged,
    TurnEnded,
    TurnStarted,
    UserMessageLogged,
)


class Phase(enum.IntEnum):
    """Where a log stands behind its last event."""

    NEW = 0
    """It has no event."""
    IDLE = 1
    """No turn is open."""
    CLAIMING = 2
    """A turn has started and hasn't claimed its first messages."""
    PREPARING = 3
    """A turn is open, no step is; a step may follow, or the turn's end."""
    SYSTEM = 4
    """A step's admission has begun: system nodes, messages, header, context follow in order."""
    MESSAGES = 5
    """The admission has reached its messages."""
    HEADER = 6
    """The admission has reached its header."""
    ADMITTED = 7
    """The admission is over: a request stands, and its attempt must follow."""
    FAILED = 8
    """An attempt failed: a retry may follow (P11), or the step's end."""
    READMITTING = 9
    """A retry's admission has begun: as SYSTEM, but no message joins."""
    STOPPED = 10
    """An attempt was cancelled or never sent: the step must end."""
    CALLING = 11
    """The model answered with calls, and some have no result yet."""
    ANSWERED = 12
    """The model answered, and every call has its result."""
    ENDING = 13
    """The last step has no good answer: the turn must end, and not well."""
    CUT = 14
    """A step was closed without an attempt, which only repair does (D4): the turn must end."""


Row: TypeAlias = Mapping[type[EventData], tuple[Phase, ...]]

_ANYWHERE = (InboxSpliced, EventData)  # EventData stands for every type that has no rule here
_ATTEMPT: Row = {
    AssistantMessageLogged: (Phase.CALLING, Phase.ANSWERED, Phase.STOPPED),
    AssistantAttemptLogged: (Phase.FAILED, Phase.STOPPED),
}
_REPLACEMENTS = (UserMessageLogged, ToolResultLogged)  # with `replaces`: the history is rewritten


def _staying(phase: Phase, *types: type[EventData]) -> Row:
    return dict.fromkeys((*_ANYWHERE, *types), (phase,))


def _admitting(following: Row) -> Row:
    """A row of an admission; whatever has no part in it tells that it is over."""
    over: Row = {**dict.fromkeys(_ANYWHERE, (Phase.ADMITTED,)), StepEnded: (Phase.CUT,)}
    return {**over, **_ATTEMPT, **following}


MAY_FOLLOW: Mapping[Phase, Row] = {
    Phase.NEW: {SessionOpened: (Phase.IDLE,)},
    Phase.IDLE: {
        **_staying(Phase.IDLE, *_REPLACEMENTS),
        TurnStarted: (Phase.CLAIMING, Phase.PREPARING),
    },
    Phase.CLAIMING: {InboxSpliced: (Phase.PREPARING,), TurnEnded: (Phase.IDLE,)},
    Phase.PREPARING: {
        **_staying(Phase.PREPARING, *_REPLACEMENTS),
        StepStarted: (Phase.SYSTEM,),
        TurnEnded: (Phase.IDLE,),
    },
    Phase.SYSTEM: _admitting(
        {
            SystemMessageLogged: (Phase.SYSTEM,),
            UserMessageLogged: (Phase.MESSAGES,),
            RequestHeaderLogged: (Phase.HEADER,),
            RequestContextLogged: (Phase.ADMITTED,),
        }
    ),
    Phase.MESSAGES: _admitting(
        {
            UserMessageLogged: (Phase.MESSAGES,),
            RequestHeaderLogged: (Phase.HEADER,),
            RequestContextLogged: (Phase.ADMITTED,),
        }
    ),
    Phase.HEADER: _admitting({RequestContextLogged: (Phase.ADMITTED,)}),
    Phase.ADMITTED: _admitting({}),
    Phase.FAILED: {
        **_staying(Phase.FAILED, *_REPLACEMENTS),
        **_ATTEMPT,
        SystemMessageLogged: (Phase.READMITTING,),
        RequestHeaderLogged: (Phase.HEADER,),
        RequestContextLogged: (Phase.ADMITTED,),
        StepEnded: (Phase.ENDING,),
    },
    Phase.READMITTING: _admitting(
        {
            SystemMessageLogged: (Phase.READMITTING,),
            RequestHeaderLogged: (Phase.HEADER,),
            RequestContextLogged: (Phase.ADMITTED,),
        }
    ),
    Phase.STOPPED: {**_staying(Phase.STOPPED), StepEnded: (Phase.ENDING,)},
    Phase.CALLING: {
        **_staying(
            Phase.CALLING, ToolCallStarted, ToolDispatched, NestedCallStarted, NestedResultLogged
        ),
        ToolResultLogged: (Phase.CALLING, Phase.ANSWERED),
    },
    Phase.ANSWERED: {**_staying(Phase.ANSWERED), StepEnded: (Phase.PREPARING,)},
    Phase.ENDING: {**_staying(Phase.ENDING), TurnEnded: (Phase.IDLE,)},
    Phase.CUT: {EventData: (Phase.CUT,), TurnEnded: (Phase.IDLE,)},
}
"""For each phase, the types that may follow and the phases they may lead to.

Where there are several, the event's content decides.
"""
