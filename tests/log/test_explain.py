"""Fates, origins and differences, for people who ask (G5)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.log.random_logs import written_logs
from tests.log.writing import LogWriter, Note, answer, ended, sent, user
from trioloop.errors import InvalidInputError
from trioloop.events import InboxSpliced, SystemMessageLogged, Unadmitted, UserMessageLogged
from trioloop.ids import MessageId
from trioloop.log.explain import explain, explain_request, first_difference, stories
from trioloop.messages import user_message


def test_an_admitted_message_tells_its_way() -> None:
    writer = LogWriter()
    writer.turn_of_text("m1")
    story = explain(writer.events, "m1")
    assert (story.fate.status, story.fate.turn) == ("admitted", 1)
    assert story.events == (1, 3, 5)
    assert str(story) == "m1 is admitted (turn 1) (events 1, 3, 5)"


def test_a_pending_a_discarded_and_an_unadmitted_message() -> None:
    writer = LogWriter()
    writer.add(sent("next-step", "s1"), sent("next-turn", "t1"))
    writer.add(InboxSpliced("next-step", 0, 1, outcome="canceled"))
    assert str(explain(writer.events, "s1").fate) == "discarded: canceled"
    assert str(explain(writer.events, "t1").fate) == "pending"
    writer.open_turn()
    assert str(explain(writer.events, "t1").fate) == "claimed (turn 1)"
    left = (Unadmitted(MessageId("t1"), "next-turn", "blocked"),)
    writer.add(type(ended(1))(1, "blocked", code="NO", unadmitted=left))
    assert str(explain(writer.events, "t1").fate) == "unadmitted (turn 1): blocked"


def test_an_unknown_message_is_named() -> None:
    with pytest.raises(InvalidInputError, match="'ghost'"):
        explain(LogWriter().events, "ghost")


@given(written_logs())
def test_every_message_has_a_story_that_ends_with_its_fate(writer: LogWriter) -> None:
    told = stories(writer.events)
    assert {story.message: story.fate for story in told} == writer.state.fates
    for id, fate in writer.state.fates.items():
        story = explain(writer.events, id)
        assert story.fate == fate
        assert story.events[-1] == fate.seq


def test_what_stands_for_a_message_is_told_with_it_and_with_each_request() -> None:
    writer = LogWriter()
    first = writer.turn_of_text("m1")
    asked = next(seq for seq, _ in writer.state.surface.nodes)
    summary = writer.add(UserMessageLogged(user_message("S"), replaces=(asked, first)))
    again = writer.add(UserMessageLogged(user_message("T"), replaces=(summary, summary)))
    assert explain(writer.events, "m1").replaced_by == again
    assert str(explain(writer.events, "m1")).endswith(f"; event {again} stands for it")
    assert [story.message for story in stories(writer.events)] == ["m1"]
    writer.open_turn("m2")
    writer.admit()
    origin = explain_request(writer.events, writer.add(answer()))
    assert [seq for seq, _ in origin.replaced[again]] == [summary]
    assert [seq for seq, _ in origin.replaced[summary]] == [asked, first]
    assert explain(writer.events, "m2").replaced_by is None


def test_a_request_tells_which_events_made_it() -> None:
    writer = LogWriter()
    first = writer.turn_of_text("m1")
    writer.open_turn("m2")
    writer.admit()
    seq = writer.add(answer())
    origin = explain_request(writer.events, seq)
    assert (origin.seq, origin.turn, origin.step) == (seq, 2, 1)
    assert [at for at, _ in origin.history] == [5, first, seq - 1]
    assert writer.events[origin.header].type == "request/header"


def test_a_request_tells_which_events_wrote_its_system_prompt() -> None:
    writer = LogWriter()
    writer.open_turn("m1")
    writer.admit(SystemMessageLogged("b", 0, "head", "B"), SystemMessageLogged("a", 0, "head", "A"))
    seq = writer.add(answer())
    assert explain_request(writer.events, seq).heads == ((6, "a"), (5, "b"))
    with pytest.raises(InvalidInputError, match="session/opened"):
        explain_request(writer.events, 0)
    with pytest.raises(InvalidInputError, match="no event 99"):
        explain_request(writer.events, 99)


@given(written_logs(), st.data())
def test_the_first_difference_is_found(writer: LogWriter, data: st.DataObject) -> None:
    assert first_difference(writer.events, writer.events) is None
    place = data.draw(st.integers(0, len(writer.events) - 1))
    assert first_difference(writer.events, writer.events[:place]) == place


def test_a_compacted_message_keeps_its_fate() -> None:
    writer = LogWriter()
    last = writer.turn_of_text("m1")
    [first, _] = [seq for seq, _ in writer.state.surface.nodes]
    at = writer.add(user("sum", replaces=(first, last)), Note())
    assert explain(writer.events, "m1").fate.status == "admitted"
    assert explain(writer.events, "sum").events == (at - 1,)
