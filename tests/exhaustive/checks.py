"""What must hold of a run, wherever it was ended (G1 to G5, R5, R8, S2 to S4)."""

from collections import Counter
from collections.abc import Sequence

import attrs
import trio

from tests.exhaustive.lines import BEFORE_ADMISSION
from tests.exhaustive.listeners import TOOLS, look
from tests.exhaustive.scenes import Scene, Stage
from trioloop.codec import encode_event
from trioloop.events import (
    AsideEnded,
    AssistantMessageLogged,
    Event,
    InboxSpliced,
    RequestContextLogged,
    RequestHeaderLogged,
    StepStarted,
    SystemMessageLogged,
    ToolCallStarted,
    ToolDispatched,
    ToolResultLogged,
    TurnEnded,
    TurnStarted,
    UserMessageLogged,
)
from trioloop.log.explain import stories
from trioloop.log.fold import LogState, fold
from trioloop.plugins.compaction import CompactionEnded
from trioloop.session import Session

COMMITS = (
    StepStarted,
    SystemMessageLogged,
    UserMessageLogged,
    RequestHeaderLogged,
    RequestContextLogged,
    ToolCallStarted,
    ToolDispatched,
)
"""What a cancelled turn commits no more (R8, T9)."""

CLOSING = (AsideEnded, CompactionEnded)
"""What a policy that was cancelled writes all the same: that it came to nothing."""

OURS = {one.name for one in (look, *TOOLS)}
"""Tools whose bodies are in our books."""

LAST_FATES = ("pending", "admitted", "discarded", "unadmitted")


class Ledger:
    """What was told of an agent while a scene ran.

    Attributes:
        stage: the scene.
        inserted: messages that became pending.
        ended: those that were claimed or discarded.
        settled: the last turn of each chain that was settled.
        statuses: each change of the status.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.inserted: list[str] = []
        self.ended: list[str] = []
        self.settled: list[int] = []
        self.statuses: list[str] = []
        agent = stage.agent
        agent.on("inserted", lambda one: self.inserted.append(one.message.id))
        agent.on("claimed", lambda one: self.ended.append(one.message))
        agent.on("discarded", lambda one: self.ended.append(one.message))
        agent.on("settled", lambda one: self.settled.append(one.turn))
        agent.on("status", lambda one: self.statuses.append(one.status))

    @property
    def events(self) -> Sequence[Event]:
        """The agent's log."""
        return self.stage.agent.session.events()

    @property
    def ends(self) -> list[TurnEnded]:
        """How its turns ended."""
        return [event.data for event in self.events if isinstance(event.data, TurnEnded)]


@attrs.frozen
class Mark:
    """The moment at which a run was ended.

    Attributes:
        line: of the driver's listing.
        seq: of the log's last event.
        turn: the open turn; None: there was none.
        at_ms: the virtual time.
        log: the events up to there, each as its bytes, if no step was open between claim and
            admission.
        claimed: the messages that the turn had claimed since its last admission, by list.
        pending: the messages that were pending, by list.
    """

    line: str
    seq: int
    turn: int | None
    at_ms: float
    log: Sequence[bytes] | None = None
    claimed: Sequence[tuple[str, str]] = ()
    pending: Sequence[tuple[str, str]] = ()

    @classmethod
    def of(cls, stage: Stage, line: str) -> "Mark":
        """The moment that a stage is in."""
        agent, state = stage.agent, stage.agent.session.state
        number = agent.turn.turn if agent.turn is not None else None
        mark = cls(line, agent.session.seq, number, trio.current_time() * 1000)
        turn = state.turn
        if line not in BEFORE_ADMISSION or turn is None or turn.step is not None or number is None:
            return mark
        return attrs.evolve(
            mark,
            log=[encode_event(event) for event in agent.session.events()],
            claimed=[(one.list, one.pending.message.id) for one in turn.fresh],
            pending=_pending(state),
        )

    @property
    def is_before_admission(self) -> bool:
        """Whether it fell between a claim and its admission."""
        return self.log is not None


def _pending(state: LogState) -> list[tuple[str, str]]:
    return [
        *(("next-step", one.message.id) for one in state.inbox.next_step),
        *(("next-turn", one.message.id) for one in state.inbox.next_turn),
    ]


# The turn that was ended


def check_marked(ledger: Ledger, scene: Scene, mark: Mark, cause: str) -> None:
    """The turn that was open ended as aborted, soon, and committed nothing any more."""
    if mark.turn is None:
        return
    behind = _rest_of_turn(ledger, mark)
    end = behind[-1].data
    assert isinstance(end, TurnEnded)
    assert (end.reason, end.cause, end.also) == ("aborted", cause, ())
    assert behind[-1].time - mark.at_ms <= scene.unwinds_s * 1000 + 1, "it took its time to end"
    assert not [event for event in behind if isinstance(event.data, COMMITS)]
    if mark.is_before_admission:
        _check_nothing_is_left(ledger, mark, behind)


