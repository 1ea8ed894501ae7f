"""What each event changes in the state of its log.

One function per type, under the same name as its check in `grammar.py`. It gets what that check
found, and can't fail behind it. Which change belongs to which event is looked up in `fold.py`.
"""

from collections.abc import Callable, Mapping
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
from trioloop.log.phases import Phase
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
from trioloop.messages import ToolCallBlock, ToolResultMessage

# Of the one class it is listed for, and what the check of that class gives
Change: TypeAlias = Callable[[State, Event, Any, Any], Phase | None]

# Each returns the phase it leads to, or None where the table leaves one only. Phases stand here by
# themselves: Python 3.11 is slow to find an enum's member.
_CLAIMING, _PREPARING, _MESSAGES = Phase.CLAIMING, Phase.PREPARING, Phase.MESSAGES
_FAILED, _STOPPED = Phase.FAILED, Phase.STOPPED
_CALLING, _ANSWERED = Phase.CALLING, Phase.ANSWERED


def _session(state: State, event: Event, data: SessionOpened, found: None) -> None:
    state.session = data
    if data.fork_seq is not None:
        state.fork_due = data.fork_seq + 1


def _splice(state: State, event: Event, data: InboxSpliced, found: None) -> None:
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


def _claim(state: State, event: Event, data: InboxSpliced, claimed: Claimed) -> None:
    turn = state.turn
    assert turn is not None
    id = claimed.pending.message.id
    turn.claims[id] = claimed
    turn.took_next_turn = turn.took_next_turn or data.list == "next-turn"
    state.fates[id] = Fate("claimed", event.seq, data.list, turn.number, pending=claimed.pending)


def _turn_start(state: State, event: Event, data: TurnStarted, found: None) -> Phase:
    state.turns = data.turn
    turn = OpenTurn(data.turn, event.seq, data.retry_of)
    state.turn = turn
    if data.retry_of is None:
        return _CLAIMING
    turn.retries = state.chain_retries + 1
    turn.failures = state.chain_failures
    turn.owed = "retry"
    return _PREPARING


def _turn_end(state: State, event: Event, data: TurnEnded, turn: OpenTurn) -> None:
    for one in data.unadmitted:
        fate = state.fates[one.message]
        state.fates[one.message] = attrs.evolve(
            fate, status="unadmitted", seq=event.seq, why=one.why
        )
    state.chain_failures = turn.failures
    state.chain_retries = turn.retries
    state.past_usage += turn.usage
    state.last_turn = data
    state.last_turn_seq = event.seq
    state.turn = None


def _step_start(state: State, event: Event, data: StepStarted, turn: OpenTurn) -> None:
    turn.step = OpenStep(data.step, owed=turn.owed is not None)
    turn.steps = data.step
    turn.owed = None
    if turn.claims:
        turn.passed.update(turn.claims)
        turn.claims.clear()


def _step_end(state: State, event: Event, data: StepEnded, turn: OpenTurn) -> None:
    turn.step = None


def _system(state: State, event: Event, data: SystemMessageLogged, found: None) -> None:
    step = _open_step(state)
    step.admitted = True
    step.series = step.series or (data.placement == "head" and state.header is not None)
    state.surface.set_system(event.seq, data)


def _user(state: State, event: Event, data: UserMessageLogged, found: None) -> Phase:
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
    return _MESSAGES


def _header(state: State, event: Event, data: RequestHeaderLogged, step: OpenStep) -> None:
    step.admitted = True
    step.series = False
    state.header = data
    if data.why == "series":
        state.surface.start_series()


def _context(state: State, event: Event, data: RequestContextLogged, found: None) -> None:
    _open_step(state).admitted = True
    state.context = data


def _answer(
    state: State,
    event: Event,
    data: AssistantMessageLogged,
    found: tuple[OpenStep, tuple[ToolCallBlock, ...]],
) -> Phase:
    turn, (step, calls) = _open_turn(state), found
    if data.usage is not None:
        _spend(turn, data.usage)
    step.admitted = False
    step.answer = data
    state.surface.append_answer(event.seq, data, calls)
    if data.finish is None:
        return _STOPPED
    turn.failures = ()
    reason = data.finish.reason
    if reason == "pause":
        turn.owed = "pause"
    elif reason == "length":
        turn.reason_so_far = "max-tokens"
    if not calls:
        return _ANSWERED
    step.calls = {block.call: OpenCall(block, index) for index, block in enumerate(calls)}
    step.order = tuple(step.calls)
    step.is_cut = reason == "length"
    if not step.is_cut:
        turn.owed = "results"
    return _CALLING


def _attempt(state: State, event: Event, data: AssistantAttemptLogged, step: OpenStep) -> Phase:
    turn = _open_turn(state)
    if data.usage is not None:
        _spend(turn, data.usage)
    step.admitted = False
    step.attempts += 1
    if data.cancelled or not data.sent:
        return _STOPPED
    if data.failure is not None:
        turn.failures = (*turn.failures, data.failure)
    return _FAILED


def _spend(turn: OpenTurn, usage: Usage) -> None:
    turn.usage = usage if turn.usage is NO_USAGE else turn.usage + usage


def _call(
    state: State, event: Event, data: ToolCallStarted, found: tuple[OpenStep, OpenCall]
) -> None:
    step, call = found
    call.call_seq = event.seq
    call.dispatched = data.dispatched
    step.starts[event.seq] = call
    step.last_start = call.index


def _dispatch(
    state: State, event: Event, data: ToolDispatched, call: OpenCall | NestedCall
) -> None:
    call.dispatched = True
    if isinstance(call, OpenCall):
        call.changed = data.arguments


def _result(
    state: State,
    event: Event,
    data: ToolResultLogged,
    found: tuple[OpenStep, OpenCall] | None,
) -> Phase:
    if data.replaces is not None:
        state.surface.rewrite(event.seq, data.replaces, data.content)
        return state.phase
    assert found is not None
    step, call = found
    call.result = data
    step.answered += 1
    if data.concludes_turn:
        _open_turn(state).owed = None
    message = ToolResultMessage(data.call, call.block.wire_id, data.content, data.is_error)
    state.surface.append(event.seq, message)
    return _CALLING if step.answered < len(step.order) else _ANSWERED


def _nested_call(
    state: State, event: Event, data: NestedCallStarted, found: tuple[OpenStep, OpenCall]
) -> None:
    step, parent = found
    if parent.nested is None:
        parent.nested = {}
    if step.nested is None:
        step.nested = {}
    parent.nested[data.call] = step.nested[event.seq] = NestedCall(data.name, data.dispatched)


def _nested_result(
    state: State, event: Event, data: NestedResultLogged, nested: NestedCall
) -> None:
    nested.answered = True


def _open_turn(state: State) -> OpenTurn:
    turn = state.turn
    assert turn is not None
    return turn


def _open_step(state: State) -> OpenStep:
    step = _open_turn(state).step
    assert step is not None
    return step


CHANGES: Mapping[type[EventData], Change] = {
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
"""For each type with a rule of its own, the function that changes the state."""
