"""What the model sees: heads, history, replacements (E1, E3; SUR)."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from msgspec import Raw

from tests.log.random_logs import written_logs
from tests.log.writing import (
    FAILED,
    LogWriter,
    Note,
    answer,
    call_block,
    ended,
    header,
    result,
    sent,
    started,
    user,
)
from trioloop.errors import GrammarError
from trioloop.events import SystemMessageLogged, ToolResultLogged
from trioloop.log.fold import LogState, fold
from trioloop.log.history import History, Source
from trioloop.log.surface import REMOVED
from trioloop.messages import (
    AssistantMessage,
    Block,
    Message,
    OpaqueBlock,
    ReasoningBlock,
    RefusalBlock,
    Replay,
    SystemMessage,
    TextBlock,
    ToolResultMessage,
    UserMessage,
    text_of,
    user_message,
)


def texts(messages: Sequence[Message]) -> list[str]:
    """What messages say."""
    return [
        message.text if isinstance(message, SystemMessage) else text_of(message.content)
        for message in messages
    ]


def seen(writer: LogWriter) -> list[str]:
    """What the history of a log says."""
    return texts(writer.state.surface.history)


def head(node: str, text: str | None, order: int = 0) -> SystemMessageLogged:
    return SystemMessageLogged(node, order, "head", text)


def tail(node: str, text: str | None) -> SystemMessageLogged:
    return SystemMessageLogged(node, 0, "tail", text)


# The view


def test_a_view_stays_as_it_was_while_its_list_grows() -> None:
    writer = LogWriter()
    writer.turn_of_text("m1")
    before = writer.state.surface.history
    writer.turn_of_text("m2")
    after = writer.state.surface.history
    assert texts(before) == ["text of m1", "Hello."]
    assert len(after) == 4
    assert before.source is after.source
    assert list(before) == list(after)[:2]


def test_a_view_is_a_sequence() -> None:
    messages = [user_message(str(number)) for number in range(5)]
    view = History(Source(list(messages), []), 4)
    assert list(view) == messages[:4]
    assert view[0] == messages[0]
    assert view[-1] == messages[3]
    assert view[1:] == messages[1:4]
    assert view[::-1] == messages[3::-1]
    assert view[-2:] == messages[2:4]
    assert view[3:1:-1] == [messages[3], messages[2]]
    assert messages[3] in view
    assert messages[4] not in view
    for index in (4, -5):
        with pytest.raises(IndexError):
            view[index]


def test_views_are_equal_by_what_they_show() -> None:
    one, other = History.of([user_message("a")]), History.of([user_message("a")])
    assert one == other
    assert one != History.of([])
    assert one != History.of([user_message("b")])
    assert one != ["a"]
    assert repr(one) == "<History of 1 messages>"


def test_a_new_session_shows_nothing() -> None:
    surface = LogState().surface
    assert len(surface.history) == 0
    assert surface.heads == ()
    assert surface.sections() == {}
    assert surface.position(0) is None
    assert not surface.has_tails


@given(written_logs())
def test_views_of_every_prefix_stay_as_they_were(writer: LogWriter) -> None:
    state, views = LogState(), []
    for event in writer.events:
        state.apply(event)
        view = state.surface.history
        views.append((view, list(view)))
    for view, messages in views:
        assert list(view) == messages


@given(written_logs())
def test_every_result_in_the_history_stands_behind_its_call(writer: LogWriter) -> None:
    state = LogState()
    for event in writer.events:
        state.apply(event)
        open_calls: list[str] = []
        for message in state.surface.history:
            if isinstance(message, ToolResultMessage):
                assert open_calls.pop(0) == message.call
            else:
                assert not open_calls
                if isinstance(message, AssistantMessage):
                    open_calls = [call.call for call in message.calls]
        assert not open_calls or state.step is not None


# Answers and results (E3)


def shown(*content: Block, interrupted: bool = False) -> bool:
    """Whether an answer of some content is in the history."""
    writer = LogWriter()
    writer.open_turn("m1")
    writer.admit()
    writer.add(answer(content, interrupted=interrupted))
    return len(writer.state.surface.history) == 2


def test_an_answer_without_content_stays_out_of_the_history() -> None:
    opaque = OpaqueBlock(Replay("p", Raw(b"{}")))
    assert not shown()
    assert not shown(TextBlock(" \n"))
    assert shown(TextBlock("x"))
    assert shown(ReasoningBlock("thought"))
    assert shown(RefusalBlock("no"))
    assert shown(opaque)


def test_an_interrupted_answer_needs_words_to_be_shown() -> None:
    assert shown(TextBlock("He"), interrupted=True)
    assert shown(ReasoningBlock("thought"), TextBlock("He"), interrupted=True)
    assert not shown(ReasoningBlock("thought"), interrupted=True)
    assert not shown(ReasoningBlock("thought"), TextBlock(" "), interrupted=True)


def test_a_result_has_the_wire_id_of_its_call() -> None:
    writer = LogWriter()
    writer.open_turn("m1")
    writer.step_of_calls(2)
    results = [one for one in writer.state.surface.history if isinstance(one, ToolResultMessage)]
    assert [one.wire_id for one in results] == ["wire_1_1_0", "wire_1_1_1"]
    assert writer.state.wire_ids == {"wire_1_1_0", "wire_1_1_1"}


def test_attempts_boundaries_and_facts_of_plugins_show_nothing() -> None:
    writer = LogWriter()
    writer.open_turn("m1")
    writer.admit()
    writer.add(FAILED, Note())
    assert seen(writer) == ["text of m1"]


# The system prompt (E1)


def prompted(*heads: SystemMessageLogged) -> LogWriter:
    """A log whose first attempt has failed."""
    writer = LogWriter()
    writer.open_turn("m1")
    writer.admit(*heads)
    writer.add(FAILED)
    return writer


def test_heads_stand_in_order_then_by_name() -> None:
    writer = prompted(head("z", "Z", 1), head("b", "B", 2), head("a", "A", 2))
    assert [one.node for one in writer.state.surface.heads] == ["z", "a", "b"]


def test_a_head_is_changed_and_removed_by_name() -> None:
    writer = prompted(head("a", "A"), head("b", "B"))
    writer.add(head("a", "new"), head("b", None), header("series"))
    surface = writer.state.surface
    assert surface.heads == (SystemMessage("a", "new"),)
    assert surface.head("b") is None
    assert surface.sections() == {"a": "new"}
    assert surface.generation == 0


def test_an_update_in_the_history_keeps_the_head() -> None:
    writer = prompted(head("a", "A"))
    source = writer.state.surface.history.source
    writer.add(tail("a", "newer"), tail("b", "added"))
    surface = writer.state.surface
    assert surface.heads == (SystemMessage("a", "A"),)
    assert seen(writer) == ["text of m1", "newer", "added"]
    assert surface.sections() == {"a": "newer", "b": "added"}
    assert surface.history.source is source
    assert surface.generation == 0


def test_a_removed_section_is_said_to_be_removed() -> None:
    writer = prompted(head("a", "A"))
    writer.add(tail("a", None))
    assert seen(writer) == ["text of m1", REMOVED]
    assert writer.state.surface.sections() == {}


def test_a_series_drops_the_updates_and_makes_a_new_list() -> None:
    writer = prompted(head("a", "A"))
    writer.add(tail("a", "newer"), tail("b", "added"), FAILED)
    before = writer.state.surface.history
    writer.add(head("a", "newest"))
    assert writer.state.surface.sections() == {"a": "newest", "b": "added"}
    writer.add(header("series"))
    surface = writer.state.surface
    assert seen(writer) == ["text of m1"]
    assert surface.heads == (SystemMessage("a", "newest"),)
    assert not surface.has_tails
    assert surface.generation == 0
    assert texts(before) == ["text of m1", "newer", "added"]


def test_a_section_that_only_an_update_told_of_is_removed_by_a_series() -> None:
    writer = prompted(head("a", "A"))
    writer.add(tail("b", "added"), FAILED, head("b", None), header("series"))
    assert seen(writer) == ["text of m1"]
    assert writer.state.surface.sections() == {"a": "A"}


def test_a_series_without_updates_keeps_the_list() -> None:
    writer = prompted(head("a", "A"))
    source = writer.state.surface.history.source
    writer.add(header("series"))
    assert writer.state.surface.history.source is source


def test_an_update_that_is_compacted_away_is_no_longer_seen() -> None:
    writer = prompted(head("a", "A"))
    first = writer.seq - 3
    last = writer.add(tail("a", "newer"))
    writer.add(FAILED)
    message = next(seq for seq, one in writer.state.surface.nodes if isinstance(one, UserMessage))
    assert first <= message <= last
    writer.add(user("sum", replaces=(message, last)))
    assert writer.state.surface.sections() == {"a": "A"}
    assert not writer.state.surface.has_tails


# Replacements (SUR)


def talked(turns: int) -> LogWriter:
    """A log of some turns of one prompt and one answer each."""
    writer = LogWriter()
    for number in range(turns):
        writer.turn_of_text(f"m{number}", f"answer {number}")
    return writer


def test_a_replacement_stands_for_its_range_in_a_new_list() -> None:
    writer = talked(2)
    before = writer.state.surface.history
    seqs = [seq for seq, _ in writer.state.surface.nodes]
    at = writer.add(user("sum", replaces=(seqs[0], seqs[2])))
    assert seen(writer) == ["text of sum", "answer 1"]
    assert [seq for seq, _ in writer.state.surface.nodes] == [at, seqs[3]]
    assert writer.state.surface.generation == 1
    assert len(before) == 4
    assert before.source is not writer.state.surface.history.source


def test_ranges_are_of_positions_not_of_numbers() -> None:
    writer = talked(2)
    seqs = [seq for seq, _ in writer.state.surface.nodes]
    summary = writer.add(user("sum", replaces=(seqs[0], seqs[1])))
    with pytest.raises(GrammarError, match="behind"):
        writer.add(user("more", replaces=(seqs[2], summary)))
    writer.add(user("more", replaces=(summary, seqs[2])))
    assert seen(writer) == ["text of more", "answer 1"]
    assert writer.state.surface.generation == 2


def test_a_range_names_nodes_that_are_there() -> None:
    writer = talked(2)
    seqs = [seq for seq, _ in writer.state.surface.nodes]
    bad = [(0, seqs[0]), (seqs[0], 1_000), (-1, seqs[0]), (seqs[1], seqs[0]), (seqs[0], 1)]
    for span in bad:
        with pytest.raises(GrammarError):
            writer.add(user("sum", replaces=span))
    writer.add(user("sum", replaces=(seqs[0], seqs[1])))
    with pytest.raises(GrammarError, match="no node of event"):
        writer.add(user("sum2", replaces=(seqs[1], seqs[2])))


def test_calls_and_results_are_never_separated() -> None:
    writer = LogWriter()
    writer.open_turn("m1")
    writer.step_of_calls(2)
    prompt, call, first, last = [seq for seq, _ in writer.state.surface.nodes]
    for span in ((prompt, call), (prompt, first), (first, last), (last, last), (call, first)):
        with pytest.raises(GrammarError, match="without its"):
            writer.add(user("sum", replaces=span))
    writer.add(user("sum", replaces=(call, last)))
    assert seen(writer) == ["text of m1", "text of sum"]
    assert writer.state.wire_ids == set()


def test_a_wire_id_may_come_again_once_its_call_is_compacted_away() -> None:
    writer = LogWriter()
    writer.open_turn("m1")
    writer.step_of_calls(1)
    again = call_block(1, 2, 0)
    again = type(again)(again.call, "wire_1_1_0", again.name, again.arguments)
    _, call, last = [seq for seq, _ in writer.state.surface.nodes]
    writer.admit()
    with pytest.raises(GrammarError, match="wire id"):
        writer.add(answer([again], "tool_calls"))
    writer.add(FAILED, user("sum", replaces=(call, last)), answer([again], "tool_calls"))


def test_a_rewritten_result_stays_in_its_place() -> None:
    writer = LogWriter()
    writer.open_turn("m1")
    first, second = writer.step_of_calls(2)
    call = call_block(1, 1, 0).call
    before = writer.state.surface.history
    at = writer.add(ToolResultLogged(call, (TextBlock("less"),), replaces=first))
    nodes = list(writer.state.surface.nodes)
    assert nodes[2] == (at, ToolResultMessage(call, "wire_1_1_0", (TextBlock("less"),)))
    assert nodes[3][0] == second
    assert texts(before)[2] == "done"
    assert writer.state.surface.generation == 1
    assert writer.state.wire_ids == {"wire_1_1_0", "wire_1_1_1"}


def test_a_log_replays_to_the_same_surface() -> None:
    writer = talked(3)
    seqs = [seq for seq, _ in writer.state.surface.nodes]
    writer.add(user("sum", replaces=(seqs[0], seqs[3])), Note())
    assert fold(writer.events).surface == writer.state.surface
    assert fold(writer.events[:-2]).surface != writer.state.surface
    assert writer.state.surface != "something else"


def test_what_is_sent_meanwhile_shows_nothing() -> None:
    writer = talked(1)
    writer.add(sent("next-step", "s"))
    number = writer.open_turn()
    writer.admit()
    block = call_block(number, 1, 0)
    writer.add(answer([block], "tool_calls"), sent("next-step", "t"))
    seq = writer.add(started(block))
    writer.add(result(block.call, seq), sent("next-turn", "u"))
    assert seen(writer)[2:] == ["text of s", "", "done"]
    writer.end_step()
    writer.add(ended(number, "aborted"))


def test_nodes_behind_an_event_are_those_that_came_since() -> None:
    writer = LogWriter()
    first = writer.turn_of_text("m1")
    writer.turn_of_text("m2")
    nodes = list(writer.state.surface.nodes)
    assert writer.state.surface.nodes_behind(first) == nodes[2:]
    assert writer.state.surface.nodes_behind(-1) == nodes
    assert writer.state.surface.nodes_behind(writer.state.seq) == []
