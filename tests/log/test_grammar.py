"""What the grammar refuses in which situation, and the rule it names (G1)."""

from collections.abc import Callable

import pytest

from tests.log.situations import (
    A,
    B,
    admitted,
    answered,
    called,
    calling,
    cut,
    failed,
    opened,
    results_owed,
    step,
    step_failed,
    turn,
    turn_failed,
    two_turns,
    waiting,
)
from tests.log.writing import (
    FAILED,
    OPENED,
    LogWriter,
    Note,
    answer,
    call_block,
    changed,
    claimed_message,
    ended,
    header,
    pending,
    result,
    sent,
    started,
    user,
)
from trioloop.chunks import EMPTY_STREAM
from trioloop.errors import GrammarError, UnsupportedSessionError
from trioloop.events import (
    AssistantAttemptLogged,
    Event,
    EventData,
    InboxSpliced,
    NestedCallStarted,
    NestedResultLogged,
    StepEnded,
    StepStarted,
    SystemMessageLogged,
    ToolDispatched,
    TurnStarted,
    UserMessageLogged,
)
from trioloop.ids import CallId
from trioloop.log.fold import LogState, check, fold
from trioloop.messages import TextBlock, ToolCallBlock

REFUSED: list[tuple[Callable[[], LogWriter], EventData, str]] = [
    # order
    (opened, OPENED, "section 4"),
    (opened, ended(1), "section 4"),
    (waiting, StepStarted(1, 1), "section 4"),
    (turn, TurnStarted(2), "section 4"),
    (turn, StepEnded(1, 1), "section 4"),
    (turn, header(), "section 4"),
    (turn, answer(), "section 4"),
    (step, ended(1), "section 4"),
    (step, started(A), "section 4"),
    (admitted, user("m2"), "section 4"),
    (admitted, header("resume"), "section 4"),
    (answered, FAILED, "section 4"),
    (answered, answer(), "section 4"),
    (calling, StepEnded(1, 1), "section 4"),
    (calling, ended(1, "aborted"), "section 4"),
    (answered, started(A), "section 4"),
    # turns and steps
    (opened, TurnStarted(1), "section 1"),
    (waiting, TurnStarted(2), "R7"),
    (waiting, TurnStarted(1, retry_of=0), "R2"),
    (turn_failed, TurnStarted(2, retry_of=2), "R2"),
    (turn, StepStarted(1, 2), "R7"),
    (turn, StepStarted(2, 1), "R7"),
    (answered, StepEnded(1, 2), "R7"),
    (results_owed, ended(1), "R7"),
    (step_failed, StepStarted(1, 2), "section 4"),
    (step_failed, ended(1), "section 4"),
    (turn, ended(1, "blocked"), "R5"),
    (turn, changed(ended(1, "aborted"), cause=None), "section 4"),
    (turn, changed(ended(1, "error"), code=None), "section 4"),
    # the inbox
    (waiting, InboxSpliced("next-turn", 0), "I2"),
    (waiting, InboxSpliced("next-turn", 0, 2, outcome="canceled"), "I2"),
    (waiting, InboxSpliced("next-turn", 2, inserted=(pending("m2"),)), "I2"),
    (waiting, InboxSpliced("next-turn", 1, inserted=(pending("m2"),), outcome="canceled"), "I2"),
    (waiting, InboxSpliced("next-turn", 0, 1, outcome="replaced"), "I2"),
    (waiting, InboxSpliced("next-turn", 0, 1, (pending("m2"),), "canceled"), "I2"),
    (waiting, InboxSpliced("next-turn", 0, 1), "section 4"),
    (waiting, sent("next-step", "m1"), "I1"),
    (waiting, InboxSpliced("next-step", 0, inserted=(pending("m2"), pending("m2"))), "I1"),
    (waiting, InboxSpliced("next-step", 0, inserted=(pending(""),)), "I1"),
    (waiting, InboxSpliced("next-turn", 0, 1, outcome="forked"), "D6"),
    (turn, sent("next-turn", "m1"), "I1"),
    (answered, sent("next-turn", "m1"), "I1"),
    # admission
    (step, user("m1", replaces=(1, 1)), "section 4"),
    (step, user(""), "I1"),
    (step, answer(), "E2"),
    (step, header("change"), "E2"),
    (two_turns, user("m2"), "section 4"),
    (failed, user("m2"), "section 4"),
    (failed, header("change"), "E2"),
    (failed, header("initial"), "E2"),
    (step, SystemMessageLogged("a", 0, "head", None), "E1"),
    (step, SystemMessageLogged("a", 0, "tail", None), "E1"),
    # attempts
    (admitted, AssistantAttemptLogged(EMPTY_STREAM), "E3"),
    (admitted, answer([A], interrupted=True), "P9"),
    (admitted, changed(answer(), interrupted=True), "P9"),
    (admitted, changed(answer(), finish=None), "P9"),
    (admitted, answer([B], "tool_calls"), "G4"),
    (admitted, answer([ToolCallBlock(A.call, "", "look", "")], "tool_calls"), "section 6"),
    (
        admitted,
        answer([A, ToolCallBlock(B.call, A.wire_id, "look", "")], "tool_calls"),
        "section 6",
    ),
    # calls
    (calling, started(call_block(2, 1, 0)), "G4"),
    (called, started(A), "T5"),
    (calling, changed(started(A), name="other"), "T5"),
    (calling, changed(started(A), arguments="{}"), "T5"),
    (cut, started(A), "P14"),
    (called, ToolDispatched(0), "T5"),
    (calling, result(B.call, None), "G4"),
    (calling, result(A.call, 3), "T5"),
    (called, result(A.call, None), "T5"),
    (called, result(B.call, None), "G4"),
    (calling, NestedCallStarted(CallId("n"), A.call, "look", "{}", True), "T5"),
    (called, NestedCallStarted(B.call, A.call, "look", "{}", True), "T5"),
    (called, NestedResultLogged(CallId("n"), A.call, (TextBlock("x"),)), "G4"),
    (turn, result(A.call, None), "G4"),
]


