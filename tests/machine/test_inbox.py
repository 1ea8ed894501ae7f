"""The inbox as pure splices (INB)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.log.random_logs import written_logs
from tests.log.writing import LogWriter, ended, pending, sent
from trioloop.errors import DuplicateMessageError
from trioloop.events import InboxSpliced, PendingMessage, Unadmitted
from trioloop.ids import MessageId
from trioloop.log.fold import fold
from trioloop.machine.inbox import (
    EMPTY_INBOX,
    Inbox,
    claim_step,
    claim_turn,
    clear,
    insert,
    remove,
    replace,
    restore,
    splice,
    wakes,
)
from trioloop.messages import user_message


def inbox(next_turn: str = "", next_step: str = "") -> Inbox:
    """Lists of messages by one letter each; capitals wake."""
    lists = [
        tuple(pending(letter, wakeup=letter.isupper()) for letter in letters)
        for letters in (next_turn, next_step)
    ]
    return Inbox(*lists)


def claimed(before: Inbox) -> str:
    """The letters that a turn's first claim takes, in order."""
    taken = ""
    for claim in claim_turn(before):
        gone = before.of(claim.list)[claim.start : claim.start + claim.removed]
        taken += "".join(one.message.id for one in gone)
        assert (claim.outcome, claim.inserted) == (None, ())
    return taken


@pytest.mark.parametrize(
    ("next_turn", "next_step", "taken"),
    [
        ("", "", ""),
        ("AB", "", "A"),
        ("", "XY", "XY"),
        ("A", "xy", "xyA"),
        ("A", "Xy", "XyA"),
        ("aB", "", "a"),
        ("a", "X", "X"),
        ("aB", "X", "Xa"),
        ("a", "x", "xa"),
        ("", "x", "x"),
    ],
)
def test_a_turn_claims_next_step_and_the_head_of_next_turn(
    next_turn: str, next_step: str, taken: str
) -> None:
    assert claimed(inbox(next_turn, next_step)) == taken


def test_a_later_boundary_claims_all_of_next_step() -> None:
    assert claim_step(inbox("A", "xY")) == InboxSpliced("next-step", 0, 2)
    assert claim_step(inbox("A")) is None


def test_an_insertion_goes_to_the_end_of_its_list() -> None:
    new = pending("n")
    assert insert(inbox("AB"), "next-turn", new) == InboxSpliced("next-turn", 2, 0, (new,))
    assert insert(EMPTY_INBOX, "next-step", new) == InboxSpliced("next-step", 0, 0, (new,))


def test_a_message_is_removed_by_id_from_either_list() -> None:
    assert remove(inbox("AB", "x"), "B") == InboxSpliced("next-turn", 1, 1, outcome="canceled")
    assert remove(inbox("AB", "x"), "x") == InboxSpliced("next-step", 0, 1, outcome="canceled")
    assert remove(inbox("AB", "x"), "gone") is None


def test_clearing_takes_next_step_first_and_nothing_twice() -> None:
    assert clear(inbox("AB", "x")) == (
        InboxSpliced("next-step", 0, 1, outcome="canceled"),
        InboxSpliced("next-turn", 0, 2, outcome="canceled"),
    )
    assert clear(inbox("A"), "forked") == (InboxSpliced("next-turn", 0, 1, outcome="forked"),)
    assert clear(EMPTY_INBOX) == ()


@given(st.integers(-9, 9), st.integers(-2, 9))
def test_a_splice_is_understood_as_a_slice_of_a_list(start: int, removed: int) -> None:
    before, new = inbox("ABCDE"), pending("n")
    change = splice(before, "next-turn", start, removed=removed, inserted=[new], outcome="canceled")
    expected = list(before.next_turn)
    first = slice(start, None).indices(5)[0]
    expected[first : first + max(0, removed)] = [new]
    assert list(before.spliced(change).next_turn) == expected
    assert before == inbox("ABCDE")


def test_a_splice_leaves_the_other_list_alone() -> None:
    before = inbox("A", "x")
    assert before.spliced(splice(before, "next-step", 0, removed=1)) == inbox("A")
    assert before.spliced(splice(before, "next-turn", 0, removed=1)) == inbox("", "x")


def waiting() -> LogWriter:
    writer = LogWriter()
    writer.add(sent("next-turn", "m1", wakeup=False), sent("next-step", "m2"))
    return writer


