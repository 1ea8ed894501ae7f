"""The log's grammar (G1): what an event must say to stand where it stands.

`phases.py` has the order; here is what each type must say besides, one function per type. A check
reads the state behind the events before, changes nothing, and names the contract rule that is
broken. It gives what it looked up there, for the fold to change. Each is O(1), but for those of
replacements and of inserted or claimed messages.
"""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeAlias

from trioloop.errors import InvalidInputError, UnsupportedSessionError
from trioloop.events import (
    FORMAT,
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
    wire_name,
)
from trioloop.ids import CallId, call_ids, session_id
from trioloop.log.inbox_grammar import check_fork, check_splice
from trioloop.log.phases import MAY_FOLLOW, Phase
from trioloop.log.refusal import refuse
from trioloop.log.state import NestedCall, OpenCall, OpenStep, OpenTurn, State
from trioloop.messages import ToolCallBlock

# Of the one data class it is listed under; what it gives is for the change of the same class
Check: TypeAlias = Callable[[State, Event, Any], Any]

_CALLING, _ADMITTING = Phase.CALLING, (Phase.SYSTEM, Phase.MESSAGES)  # enums look up slowly


def following(state: State, event: Event, kind: type[EventData]) -> tuple[Phase, ...]:
    """The phases that an event may lead to, by its place alone.

    Args:
        state: behind the events before.
        event: the next one.
        kind: the type of its data; `EventData` where that has no rule.

    Raises:
        GrammarError: an event of that type, seq or time may not stand there.
    """
    if event.seq != state.seq + 1:
        refuse(event, "section 6", f"seq {state.seq + 1}", f"seq {event.seq}")
    if event.time < state.time and not _is_inherited(state):
        refuse(event, "section 6", f"a time of {state.time} or later", f"time {event.time}")
    if event.seq == state.fork_due:
        check_fork(state, event)
    phases = MAY_FOLLOW[state.phase].get(kind)
    if phases is None:
        _refuse_place(state, event)
    return phases


def _is_inherited(state: State) -> bool:
    """Whether the next event is the first that a fork inherited: its own first one is younger."""
    return state.seq == 0 and state.session is not None and state.session.fork_seq is not None


def _refuse_place(state: State, event: Event) -> NoReturn:
    may = MAY_FOLLOW[state.phase]
    names = sorted(wire_name(kind) for kind in may if kind is not EventData)
    where = Phase(state.phase).name.lower()
    refuse(event, "section 4", f"{' or '.join(names)} (the log is {where})", event.type)


# The session, turns and steps


def _session(state: State, event: Event, data: SessionOpened) -> None:
    if data.format != FORMAT:
        age = "newer" if data.format > FORMAT else "older"
        raise UnsupportedSessionError(
            f"session {data.session!r} has format {data.format!r}, written by a version of "
            f"trioloop {age} than this one, which reads format {FORMAT}"
        )
    try:
        session_id(data.session)
    except InvalidInputError as error:
        refuse(event, "section 6", "the name of a session", str(error))
    if data.parent is None and data.fork_seq is not None:
        refuse(event, "D6", "a parent beside fork_seq", f"fork_seq {data.fork_seq} alone")


def _turn_start(state: State, event: Event, data: TurnStarted) -> None:
    if data.turn != state.turns + 1:
        refuse(event, "R7", f"turn {state.turns + 1}", f"turn {data.turn}")
    if data.retry_of is None:
        if not len(state.inbox):
            refuse(event, "section 1", "a turn that messages open", "one with nothing pending")
        return
    if state.last_turn_seq != event.seq - 1 or data.retry_of != state.turns:
        last = f"a retry of turn {state.turns} directly behind its end"
        refuse(event, "R2", last, f"a retry of turn {data.retry_of}")
    if state.last_turn is None or state.last_turn.reason != "error" or not state.chain_failures:
        refuse(event, "R2", "a retry of a turn whose attempt failed", "one of another turn")