@pytest.mark.parametrize(("situation", "fact", "rule"), REFUSED)
def test_a_fact_that_may_not_stand_there_is_refused(
    situation: Callable[[], LogWriter], fact: EventData, rule: str
) -> None:
    writer = situation()
    with pytest.raises(GrammarError) as caught:
        writer.add(fact)
    assert (caught.value.seq, caught.value.rule) == (writer.seq + 1, rule), caught.value
    assert writer.state == fold(writer.events)


def test_an_error_says_where_what_was_expected_and_what_came() -> None:
    writer = turn()
    with pytest.raises(GrammarError) as caught:
        writer.add(StepStarted(1, 7))
    error = caught.value
    assert (error.expected, error.got) == ("step 1 of turn 1", "step 7 of turn 1")
    assert str(error) == "event 4 breaks R7: expected step 1 of turn 1, got step 7 of turn 1"


def test_seqs_are_contiguous_and_times_never_decrease() -> None:
    events = opened().events
    with pytest.raises(GrammarError, match="expected seq 1, got seq 2"):
        check([*events, Event(2, 2_000, Note())])
    with pytest.raises(GrammarError, match="expected a time of 999 or later"):
        check([*events, Event(1, 998, Note())])
    check([*events, Event(1, events[0].time, Note())])


def test_an_empty_log_is_valid_and_begins_with_the_session() -> None:
    check([])
    with pytest.raises(GrammarError, match="session/opened"):
        LogState().apply(Event(0, 0, Note()))


def test_another_format_is_refused_and_named() -> None:
    with pytest.raises(UnsupportedSessionError, match="newer"):
        LogWriter(changed(OPENED, format=2))
    with pytest.raises(UnsupportedSessionError, match="older"):
        LogWriter(changed(OPENED, format=0))
    with pytest.raises(GrammarError, match="Not A Name"):
        LogWriter(changed(OPENED, session="Not A Name"))


def test_facts_of_plugins_may_stand_anywhere_between_blocks() -> None:
    for situation in (opened, waiting, turn, failed, calling, called, answered, step_failed):
        situation().add(Note(), Note())


def test_an_admission_is_one_block() -> None:
    writer = step()
    writer.add(UserMessageLogged(claimed_message(turn())), Note())
    with pytest.raises(GrammarError):
        writer.add(header())
