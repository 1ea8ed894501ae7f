"""Claims, restored messages and forks, as the grammar holds them (I2, R5, D6)."""

import pytest

from tests.log.situations import answered, opened, results_owed, turn, waiting
from tests.log.writing import (
    OPENED,
    LogWriter,
    Note,
    changed,
    ended,
    pending,
    sent,
    user,
)
from trioloop.errors import GrammarError
from trioloop.events import (
    Event,
    InboxSpliced,
    PendingMessage,
    StepStarted,
    TurnStarted,
)
from trioloop.ids import MessageId
from trioloop.log.fold import check
from trioloop.messages import user_message


def test_a_turn_claims_all_of_next_step_and_one_of_next_turn() -> None:
    writer = LogWriter()
    writer.add(sent("next-turn", "t1"), sent("next-turn", "t2", start=1))
    writer.add(sent("next-step", "s1"), sent("next-step", "s2", start=1), TurnStarted(1))
    for wrong in (
        InboxSpliced("next-step", 0, 1),
        InboxSpliced("next-turn", 0, 2),
        InboxSpliced("next-turn", 1, 1),
        InboxSpliced("next-turn", 0, 1, (pending("t3"),)),
        sent("next-step", "s3"),
        Note(),
        ended(1, "aborted"),
    ):
        with pytest.raises(GrammarError):
            writer.add(wrong)
    writer.add(InboxSpliced("next-step", 0, 2), InboxSpliced("next-turn", 0, 1))
    with pytest.raises(GrammarError):
        writer.add(InboxSpliced("next-turn", 0, 1))


def test_a_later_boundary_claims_next_step_only() -> None:
    writer = results_owed()
    writer.add(sent("next-turn", "t"), sent("next-step", "s"))
    with pytest.raises(GrammarError):
        writer.add(InboxSpliced("next-turn", 0, 1))
    writer.claim()


def test_a_message_is_admitted_once() -> None:
    writer = results_owed()
    writer.add(StepStarted(1, 2))
    with pytest.raises(GrammarError, match="S3"):
        writer.add(user("m1"))
    writer.add(user("added"))
    with pytest.raises(GrammarError, match="S3"):
        writer.add(user("added"))


def test_a_pending_message_joins_no_step() -> None:
    writer = turn()
    writer.add(sent("next-step", "s"), StepStarted(1, 1))
    with pytest.raises(GrammarError, match="S3"):
        writer.add(user("s"))


def test_only_what_was_claimed_and_not_admitted_is_restored() -> None:
    back = PendingMessage(user_message("text of m1", id="m1"), restored=True)
    with pytest.raises(GrammarError, match="R5"):
        answered().add(InboxSpliced("next-turn", 0, inserted=(back,)))
    with pytest.raises(GrammarError, match="R5"):
        opened().add(InboxSpliced("next-turn", 0, inserted=(back,)))
    with pytest.raises(GrammarError, match="R5"):
        turn().add(InboxSpliced("next-step", 0, inserted=(back,)))
    edited = PendingMessage(user_message("another text", id="m1"), restored=True)
    with pytest.raises(GrammarError, match="R5"):
        turn().add(InboxSpliced("next-turn", 0, inserted=(edited,)))
    writer = turn()
    writer.add(InboxSpliced("next-turn", 0, inserted=(back,)), ended(1, "aborted"))
    assert str(writer.state.fates[MessageId("m1")]) == "pending"
    assert writer.open_turn() == 2


def test_a_replaced_message_may_keep_its_id() -> None:
    writer = waiting()
    edited = PendingMessage(user_message("edited", id="m1"))
    writer.add(InboxSpliced("next-turn", 0, 1, (edited,), "replaced"))
    assert writer.state.inbox.next_turn == (edited,)


def fork_of(writer: LogWriter) -> LogWriter:
    """A log whose first event is its own, and younger than those that it inherits."""
    state = LogWriter(changed(OPENED, session="fork", parent="paris", fork_seq=writer.seq))
    for event in writer.events[1:]:
        state.state.apply(event)
        state.events.append(event)
    return state


def test_a_fork_goes_on_with_an_empty_inbox() -> None:
    parent = waiting()
    parent.add(sent("next-step", "s1"))
    for wrong in (Note(), sent("next-turn", "m9"), InboxSpliced("next-step", 0, 1)):
        with pytest.raises(GrammarError):
            fork_of(parent).add(wrong)
    fork = fork_of(parent)
    fork.add(InboxSpliced("next-step", 0, 1, outcome="forked"))
    with pytest.raises(GrammarError, match="D6"):
        fork.add(Note())
    fork.add(InboxSpliced("next-turn", 0, 1, outcome="forked"), Note())
    assert str(fork.state.fates[MessageId("m1")]) == "discarded: forked"
    fork_of(fork).add(Note())


def test_a_fork_forgets_the_whole_of_a_list() -> None:
    parent = waiting()
    parent.add(sent("next-turn", "m2", start=1))
    with pytest.raises(GrammarError, match="all 2 of next-turn"):
        fork_of(parent).add(InboxSpliced("next-turn", 0, 1, outcome="forked"))


def test_a_fork_names_its_parent_and_where_it_left() -> None:
    with pytest.raises(GrammarError, match="D6"):
        LogWriter(changed(OPENED, fork_seq=3))


def test_who_was_delegated_to_names_its_parent_alone() -> None:
    log = LogWriter(changed(OPENED, parent="paris", depth=1))
    log.add(Note())
    assert log.state.session == changed(OPENED, parent="paris", depth=1)


def test_a_fork_never_cuts_a_turn() -> None:
    with pytest.raises(GrammarError, match="D6"):
        fork_of(turn()).add(Note())


def test_a_fork_may_be_younger_than_what_it_inherits() -> None:
    parent = waiting()
    parent.add(InboxSpliced("next-turn", 0, 1, outcome="canceled"))
    own = Event(0, 9_999, changed(OPENED, session="f", parent="paris", fork_seq=2))
    check([own, *parent.events[1:]])


def test_a_later_boundary_claims_nothing_for_a_turn_that_next_step_alone_opened() -> None:
    writer = LogWriter()
    writer.add(sent("next-step", "s"), TurnStarted(1), InboxSpliced("next-step", 0, 1))
    writer.step_of_calls(2)
    writer.add(sent("next-turn", "t"))
    with pytest.raises(GrammarError, match="one claim of next-turn"):
        writer.add(InboxSpliced("next-turn", 0, 1))


def test_a_message_is_restored_to_the_head_of_its_list_and_nowhere_else() -> None:
    back = PendingMessage(user_message("text of m1", id="m1"), restored=True)
    writer = turn()
    writer.add(sent("next-turn", "m2"))
    with pytest.raises(GrammarError, match="R5"):
        writer.add(InboxSpliced("next-turn", 1, inserted=(back,)))
    writer.add(InboxSpliced("next-turn", 0, inserted=(back,)))


def test_a_message_that_is_pending_is_not_restored() -> None:
    back = PendingMessage(user_message("text of m1", id="m1"), restored=True)
    with pytest.raises(GrammarError, match="R5"):
        waiting().add(InboxSpliced("next-turn", 0, inserted=(back,)))