_ENDINGS: Mapping[Phase, tuple[frozenset[str], str]] = {
    Phase.CLAIMING: (frozenset({"interrupted"}), "section 4"),
    Phase.ENDING: (frozenset({"aborted", "error", "interrupted"}), "section 4"),
    Phase.CUT: (frozenset({"interrupted"}), "P8"),
}


def _turn_end(state: State, event: Event, data: TurnEnded) -> OpenTurn:
    turn = _turn(state)
    if data.turn != turn.number:
        refuse(event, "R7", f"the end of turn {turn.number}", f"that of turn {data.turn}")
    if state.phase in _ENDINGS:
        reasons, rule = _ENDINGS[state.phase]
        if data.reason not in reasons:
            refuse(event, rule, f"a turn that ends {' or '.join(sorted(reasons))}", data.reason)
    elif data.reason in ("completed", "max-tokens"):
        _good_end(turn, event, data)
    if data.reason == "aborted" and data.cause is None:
        refuse(event, "section 4", "the cause of an aborted turn", "none")
    if data.reason in ("blocked", "error") and data.code is None:
        refuse(event, "section 4", f"the code of a turn that ends {data.reason}", "none")
    _unadmitted(turn, event, data)
    return turn


def _good_end(turn: OpenTurn, event: Event, data: TurnEnded) -> None:
    if turn.owed == "results":
        refuse(event, "R7", "a step for the results that the model hasn't seen", data.reason)
    if turn.owed == "retry":
        refuse(event, "R2", "the request that the retry turn owes", data.reason)
    if data.reason != turn.reason_so_far:
        refuse(event, "P14", f"a turn that ends {turn.reason_so_far}", data.reason)


def _unadmitted(turn: OpenTurn, event: Event, data: TurnEnded) -> None:
    if not (data.unadmitted or turn.claims or turn.passed):
        return
    left = [(claim.pending.message.id, claim.list) for claim in turn.claimed]
    told = [(one.message, one.list) for one in data.unadmitted]
    if told != left:
        refuse(event, "R5", f"unadmitted {left}", f"{told}")


def _step_start(state: State, event: Event, data: StepStarted) -> OpenTurn:
    turn = _turn(state)
    if data.turn != turn.number or data.step != turn.steps + 1:
        expected = f"step {turn.steps + 1} of turn {turn.number}"
        refuse(event, "R7", expected, f"step {data.step} of turn {data.turn}")
    return turn


def _step_end(state: State, event: Event, data: StepEnded) -> OpenTurn:
    turn, step = _turn(state), _step(state)
    if data.turn != turn.number or data.step != step.number:
        expected = f"the end of step {step.number} of turn {turn.number}"
        refuse(event, "R7", expected, f"that of step {data.step} of turn {data.turn}")
    return turn


# Admission


def _system(state: State, event: Event, data: SystemMessageLogged) -> None:
    if data.text is not None or data.node in state.surface.sections():
        return
    if data.placement == "tail" or state.surface.head(data.node) is None:
        refuse(event, "E1", "the removal of a node that is there", f"that of {data.node!r}")


def _user(state: State, event: Event, data: UserMessageLogged) -> None:
    admitting = state.phase in _ADMITTING
    if data.replaces is not None:
        if admitting:
            refuse(event, "section 4", "a message that joins the step", "one that replaces others")
        fault = state.surface.fault_in_range(*data.replaces)
        if fault is not None:
            refuse(event, "section 6", "a range of whole nodes to replace", fault)
    elif not admitting:
        refuse(
            event, "section 4", "a message that replaces others, outside an admission", "one more"
        )
    elif not data.message.id:
        refuse(event, "I1", "a message with an id", "one without")
    _admissible(state, event, data)


def _admissible(state: State, event: Event, data: UserMessageLogged) -> None:
    fate = state.fates.get(data.message.id)
    if fate is None:  # a pre-step or a policy adds it
        return
    if fate.status != "claimed" or data.replaces is not None:
        refuse(event, "S3", "a new message, or one that the turn claimed", f"one that is {fate}")


