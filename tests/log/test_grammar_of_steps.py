"""Rules of the grammar that show over several facts: steps, attempts, calls, retries."""

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
    results_owed,
    step,
    step_failed,
    turn,
    turn_failed,
)
from tests.log.writing import (
    CANCELLED,
    CONTEXT,
    FAILED,
    OTHER_CONFIG,
    UNSENT,
    LogWriter,
    Note,
    answer,
    changed,
    ended,
    header,
    result,
    sent,
    started,
    user,
)
from trioloop.errors import GrammarError
from trioloop.events import (
    InboxSpliced,
    NestedCallStarted,
    NestedResultLogged,
    StepStarted,
    SystemMessageLogged,
    ToolDispatched,
    ToolResultLogged,
    TurnStarted,
    Unadmitted,
)
from trioloop.ids import CallId, MessageId
from trioloop.messages import TextBlock


def test_a_first_step_needs_a_message() -> None:
    writer = turn()
    writer.add(StepStarted(1, 1), header(), CONTEXT)
    with pytest.raises(GrammarError, match="R7"):
        writer.add(answer())


def test_a_step_that_nothing_asks_for_is_refused() -> None:
    writer = answered()
    writer.end_step()
    writer.add(StepStarted(1, 2))
    with pytest.raises(GrammarError, match="R7"):
        writer.add(UNSENT)


def test_results_ask_for_a_step_without_a_message() -> None:
    writer = results_owed()
    writer.admit()
    writer.add(answer())
    writer.end_step()
    writer.add(ended(1))


def test_a_concluding_result_asks_for_no_step() -> None:
    writer = calling()
    writer.add(changed(result(A.call, None), concludes_turn=True), result(B.call, None))
    writer.end_step()
    writer.add(ended(1))


def test_a_cut_answer_is_sticky_and_owes_no_step() -> None:
    writer = cut()
    writer.add(result(A.call, None), result(B.call, None))
    writer.end_step()
    with pytest.raises(GrammarError, match="P14"):
        writer.add(ended(1))
    writer.add(sent("next-step", "m2"))
    writer.claim()
    writer.admit()
    writer.add(answer())
    writer.end_step()
    with pytest.raises(GrammarError, match="P14"):
        writer.add(ended(1))
    writer.add(ended(1, "max-tokens"))


def test_a_turn_without_a_cut_cannot_end_with_max_tokens() -> None:
    writer = answered()
    writer.end_step()
    with pytest.raises(GrammarError, match="P14"):
        writer.add(ended(1, "max-tokens"))


def test_a_pause_asks_for_a_step() -> None:
    writer = admitted()
    writer.add(answer([TextBlock("so far")], "pause"))
    writer.end_step()
    writer.admit()
    writer.add(answer())


def test_calls_start_in_model_order() -> None:
    writer = calling()
    writer.add(started(B))
    with pytest.raises(GrammarError, match="G7"):
        writer.add(started(A))


def test_results_come_in_model_order_whichever_started() -> None:
    writer = calling()
    seq = writer.add(started(B))
    with pytest.raises(GrammarError, match="G4"):
        writer.add(result(B.call, seq))
    writer.add(result(A.call, None), result(B.call, seq))
    with pytest.raises(GrammarError, match="answered"):
        writer.add(result(B.call, seq))


def test_a_dispatch_cites_its_call_once() -> None:
    writer = called()
    seq = writer.seq
    writer.add(ToolDispatched(seq, "{}", "policy"))
    with pytest.raises(GrammarError, match="T5"):
        writer.add(ToolDispatched(seq))


def test_nested_calls_lie_inside_their_parent() -> None:
    writer = called()
    seq = writer.seq
    inner = NestedCallStarted(CallId("call_1_1_0_0"), A.call, "look", "{}", dispatched=False)
    done = NestedResultLogged(inner.call, A.call, (TextBlock("x"),))
    writer.add(inner)
    with pytest.raises(GrammarError, match="T5"):
        writer.add(inner)
    with pytest.raises(GrammarError, match="first"):
        writer.add(result(A.call, seq))
    writer.add(ToolDispatched(writer.seq))
    with pytest.raises(GrammarError, match="T5"):
        writer.add(ToolDispatched(writer.seq - 1))
    writer.add(done)
    with pytest.raises(GrammarError, match="T5"):
        writer.add(ToolDispatched(writer.seq - 2))
    with pytest.raises(GrammarError, match="G4"):
        writer.add(done)
    writer.add(result(A.call, seq))
    with pytest.raises(GrammarError, match="G4"):
        writer.add(changed(inner, call=CallId("call_1_1_0_1")))


def test_a_retry_lies_in_the_open_step_and_takes_no_message() -> None:
    writer = failed()
    writer.add(SystemMessageLogged("a", 0, "head", "A"), header("series"), CONTEXT, FAILED)
    with pytest.raises(GrammarError):
        writer.add(StepStarted(1, 2))
    with pytest.raises(GrammarError):
        writer.add(user("m2"))
    writer.add(header("change", OTHER_CONFIG), answer())
    writer.end_step()
    writer.add(ended(1))


