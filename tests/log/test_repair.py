"""What closes the log of a process that died (D4; REP)."""

from hypothesis import given
from hypothesis import strategies as st

from tests.log.random_logs import written_logs
from tests.log.writing import (
    LogWriter,
    Note,
    answer_calls,
    call_block,
    pending,
    result,
    sent,
    started,
)
from trioloop.events import (
    Event,
    EventData,
    InboxSpliced,
    NestedCallStarted,
    NestedResultLogged,
    PendingMessage,
    StepEnded,
    StepStarted,
    ToolDispatched,
    ToolResultLogged,
    TurnEnded,
    Unadmitted,
    UserMessageLogged,
)
from trioloop.ids import MessageId, nested_call_id
from trioloop.log.fold import LogState, OpenCall, fold
from trioloop.log.repair import repair
from trioloop.messages import TextBlock

INTERRUPTED = TurnEnded(1, "interrupted")


def placed(events: list[Event], facts: tuple[EventData, ...]) -> list[Event]:
    """A log with some facts behind it."""
    more = [Event(seq, 99_999, fact) for seq, fact in enumerate(facts, len(events))]
    return [*events, *more]


@given(written_logs(), st.data())
def test_every_prefix_is_repaired_to_a_log_without_anything_open(
    writer: LogWriter, data: st.DataObject
) -> None:
    prefix = writer.events[: data.draw(st.integers(0, len(writer.events)))]
    repaired = placed(prefix, repair(prefix))
    state = fold(repaired)
    assert state.turn is None
    assert repair(state) == ()
    assert {fate.status for fate in state.fates.values()}.isdisjoint({"claimed"})


@given(written_logs(), st.data())
def test_each_part_of_a_repair_is_repaired_to_the_same_end(
    writer: LogWriter, data: st.DataObject
) -> None:
    prefix = writer.events[: data.draw(st.integers(0, len(writer.events)))]
    whole = repair(prefix)
    for done in range(len(whole) + 1):
        assert repair(placed(prefix, whole[:done])) == whole[done:]


@given(written_logs(), st.data())
def test_a_repair_loses_no_message(writer: LogWriter, data: st.DataObject) -> None:
    prefix = writer.events[: data.draw(st.integers(0, len(writer.events)))]
    before, after = fold(prefix), fold(placed(prefix, repair(prefix)))
    kept = {pending.message.id for pending in after.inbox}
    assert kept >= {pending.message.id for pending in before.inbox}
    if before.turn is not None:
        assert kept >= {claim.pending.message.id for claim in before.turn.fresh}


def test_a_closed_log_needs_no_repair() -> None:
    writer = LogWriter()
    writer.turn_of_text("m1")
    writer.add(sent("next-turn", "m2"), Note())
    assert repair(writer.events) == repair(writer.state) == repair([]) == ()


def test_what_was_claimed_goes_back_to_the_heads_of_its_lists() -> None:
    writer = LogWriter()
    writer.add(sent("next-step", "s1", wakeup=False), sent("next-step", "s2", start=1))
    writer.open_turn("t1")
    writer.add(sent("next-turn", "t2"), sent("next-step", "s3"))
    restored = [
        PendingMessage(one.message, wakeup=one.wakeup, restored=True)
        for one in (pending("s1", wakeup=False), pending("s2"), pending("t1"))
    ]
    assert repair(writer.events) == (
        InboxSpliced("next-step", 0, inserted=(restored[0], restored[1])),
        InboxSpliced("next-turn", 0, inserted=(restored[2],)),
        INTERRUPTED,
    )
    inbox = fold(placed(writer.events, repair(writer.events))).inbox
    assert [one.message.id for one in inbox] == ["s1", "s2", "s3", "t1", "t2"]


def test_what_a_step_passed_by_is_listed_as_unadmitted() -> None:
    writer = LogWriter()
    writer.add(sent("next-step", "s1"))
    writer.open_turn("t1")
    writer.add(StepStarted(1, 1), UserMessageLogged(pending("t1").message))
    writer.add(sent("next-step", "s2"))
    left = (Unadmitted(MessageId("s1"), "next-step", "dropped"),)
    assert repair(writer.events) == (
        StepEnded(1, 1),
        TurnEnded(1, "interrupted", unadmitted=left),
    )