def _header(state: State, event: Event, data: RequestHeaderLogged) -> OpenStep:
    before, step = state.header, _step(state)
    if (data.why == "initial") != (before is None):
        why = "initial" if before is None else "resume, change or series"
        refuse(event, "E2", f"a header because of {why}", data.why)
    if before is None:
        return step
    if step.series and data.why != "series":
        refuse(event, "E1", "a header that starts a series: a head node changed", data.why)
    if data.why == "change" and (before.config, before.tools) == (data.config, data.tools):
        refuse(event, "E2", "a change of config or tools", "none")
    if data.why == "series":
        stale = state.surface.stale_head()
        if stale is not None:
            refuse(event, "E1", f"the head node {stale!r} as the model saw it last", "an older one")
    return step


def _nothing_more(state: State, event: Event, data: EventData) -> None:
    """The table has said all."""


# Attempts


def _attempt_stands(state: State, event: Event) -> OpenStep:
    step = _step(state)
    if state.header is None:
        refuse(event, "E2", "request/header before the first attempt", event.type)
    if step.series:
        refuse(event, "E1", "a header that starts a series: a head node changed", event.type)
    if not (step.entered or step.owed):
        refuse(event, "R7", "a message, results, a pause or a retry that asks for the step", "none")
    return step


def _answer(
    state: State, event: Event, data: AssistantMessageLogged
) -> tuple[OpenStep, tuple[ToolCallBlock, ...]]:
    step = _attempt_stands(state, event)
    if data.interrupted != (data.finish is None):
        refuse(event, "P9", "a finish, or interrupted", f"{data.finish} and {data.interrupted}")
    calls = data.message.calls
    if not calls:
        return step, calls
    if data.interrupted:
        refuse(event, "P9", "no calls in an interrupted message", repr(calls[0].call))
    ids = [call.call for call in calls]
    own_ids = call_ids(_turn(state).number, step.number, len(calls))
    if ids != own_ids:
        own, got = next(pair for pair in zip(own_ids, ids, strict=True) if len(set(pair)) > 1)
        refuse(event, "G4", f"the call id {own!r}", repr(got))
    known, wire_ids = state.surface.wire_ids, [call.wire_id for call in calls]
    if len(set(wire_ids)) < len(calls) or "" in wire_ids or not known.isdisjoint(wire_ids):
        wrong = next(id for id in wire_ids if not id or id in known or wire_ids.count(id) > 1)
        refuse(event, "section 6", "a wire id that is new in the history", repr(wrong))
    return step, calls


def _attempt(state: State, event: Event, data: AssistantAttemptLogged) -> OpenStep:
    step = _attempt_stands(state, event)
    if data.sent and data.failure is None and not data.cancelled:
        refuse(event, "E3", "an attempt that failed, was cancelled or never sent", "none of these")
    return step


# Calls


def _call(state: State, event: Event, data: ToolCallStarted) -> tuple[OpenStep, OpenCall]:
    assert state.turn is not None
    step = state.turn.step
    assert step is not None
    call = step.calls.get(data.call)
    if call is None or call.result is not None:
        call = _open_call(step, event, data.call)
    if call.call_seq is not None:
        refuse(event, "T5", f"one start of {data.call!r}", "another one")
    if step.is_cut:
        refuse(event, "P14", "no start of a call that max tokens cut", repr(data.call))
    if step.last_start > call.index:
        behind = step.order[step.last_start]
        refuse(event, "G7", "starts in model order", f"{data.call!r} behind {behind!r}")
    block = call.block
    if data.arguments != block.arguments or data.name != block.name:
        refuse(event, "T5", "name and arguments as the model wrote them", "others")
    return step, call