def test_an_attempt_that_was_cancelled_or_never_sent_is_not_retried() -> None:
    for attempt in (CANCELLED, UNSENT):
        writer = admitted()
        writer.add(attempt)
        for fact in (answer(), FAILED, header("resume")):
            with pytest.raises(GrammarError):
                writer.add(fact)
        writer.end_step()
        writer.add(ended(1, "aborted"))


def test_a_committed_step_has_an_attempt_unless_its_process_died() -> None:
    for situation in (step, admitted):
        writer = situation()
        writer.end_step()
        left = (Unadmitted(MessageId("m1"), "next-turn", "x"),) if situation is step else ()
        with pytest.raises(GrammarError, match="P8"):
            writer.add(changed(ended(1, "aborted"), unadmitted=left))
        writer.add(changed(ended(1, "interrupted"), unadmitted=left))


def test_a_changed_head_starts_a_series() -> None:
    change = SystemMessageLogged("a", 0, "head", "A")
    for wrong in (answer(), header("resume"), header("change", OTHER_CONFIG)):
        writer = failed()
        writer.add(change)
        with pytest.raises(GrammarError, match="E1"):
            writer.add(wrong)
    writer = failed()
    writer.add(change, header("series"), answer())


def test_a_series_says_in_the_head_what_the_history_had_updated() -> None:
    writer = turn()
    writer.admit(SystemMessageLogged("a", 0, "head", "old"))
    writer.add(FAILED, SystemMessageLogged("a", 0, "tail", "new"), FAILED)
    with pytest.raises(GrammarError, match="E1"):
        writer.add(header("series"))
    writer.add(SystemMessageLogged("a", 0, "head", "new"), header("series"), answer())


def test_a_retry_turn_stands_directly_behind_the_turn_that_it_repeats() -> None:
    writer = turn_failed()
    writer.add(TurnStarted(2, retry_of=1))
    assert writer.state.turn is not None
    assert writer.state.turn.failures == (FAILED.failure,)
    with pytest.raises(GrammarError, match="R2"):
        writer.add(ended(2))
    writer.add(sent("next-turn", "m2"))
    with pytest.raises(GrammarError, match="R2"):
        writer.add(InboxSpliced("next-turn", 0, 1))
    writer.admit()
    writer.add(FAILED)
    assert len(writer.state.turn.failures) == 2
    writer.end_step()
    writer.add(ended(2, "error"), Note())
    with pytest.raises(GrammarError, match="R2"):
        writer.add(TurnStarted(3, retry_of=2))


def test_only_a_turn_whose_attempt_failed_is_repeated() -> None:
    writer = turn()
    left = (Unadmitted(MessageId("m1"), "next-turn", "error"),)
    writer.add(changed(ended(1, "error"), unadmitted=left))
    with pytest.raises(GrammarError, match="R2"):
        writer.add(TurnStarted(2, retry_of=1))


def _first_node(writer: LogWriter) -> int:
    return next(node for node, _ in writer.state.surface.nodes)


def test_the_history_is_not_replaced_while_a_request_is_under_way() -> None:
    for situation in (admitted, calling, answered, step_failed):
        writer = situation()
        node = _first_node(writer)
        with pytest.raises(GrammarError):
            writer.add(user("sum", replaces=(node, node)))
    writer = turn_failed()
    node = _first_node(writer)
    writer.add(user("sum", replaces=(node, node)))


def test_the_history_is_not_replaced_in_the_midst_of_an_admission() -> None:
    writer = results_owed()
    nodes = [node for node, _ in writer.state.surface.nodes]
    writer.add(StepStarted(1, 2))
    with pytest.raises(GrammarError):
        writer.add(user("sum", replaces=(nodes[0], nodes[-1])))


def test_a_rewritten_result_keeps_all_but_its_content() -> None:
    writer = turn()
    [first, _] = writer.step_of_calls(2)
    good = changed(result(A.call, None, "less"), is_error=False, replaces=first)
    for wrong in (
        changed(good, call=B.call),
        changed(good, is_error=True),
        changed(good, concludes_turn=True),
        changed(good, replaces=first - 2),
        changed(good, replaces=None),
    ):
        with pytest.raises(GrammarError):
            writer.add(wrong)
    writer.add(good)
    with pytest.raises(GrammarError):
        writer.add(ToolResultLogged(A.call, (TextBlock("again"),), replaces=first))


@pytest.mark.parametrize("reason", ["aborted", "interrupted"])
def test_a_turn_that_did_not_end_in_its_failure_is_not_repeated(reason: str) -> None:
    writer = step_failed()
    writer.add(ended(1, reason))
    with pytest.raises(GrammarError, match="R2"):
        writer.add(TurnStarted(2, retry_of=1))


def test_a_call_that_was_cut_does_not_start() -> None:
    with pytest.raises(GrammarError, match="P14"):
        cut().add(started(A))


def test_a_turn_does_not_end_well_while_results_are_owed() -> None:
    writer = results_owed()
    with pytest.raises(GrammarError, match="R7"):
        writer.add(ended(1))
    writer.add(ended(1, "aborted"))
