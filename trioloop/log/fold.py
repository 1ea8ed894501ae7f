"""Events to state: the one place where the meaning of a log is written down (G9).

`LogState.apply` looks up one row of one table: a check from the grammar, which raises before
anything has changed, and a change, which can't fail behind it. Each event costs O(1), amortised,
but for replacements in the history.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from trioloop.chunks import Usage
from trioloop.events import (
    AssistantAttemptLogged,
    AssistantMessageLogged,
    Event,
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
from trioloop.log.grammar import CHECKS, Check, following
from trioloop.log.phases import MAY_FOLLOW, Phase
from trioloop.log.state import (
    NO_USAGE,
    Claimed,
    Fate,
    NestedCall,
    OpenCall,
    OpenStep,
    OpenTurn,
    State,
)
from trioloop.messages import ToolResultMessage

__all__ = ["Claimed", "Fate", "LogState", "OpenCall", "OpenStep", "OpenTurn", "check", "fold"]

Change: TypeAlias = Callable[[State, Event, Any], Phase | None]  # of the one class it is listed for


class LogState(State):
    """The state of a session, brought forward one event at a time."""

    __slots__ = ()

    def apply(self, event: Event, kind: type[EventData] | None = None) -> None:
        """Take the next event.

        Args:
            event: the event, or one whose data has the fields alone that are needed here.
            kind: the class that such data stands for; None: its own.

        Raises:
            GrammarError: the event may not stand there; the state is as before.
            UnsupportedSessionError: the log has another format (E5).
        """
        data = event.data
        kind = kind or type(data)
        rules = _RULES[self.phase].get(kind)
        seq, time = event.seq, event.time
        if rules is None:
            self.phase = following(self, event, kind if kind in CHECKS else EventData)[0]
        else:
            check, change, phase = rules
            if seq != self.seq + 1 or time < self.time or seq == self.fork_due:
                following(self, event, kind)
            check(self, event, data)
            self.phase = change(self, event, data) or phase
        self.seq = seq
        self.time = time


def fold(events: Iterable[Event]) -> LogState:
    """The state behind some events, from the first of a log on.

    Raises:
        GrammarError: they are no log.
        UnsupportedSessionError: the log has another format (E5).
    """
    state = LogState()
    for event in events:
        state.apply(event)
    return state


def check(events: Iterable[Event]) -> None:
    """Check that some events are a log (G1).

    Raises:
        GrammarError: one of them may not stand where it stands; `seq`, `rule`, `expected` and
            `got` tell which and why.
        UnsupportedSessionError: the log has another format (E5).
    """
    fold(events)


# Each change returns the phase it leads to, or None where the table leaves one only


def _session(state: State, event: Event, data: SessionOpened) -> None:
    state.session = data
    if data.fork_seq is not None:
        state.fork_due = data.fork_seq + 1


def _splice(state: State, event: Event, data: InboxSpliced) -> Phase | None:
    removed = state.inbox.of(data.list)[data.start : data.start + data.removed]
    is_claim = bool(removed) and data.outcome is None
    if not state.fates:
        state.fates = {}
    for pending in removed:
        if is_claim:
            _claim(state, event, data, Claimed(pending, data.list))
        else:
            gone = Fate("discarded", event.seq, data.list, why=data.outcome)
            state.fates[pending.message.id] = gone
    for pending in data.inserted:
        if pending.restored and state.turn is not None:
            state.turn.claims.pop(pending.message.id, None)
        state.fates[pending.message.id] = Fate("pending", event.seq, data.list, pending=pending)
    state.inbox = state.inbox.spliced(data)
    if event.seq == state.fork_due:
        more = data.outcome == "forked" and len(state.inbox) > 0
        state.fork_due = event.seq + 1 if more else -1
    return None


def _claim(state: State, event: Event, data: InboxSpliced, claimed: Claimed) -> None:
    turn = state.turn
    assert turn is not None
    id = claimed.pending.message.id
    turn.claims[id] = claimed
    turn.took_next_turn = turn.took_next_turn or data.list == "next-turn"
    state.fates[id] = Fate("claimed", event.seq, data.list, turn.number, pending=claimed.pending)


def _turn_start(state: State, event: Event, data: TurnStarted) -> Phase:
    state.turns = data.turn
    turn = OpenTurn(data.turn, event.seq, data.retry_of)
    state.turn = turn
    if data.retry_of is None:
        return Phase.CLAIMING
    turn.retries = state.chain_retries + 1
    turn.failures = state.chain_failures
    turn.owed = "retry"
    return Phase.PREPARING


def _turn_end(state: State, event: Event, data: TurnEnded) -> None:
    turn = state.turn
    assert turn is not None
    for one in data.unadmitted:
        fate = state.fates[one.message]
        state.fates[one.message] = attrs.evolve(
            fate, status="unadmitted", seq=event.seq, why=one.why
        )
    state.chain_failures = turn.failures
    state.chain_retries = turn.retries
    state.last_turn = data
    state.last_turn_seq = event.seq
    state.turn = None


def _step_start(state: State, event: Event, data: StepStarted) -> None:
    turn = state.turn
    assert turn is not None
    turn.step = OpenStep(data.step, owed=turn.owed is not None)
    turn.steps = data.step
    turn.owed = None
    turn.passed.update(turn.claims)
    turn.claims.clear()


def _step_end(state: State, event: Event, data: StepEnded) -> None:
    turn = state.turn
    assert turn is not None
    turn.step = None


def _system(state: State, event: Event, data: SystemMessageLogged) -> None:
    step = _open_step(state)
    step.admitted = True
    step.series = step.series or (data.placement == "head" and state.header is not None)
    state.surface.set_system(event.seq, data)


def _user(state: State, event: Event, data: UserMessageLogged) -> Phase | None:
    turn, id = state.turn, data.message.id
    if id:
        fate = state.fates.get(id)
        number = None if turn is None else turn.number
        source = None if fate is None else fate.list
        state.fates[id] = Fate("admitted", event.seq, source, number)
    if data.replaces is not None:
        state.surface.replace(event.seq, *data.replaces, data.message)
        return state.phase
    assert turn is not None
    turn.passed.pop(id, None)
    _open_step(state).entered += 1
    state.surface.append(event.seq, data.message)
    return Phase.MESSAGES


def _header(state: State, event: Event, data: RequestHeaderLogged) -> None:
    step = _open_step(state)
    step.admitted = True
    step.series = False
    state.header = data
    if data.why == "series":
        state.surface.start_series()


def _context(state: State, event: Event, data: RequestContextLogged) -> None:
    _open_step(state).admitted = True
    state.context = data


def _answer(state: State, event: Event, data: AssistantMessageLogged) -> Phase:
    turn, step = state.turn, _open_step(state)
    assert turn is not None
    _spend(state, turn, data.usage)
    step.admitted = False
    step.answer = data
    calls = data.message.calls
    state.surface.append_answer(event.seq, data, calls)
    if data.finish is None:
        return Phase.STOPPED
    turn.failures = ()
    reason = data.finish.reason
    if reason == "pause":
        turn.owed = "pause"
    elif reason == "length":
        turn.reason_so_far = "max-tokens"
    if not calls:
        return Phase.ANSWERED
    step.calls = {block.call: OpenCall(block, index) for index, block in enumerate(calls)}
    step.order = tuple(step.calls)
    if not step.is_cut:
        turn.owed = "results"
    return Phase.CALLING


def _attempt(state: State, event: Event, data: AssistantAttemptLogged) -> Phase:
    turn, step = state.turn, _open_step(state)
    assert turn is not None
    _spend(state, turn, data.usage)
    step.admitted = False
    step.attempts += 1
    if data.cancelled or not data.sent:
        return Phase.STOPPED
    if data.failure is not None:
        turn.failures = (*turn.failures, data.failure)
    return Phase.FAILED


def _spend(state: State, turn: OpenTurn, usage: Usage | None) -> None:
    if usage is not None:
        state.usage = usage if state.usage is NO_USAGE else state.usage + usage
        turn.usage = usage if turn.usage is NO_USAGE else turn.usage + usage


def _call(state: State, event: Event, data: ToolCallStarted) -> None:
    step = _open_step(state)
    call = step.calls[data.call]
    call.call_seq = event.seq
    call.dispatched = data.dispatched
    step.starts[event.seq] = call
    step.last_start = call.index


def _dispatch(state: State, event: Event, data: ToolDispatched) -> None:
    step = _open_step(state)
    call = step.starts.get(data.call_seq) or (step.nested or {})[data.call_seq]
    call.dispatched = True
    if isinstance(call, OpenCall):
        call.changed = data.arguments


def _result(state: State, event: Event, data: ToolResultLogged) -> Phase:
    if data.replaces is not None:
        state.surface.rewrite(event.seq, data.replaces, data.content)
        return state.phase
    turn, step = state.turn, _open_step(state)
    assert turn is not None
    call = step.calls[data.call]
    call.result = data
    step.answered += 1
    if data.concludes_turn:
        turn.owed = None
    message = ToolResultMessage(data.call, call.block.wire_id, data.content, data.is_error)
    state.surface.append(event.seq, message)
    return Phase.CALLING if step.answered < len(step.order) else Phase.ANSWERED


def _nested_call(state: State, event: Event, data: NestedCallStarted) -> None:
    step = _open_step(state)
    parent = step.calls[data.parent]
    if parent.nested is None:
        parent.nested = {}
    if step.nested is None:
        step.nested = {}
    parent.nested[data.call] = step.nested[event.seq] = NestedCall(data.name, data.dispatched)


def _nested_result(state: State, event: Event, data: NestedResultLogged) -> None:
    nested = _open_step(state).calls[data.parent].nested
    assert nested is not None
    nested[data.call].answered = True


def _open_step(state: State) -> OpenStep:
    assert state.turn is not None
    assert state.turn.step is not None
    return state.turn.step


_CHANGES: Mapping[type[EventData], Change] = {
    SessionOpened: _session,
    InboxSpliced: _splice,
    TurnStarted: _turn_start,
    TurnEnded: _turn_end,
    StepStarted: _step_start,
    StepEnded: _step_end,
    SystemMessageLogged: _system,
    UserMessageLogged: _user,
    RequestHeaderLogged: _header,
    RequestContextLogged: _context,
    AssistantMessageLogged: _answer,
    AssistantAttemptLogged: _attempt,
    ToolCallStarted: _call,
    ToolDispatched: _dispatch,
    ToolResultLogged: _result,
    NestedCallStarted: _nested_call,
    NestedResultLogged: _nested_result,
}

_RULES: Sequence[Mapping[type[EventData], tuple[Check, Change, Phase]]] = [
    {
        kind: (CHECKS[kind], _CHANGES[kind], phases[0])
        for kind, phases in MAY_FOLLOW[phase].items()
        if kind is not EventData
    }
    for phase in Phase
]
"""For each phase and each type that may follow: its check, its change, where that leads to."""