def _dispatch(state: State, event: Event, data: ToolDispatched) -> OpenCall | NestedCall:
    step = _step(state)
    call = step.starts.get(data.call_seq)
    nested = (step.nested or {}).get(data.call_seq)
    if (call is None or call.result is not None) and (nested is None or nested.answered):
        refuse(event, "T5", "the seq of the start of an open call", str(data.call_seq))
    if (call is not None and call.dispatched) or (nested is not None and nested.dispatched):
        refuse(event, "T5", "one dispatch of a call", f"another one of {data.call_seq}")
    started = call or nested
    assert started is not None
    return started


def _result(state: State, event: Event, data: ToolResultLogged) -> tuple[OpenStep, OpenCall] | None:
    if data.replaces is not None:
        _rewrite(state, event, data)
        return None
    if state.phase is not _CALLING:
        refuse(event, "G4", "a result that rewrites an earlier one", f"one of {data.call!r}")
    step = _step(state)
    call = step.order[step.answered]
    if data.call != call:
        refuse(event, "G4", f"the result of {call!r}", f"that of {data.call!r}")
    open_call = step.calls[call]
    if data.call_seq != open_call.call_seq:
        refuse(event, "T5", f"call_seq {open_call.call_seq}", f"call_seq {data.call_seq}")
    if step.nested is not None and (open_calls := open_call.unanswered):
        refuse(event, "G4", f"the result of {open_calls[0]!r} first", f"that of {call!r}")
    return step, open_call


def _rewrite(state: State, event: Event, data: ToolResultLogged) -> None:
    assert data.replaces is not None
    result = state.surface.result_at(data.replaces)
    if result is None:
        refuse(event, "section 6", "the seq of a result in the history", str(data.replaces))
    if (data.call, data.is_error) != (result.call, result.is_error) or data.concludes_turn:
        refuse(event, "section 6", "other content of the same result, and nothing else", "more")


def _nested_call(state: State, event: Event, data: NestedCallStarted) -> tuple[OpenStep, OpenCall]:
    step = _step(state)
    parent = _open_call(step, event, data.parent)
    if parent.call_seq is None:
        refuse(event, "T5", "a nested call of a call that runs", f"one of {data.parent!r}")
    if data.call in (parent.nested or ()) or data.call in step.calls:
        refuse(event, "T5", "a nested call with a new id", repr(data.call))
    return step, parent


def _nested_result(state: State, event: Event, data: NestedResultLogged) -> NestedCall:
    parent = _open_call(_step(state), event, data.parent)
    nested = (parent.nested or {}).get(data.call)
    if nested is None or nested.answered:
        refuse(event, "G4", "the one result of a nested call that is open", repr(data.call))
    return nested


# What is open, where the table lets an event stand only if it is


def _turn(state: State) -> OpenTurn:
    turn = state.turn
    assert turn is not None
    return turn


def _step(state: State) -> OpenStep:
    turn = state.turn
    assert turn is not None
    step = turn.step
    assert step is not None
    return step


def _open_call(step: OpenStep, event: Event, id: CallId) -> OpenCall:
    call = step.calls.get(id)
    if call is None or call.result is not None:
        refuse(event, "G4", "a call of the open step without a result", repr(id))
    return call


CHECKS: Mapping[type[EventData], Check] = {
    SessionOpened: _session,
    InboxSpliced: check_splice,
    TurnStarted: _turn_start,
    TurnEnded: _turn_end,
    StepStarted: _step_start,
    StepEnded: _step_end,
    SystemMessageLogged: _system,
    UserMessageLogged: _user,
    RequestHeaderLogged: _header,
    RequestContextLogged: _nothing_more,
    AssistantMessageLogged: _answer,
    AssistantAttemptLogged: _attempt,
    ToolCallStarted: _call,
    ToolDispatched: _dispatch,
    ToolResultLogged: _result,
    NestedCallStarted: _nested_call,
    NestedResultLogged: _nested_result,
}
"""For each type with a rule of its own, the function that checks what it says."""