def test_an_open_step_without_an_attempt_is_just_closed() -> None:
    writer = LogWriter()
    writer.open_turn("m1")
    writer.admit()
    assert repair(writer.events) == (StepEnded(1, 1), INTERRUPTED)


def calling() -> LogWriter:
    """A log that ends in calls: answered, dispatched, started, neither."""
    writer = LogWriter()
    writer.open_turn("m1")
    writer.admit()
    writer.add(answer_calls(1, 1, 4))
    blocks = [call_block(1, 1, index) for index in range(4)]
    first = writer.add(started(blocks[0]))
    second = writer.add(started(blocks[1], dispatched=False))
    writer.add(started(blocks[2], dispatched=False), ToolDispatched(second))
    writer.add(result(blocks[0].call, first))
    return writer


def test_only_missing_results_are_given_in_order_and_say_what_is_known() -> None:
    writer = calling()
    *results, step_end, turn_end = repair(writer.events)
    told = [
        (one.call, one.code, one.call_seq, one.is_error)
        for one in results
        if isinstance(one, ToolResultLogged)
    ]
    assert told == [
        ("call_1_1_1", "TOOL_OUTCOME_UNKNOWN", writer.seq - 3, True),
        ("call_1_1_2", "TOOL_NOT_STARTED", writer.seq - 2, True),
        ("call_1_1_3", "TOOL_NOT_STARTED", None, True),
    ]
    assert (step_end, turn_end) == (StepEnded(1, 1), INTERRUPTED)


def test_the_calls_that_a_call_made_are_answered_before_it_even_if_it_runs_again() -> None:
    writer = LogWriter()
    writer.open_turn("m1")
    writer.admit()
    writer.add(answer_calls(1, 1, 1))
    outer = call_block(1, 1, 0)
    writer.add(started(outer))
    for index, dispatched in enumerate([True, True, False]):
        inner = nested_call_id(outer.call, index)
        writer.add(NestedCallStarted(inner, outer.call, "look", "{}", dispatched))
    writer.add(NestedResultLogged(nested_call_id(outer.call, 0), outer.call, (TextBlock("x"),)))
    told = [
        (one.call, one.code)
        for one in repair(writer.events)
        if isinstance(one, NestedResultLogged | ToolResultLogged)
    ]
    nested = [("call_1_1_0_1", "TOOL_OUTCOME_UNKNOWN"), ("call_1_1_0_2", "TOOL_NOT_STARTED")]
    assert told == [*nested, ("call_1_1_0", "TOOL_OUTCOME_UNKNOWN")]
    again = repair(writer.events, rerun=lambda call: True)
    assert [one.call for one in again if isinstance(one, NestedResultLogged)] == [
        id for id, _ in nested
    ]
    assert len(again) == 2


def test_calls_that_are_run_again_stay_open_with_all_behind_them() -> None:
    writer = calling()

    def first_is_rerun(call: OpenCall) -> bool:
        return call.block.call == "call_1_1_1"

    assert repair(writer.events, rerun=first_is_rerun) == ()
    more = LogWriter()
    more.open_turn("m1")
    more.admit()
    more.add(answer_calls(1, 1, 2), started(call_block(1, 1, 1)))
    lost, *rest = repair(more.events, rerun=lambda call: True)
    assert isinstance(lost, ToolResultLogged)
    assert (lost.code, rest) == ("TOOL_NOT_STARTED", [])


def test_earlier_turns_are_left_alone() -> None:
    writer = LogWriter()
    writer.turn_of_text("m1")
    writer.open_turn("m2")
    writer.step_of_calls(1)
    assert repair(writer.events) == (TurnEnded(2, "interrupted"),)


def test_turns_and_headers_go_on_behind_a_repair() -> None:
    writer = LogWriter()
    writer.open_turn("m1")
    writer.add(*repair(writer.state))
    state: LogState = writer.state
    assert (state.turns, state.turn) == (1, None)
    assert writer.open_turn() == 2
