"""Property: what the loop may write is a log, and hardly anything else is (G1, G9)."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.log.random_logs import written_logs
from tests.log.writing import OPENED, LogWriter, Note, changed
from trioloop.errors import GrammarError
from trioloop.events import (
    AssistantAttemptLogged,
    AssistantMessageLogged,
    Event,
    EventData,
    InboxSpliced,
    SessionOpened,
    StepEnded,
    StepStarted,
    ToolCallStarted,
    ToolDispatched,
    ToolResultLogged,
    TurnEnded,
    TurnStarted,
    Unadmitted,
    UserMessageLogged,
)
from trioloop.ids import CallId, MessageId
from trioloop.log.fold import LogState, check, fold
from trioloop.log.phases import MAY_FOLLOW, Phase

ONCE = (
    SessionOpened,
    TurnStarted,
    TurnEnded,
    StepStarted,
    StepEnded,
    AssistantMessageLogged,
    ToolCallStarted,
    ToolDispatched,
)


def spoilt(data: EventData) -> Iterator[EventData]:
    """Facts that may not stand where a good one stands."""
    if isinstance(data, TurnStarted | TurnEnded):
        yield changed(data, turn=data.turn + 1)
    if isinstance(data, StepStarted | StepEnded):
        yield changed(data, step=data.step + 1)
        yield changed(data, turn=data.turn - 1)
    if isinstance(data, TurnEnded):
        ghost = Unadmitted(MessageId("ghost"), "next-step", "never sent")
        yield changed(data, unadmitted=(*data.unadmitted, ghost))
        if data.unadmitted:
            yield changed(data, unadmitted=data.unadmitted[1:])
    if isinstance(data, InboxSpliced):
        yield changed(data, start=data.start + 100)
        yield changed(data, start=-1)
        yield changed(data, removed=data.removed + 100)
        if data.removed and data.outcome is None:
            yield changed(data, removed=0)
    if isinstance(data, ToolResultLogged) and data.replaces is None:
        yield changed(data, call=CallId("call_0_0_0"))
        yield changed(data, call_seq=None if data.call_seq is not None else 0)
        yield changed(data, replaces=0)
    if isinstance(data, ToolCallStarted):
        yield changed(data, arguments="others")
        yield changed(data, call=CallId("call_0_0_0"))
    if isinstance(data, ToolDispatched):
        yield changed(data, call_seq=data.call_seq + 1)
    if isinstance(data, UserMessageLogged) and data.replaces is not None:
        yield changed(data, replaces=(0, data.replaces[1]))
    if isinstance(data, AssistantMessageLogged):
        yield changed(data, interrupted=not data.interrupted)
    if isinstance(data, AssistantAttemptLogged):
        yield changed(data, failure=None, cancelled=False, sent=True)


@given(written_logs())
def test_every_log_of_the_loop_is_valid(writer: LogWriter) -> None:
    check(writer.events)


@given(written_logs(), st.data())
def test_a_fold_may_be_split_anywhere(writer: LogWriter, data: st.DataObject) -> None:
    split = data.draw(st.integers(0, len(writer.events)))
    state = fold(writer.events[:split])
    for event in writer.events[split:]:
        state.apply(event)
    assert state == writer.state == fold(writer.events)


@given(written_logs())
def test_each_event_leads_to_a_phase_that_the_table_names(writer: LogWriter) -> None:
    state = LogState()
    for event in writer.events:
        row = MAY_FOLLOW[state.phase]
        may_lead_to = row[type(event.data) if type(event.data) in row else EventData]
        state.apply(event)
        assert state.phase in may_lead_to


@given(written_logs(), st.data())
def test_a_spoilt_event_is_refused_and_changes_nothing(
    writer: LogWriter, data: st.DataObject
) -> None:
    event = data.draw(st.sampled_from(writer.events))
    before = writer.events[: event.seq]
    for bad in spoilt(event.data):
        state = fold(before)
        with pytest.raises(GrammarError) as caught:
            state.apply(Event(event.seq, event.time, bad))
        assert caught.value.seq == event.seq
        assert caught.value.rule
        assert state == fold(before)


@given(written_logs(), st.data())
def test_what_happens_once_may_not_happen_again(writer: LogWriter, data: st.DataObject) -> None:
    once = [event for event in writer.events if isinstance(event.data, ONCE)]
    event = data.draw(st.sampled_from(once))
    state = fold(writer.events[: event.seq + 1])
    with pytest.raises(GrammarError):
        state.apply(Event(event.seq + 1, event.time, event.data))


@given(written_logs(), st.data())
def test_a_lost_or_swapped_event_is_noticed(writer: LogWriter, data: st.DataObject) -> None:
    writer.add(*([Note()] if len(writer.events) < 2 else []))
    lost = data.draw(st.integers(0, len(writer.events) - 2))
    with pytest.raises(GrammarError, match="seq"):
        check(writer.events[:lost] + writer.events[lost + 1 :])
    swapped = list(writer.events)
    swapped[lost : lost + 2] = reversed(swapped[lost : lost + 2])
    with pytest.raises(GrammarError, match="seq"):
        check(swapped)


def test_every_phase_but_the_first_can_be_reached_from_the_table() -> None:
    reached = {phase for row in MAY_FOLLOW.values() for led in row.values() for phase in led}
    assert reached == set(Phase) - {Phase.NEW}


def test_an_opened_session_is_a_log() -> None:
    assert fold([Event(0, 0, OPENED)]).session == OPENED