def test_a_replacement_discards_the_old_and_inserts_the_new() -> None:
    writer = waiting()
    new = user_message("other", id="m3")
    change = replace(writer.state, "m1", new)
    assert change == InboxSpliced(
        "next-turn", 0, 1, (PendingMessage(new, wakeup=False),), "replaced"
    )
    writer.add(change)
    assert str(writer.state.fates[MessageId("m1")]) == "discarded: replaced"
    assert str(writer.state.fates[MessageId("m3")]) == "pending"


def test_a_splice_tells_what_becomes_of_what_it_removes() -> None:
    assert splice(inbox("A"), "next-turn", 0, removed=1, outcome="canceled").outcome == "canceled"
    assert splice(inbox("A"), "next-turn", 0, removed=1).outcome is None


def test_a_replacement_keeps_its_source_and_that_the_old_one_came_behind_a_cancel() -> None:
    writer = LogWriter()
    late = PendingMessage(user_message("late", id="m1"), after_cancel=True)
    writer.add(InboxSpliced("next-turn", 0, inserted=(late,)))
    change = replace(writer.state, "m1", user_message("edited", source="hook"))
    assert change is not None
    (new,) = change.inserted
    assert (new.message.id, new.message.source, new.after_cancel) == ("m1", "hook", True)


def test_a_replacement_without_an_id_keeps_the_old_one() -> None:
    writer = waiting()
    change = replace(writer.state, "m2", user_message("edited"))
    assert change is not None
    writer.add(change)
    assert [one.message for one in writer.state.inbox.next_step] == [
        user_message("edited", id="m2")
    ]


def test_a_replacement_of_nothing_or_by_a_known_id_changes_nothing() -> None:
    writer = waiting()
    assert replace(writer.state, "gone", user_message("x")) is None
    with pytest.raises(DuplicateMessageError, match="'m2' was sent before and is pending"):
        replace(writer.state, "m1", user_message("x", id="m2"))
    assert writer.state == fold(writer.events)


def test_what_a_turn_did_not_admit_is_restored_once() -> None:
    writer = waiting()
    writer.add(sent("next-turn", "m3", start=1))
    writer.open_turn()
    left = (
        Unadmitted(MessageId("m2"), "next-step", "blocked"),
        Unadmitted(MessageId("m1"), "next-turn", "blocked"),
    )
    writer.add(type(ended(1))(1, "blocked", code="NO", unadmitted=left))
    writer.add(*restore(writer.state, 1))
    assert [one.message.id for one in writer.state.inbox] == ["m2", "m1", "m3"]
    assert [one.wakeup for one in writer.state.inbox] == [True, False, True]
    assert restore(writer.state, 1) == ()
    assert restore(writer.state, 7) == ()


def test_what_an_open_turn_has_claimed_is_not_restored() -> None:
    writer = waiting()
    writer.open_turn()
    assert restore(writer.state, 1) == ()


def test_what_another_turn_did_not_admit_stays_where_it_is() -> None:
    writer = LogWriter()
    for number, id in enumerate(("m1", "m2"), 1):
        writer.open_turn(id)
        left = (Unadmitted(MessageId(id), "next-turn", "blocked"),)
        writer.add(type(ended(1))(number, "blocked", code="NO", unadmitted=left))
    (back,) = restore(writer.state, 1)
    assert [one.message.id for one in back.inserted] == ["m1"]


def test_a_message_is_found_where_it_stands() -> None:
    found = inbox("AB", "x").find("B")
    assert found is not None
    assert (found.list, found.index, found.pending) == ("next-turn", 1, pending("B"))
    assert inbox("AB").find("x") is None
    assert "B" in inbox("AB")
    assert "x" not in inbox("AB")
    assert len(inbox("AB", "x")) == 3
    assert wakes(inbox("a", "B").next_step)
    assert not wakes(inbox("a").next_turn)


@given(written_logs())
def test_each_message_has_exactly_one_fate_and_is_pending_just_when_it_says_so(
    writer: LogWriter,
) -> None:
    state = writer.state
    ids = [one.message.id for one in state.inbox]
    assert len(ids) == len(set(ids))
    assert set(ids) == {id for id, fate in state.fates.items() if fate.status == "pending"}
    open_turn = [] if state.turn is None else state.turn.claimed
    assert {claim.pending.message.id for claim in open_turn} == {
        id for id, fate in state.fates.items() if fate.status == "claimed"
    }
