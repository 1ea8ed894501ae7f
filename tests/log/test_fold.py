"""What the events of a log add up to (G9)."""

from collections.abc import Sequence

import attrs
from hypothesis import given

from tests.log.random_logs import written_logs
from tests.log.situations import (
    A,
    B,
    admitted,
    called,
    calling,
    cut,
    failed,
    results_owed,
    turn,
    turn_failed,
)
from tests.log.writing import (
    CONTEXT,
    FAILED,
    USAGE,
    LogWriter,
    answer,
    changed,
    ended,
    result,
    sent,
    started,
)
from trioloop.events import (
    AssistantMessageLogged,
    Event,
    InboxSpliced,
    SystemMessageLogged,
    TurnEnded,
    TurnStarted,
    UserMessageLogged,
)
from trioloop.log.fold import Claimed, LogState
from trioloop.messages import TextBlock, UserMessage


@attrs.define
class Naive:
    """A second reading of a log, written apart from the first: slow, and without any check."""

    lists: dict[str, list[str]] = attrs.Factory(lambda: {"next-turn": [], "next-step": []})
    fates: dict[str, str] = attrs.Factory(dict)
    users: list[tuple[int, str]] = attrs.Factory(list)
    turns: int = 0
    reason: str | None = None
    output_tokens: int = 0

    def read(self, event: Event) -> None:
        """Take an event."""
        data = event.data
        if isinstance(data, InboxSpliced):
            self._splice(data)
        elif isinstance(data, TurnStarted):
            self.turns, self.reason = self.turns + 1, None
        elif isinstance(data, TurnEnded):
            self.reason = data.reason
            self.fates.update({one.message: "unadmitted" for one in data.unadmitted})
        elif isinstance(data, UserMessageLogged):
            self.fates[data.message.id] = "admitted"
            self.users.append((event.seq, data.message.id))
        elif isinstance(data, AssistantMessageLogged) and data.usage is not None:
            self.output_tokens += data.usage.output_tokens or 0

    def _splice(self, data: InboxSpliced) -> None:
        one = self.lists[data.list]
        for _ in range(data.removed):
            self.fates[one.pop(data.start)] = "discarded" if data.outcome else "claimed"
        for place, pending in enumerate(data.inserted, data.start):
            one.insert(place, pending.message.id)
            self.fates[pending.message.id] = "pending"


@given(written_logs())
def test_a_second_independent_fold_agrees_at_every_prefix(writer: LogWriter) -> None:
    state, naive = LogState(), Naive()
    for event in writer.events:
        state.apply(event)
        naive.read(event)
        assert [one.message.id for one in state.inbox.next_turn] == naive.lists["next-turn"]
        assert [one.message.id for one in state.inbox.next_step] == naive.lists["next-step"]
        assert {id: fate.status for id, fate in state.fates.items()} == naive.fates
        assert state.turns == naive.turns
        assert (state.turn is None) == (naive.reason is not None or naive.turns == 0)
        assert (state.usage.output_tokens or 0) == naive.output_tokens
        assert state.seq == event.seq


@given(written_logs())
def test_messages_stay_in_the_order_in_which_they_joined(writer: LogWriter) -> None:
    nodes = writer.state.surface.nodes
    kept = [(seq, one.id) for seq, one in nodes if isinstance(one, UserMessage)]
    naive = Naive()
    for event in writer.events:
        naive.read(event)
    assert set(kept) <= set(naive.users)


def ids(claims: Sequence[Claimed]) -> list[str]:
    """The ids of claimed messages."""
    return [one.pending.message.id for one in claims]


def test_an_open_turn_knows_what_it_claimed() -> None:
    writer = LogWriter()
    writer.add(sent("next-step", "s"))
    writer.open_turn("m")
    opened = writer.state.turn
    assert opened is not None
    assert ids(opened.claimed) == ids(opened.fresh) == ["s", "m"]
    writer.admit()
    assert opened.claimed == ()