def _rest_of_turn(ledger: Ledger, mark: Mark) -> list[Event]:
    rest: list[Event] = []
    for event in ledger.events[mark.seq + 1 :]:
        rest.append(event)
        if isinstance(event.data, TurnEnded):
            break
    return rest


def _check_nothing_is_left(ledger: Ledger, mark: Mark, behind: Sequence[Event]) -> None:
    """Of the step nothing is in the log but the end of its turn, and the way back (G3, R5)."""
    log = [encode_event(event) for event in ledger.events[: mark.seq + 1]]
    assert log == mark.log
    *splices, end = (event.data for event in behind if not isinstance(event.data, CLOSING))
    assert isinstance(end, TurnEnded)
    left = [(one.list, one.message) for one in end.unadmitted if one.why != "dropped"]
    returned: list[tuple[str, str]] = []
    for splice in splices:
        assert isinstance(splice, InboxSpliced)
        if splice.outcome is None:
            assert (splice.start, splice.removed) == (0, 0)
            assert all(one.restored for one in splice.inserted)
            returned += [(splice.list, one.message.id) for one in splice.inserted]
    assert sorted([*returned, *left]) == sorted(mark.claimed)
    assert not (returned and left), "either all go back, or all are unadmitted"
    if returned:
        _check_heads_of_lists(ledger, mark, behind[-1].seq)


def _check_heads_of_lists(ledger: Ledger, mark: Mark, seq: int) -> None:
    """What went back stands before what was pending, each in its list (R5)."""
    after = _pending(fold(ledger.events[: seq + 1]))
    for list_ in ("next-step", "next-turn"):
        before = [one for one in (*mark.claimed, *mark.pending) if one[0] == list_]
        assert [one for one in after if one[0] == list_][: len(before)] == before


# Runs that weren't ended


def check_undisturbed(ledger: Ledger, scene: Scene, *, calls_only: bool) -> None:
    """It went as the scene says; a cancelled call may have made it shorter."""
    assert [end.reason for end in ledger.ends] == list(scene.ends)
    if calls_only:
        assert trio.current_time() <= scene.takes_s
    else:
        assert trio.current_time() == scene.takes_s


# Every run


def check_end(ledger: Ledger) -> None:
    """What holds behind any run. The test runtime has checked its log and its requests."""
    pending = check_messages(ledger.stage.agent.session)
    assert sorted(ledger.inserted) == sorted([*ledger.ended, *pending])
    _check_calls(ledger)
    _check_turns(ledger)
    assert ledger.statuses == ["running", "idle"] * (len(ledger.statuses) // 2)


def check_durable(ledger: Ledger) -> None:
    """Nothing of the log is in memory alone."""
    session = ledger.stage.agent.session
    assert session.durable_seq == session.seq


def check_messages(session: Session) -> Sequence[str]:
    """Each message has one fate and at most one admission (G5).

    Returns:
        Those that are pending.
    """
    state, events = session.state, session.events()
    pending = [one.message.id for one in state.inbox]
    joined = [event.data for event in events if isinstance(event.data, UserMessageLogged)]
    admitted = Counter(fact.message.id for fact in joined)
    told = stories(events)
    assert {story.message for story in told} == set(state.fates)
    for story in told:
        id, fate = story.message, story.fate
        assert fate == state.fates[id]
        assert fate.status in LAST_FATES
        assert (fate.status == "pending") == (id in pending)
        assert admitted[id] == (fate.status == "admitted")
    return pending


def _check_calls(ledger: Ledger) -> None:
    """Each call has one result, in model order, which tells what its body did (G4)."""
    asked: dict[str, str] = {}  # the tools' names
    results: list[str] = []
    bodies = ledger.stage.bodies
    for event in ledger.events:
        data = event.data
        if isinstance(data, AssistantMessageLogged):
            asked |= {call.call: call.name for call in data.message.calls}
        elif isinstance(data, ToolResultLogged) and data.replaces is None:
            results.append(data.call)
            if asked[data.call] not in OURS:
                continue  # a policy's tool, which tells us nothing of its body
            if data.code is None:
                assert data.call in bodies.ended
            elif data.code == "TOOL_ABORTED_BEFORE_DISPATCH":
                assert data.call not in bodies.began
            elif data.code == "TOOL_ABORTED":
                assert data.call in bodies.began
    assert results == list(asked)


def _check_turns(ledger: Ledger) -> None:
    """Each chain of turns was settled once, by its last turn (S4)."""
    starts = [event.data for event in ledger.events if isinstance(event.data, TurnStarted)]
    retried = {start.retry_of for start in starts}
    last = [start.turn for start in starts if start.turn not in retried]
    assert ledger.settled == last