def test_an_open_step_tells_whether_its_attempt_is_due() -> None:
    for situation, due in ((admitted, True), (failed, False), (calling, False)):
        step = situation().state.step
        assert step is not None
        assert step.admitted is due
    writer = failed()
    writer.add(CONTEXT)
    assert writer.state.step is not None
    assert writer.state.step.admitted


def failures(writer: LogWriter) -> int:
    """How many failures of the open turn's chain no success has cleared."""
    assert writer.state.turn is not None
    return len(writer.state.turn.failures)


def test_failures_are_kept_until_a_success() -> None:
    writer = failed()
    writer.add(FAILED)
    assert failures(writer) == 2
    writer.add(answer())
    assert failures(writer) == 0


def test_a_retry_turn_inherits_the_failures_of_its_chain() -> None:
    writer = turn_failed()
    writer.add(TurnStarted(2, retry_of=1))
    assert writer.state.turn is not None
    assert (writer.state.turn.retries, writer.state.turn.owed) == (1, "retry")
    assert writer.state.turn.failures == (FAILED.failure,)
    writer.admit()
    writer.add(FAILED)
    writer.end_step()
    writer.add(ended(2, "error"), TurnStarted(3, retry_of=2))
    assert writer.state.turn.retries == 2
    other = turn_failed()
    other.open_turn("m2")
    assert other.state.turn is not None
    assert (other.state.turn.retries, other.state.turn.failures) == (0, ())


def unanswered(writer: LogWriter) -> list[str]:
    """The calls of the open step without a result, and the one whose turn it is."""
    step = writer.state.step
    assert step is not None
    return [*(block.call for block in step.unanswered), f"next: {step.next_result}"]


def test_calls_are_open_until_their_results_come_in_order() -> None:
    writer = calling()
    step = writer.state.step
    assert step is not None
    assert unanswered(writer) == [A.call, B.call, f"next: {A.call}"]
    seq = writer.add(started(A, dispatched=False))
    assert (step.calls[A.call].call_seq, step.calls[A.call].dispatched) == (seq, False)
    recorded = result(A.call, seq)
    writer.add(recorded)
    assert step.calls[A.call].result == recorded
    assert unanswered(writer) == [B.call, f"next: {B.call}"]
    writer.add(result(B.call, None))
    assert unanswered(writer) == ["next: None"]


def left_owed(writer: LogWriter) -> str | None:
    """What the open turn owes without any input."""
    assert writer.state.turn is not None
    return writer.state.turn.owed


def test_what_a_step_leaves_owed() -> None:
    assert left_owed(results_owed()) == "results"
    paused = admitted()
    paused.add(answer([TextBlock("so far")], "pause"))
    assert left_owed(paused) == "pause"
    concluded = calling()
    concluded.add(changed(result(A.call, None), concludes_turn=True))
    assert left_owed(concluded) is None
    stopped = cut()
    assert left_owed(stopped) is None
    assert stopped.state.turn is not None
    assert stopped.state.turn.reason_so_far == "max-tokens"


def test_usage_adds_up_over_attempts() -> None:
    writer = LogWriter()
    writer.turn_of_text("m1")
    writer.turn_of_text("m2")
    assert writer.state.usage == USAGE + USAGE


def test_a_turn_counts_the_usage_of_its_own_attempts() -> None:
    writer = LogWriter()
    writer.turn_of_text("m1")
    writer.open_turn("m2")
    writer.admit()
    writer.add(changed(FAILED, usage=USAGE), changed(FAILED, usage=USAGE))
    assert writer.state.turn is not None
    assert writer.state.turn.usage == USAGE + USAGE
    assert writer.state.usage == USAGE + USAGE + USAGE


def test_header_and_context_are_those_of_the_next_request() -> None:
    writer = turn()
    assert (writer.state.header, writer.state.context) == (None, None)
    writer.admit(SystemMessageLogged("a", 0, "head", "A"))
    assert writer.state.header is not None
    assert writer.state.context == CONTEXT


def test_states_are_equal_by_what_they_hold() -> None:
    assert called().state == called().state
    assert called().state != calling().state
    assert LogState() == LogState()
