"""What must hold of a run when it is over: G1 to G6 and G9, read from its logs and its ledgers."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence

import attrs

from tests.second_fold.first_view import first_view, rows_of
from tests.second_fold.second_fold import view
from tests.simulation.coverage import Coverage
from tests.simulation.deeds import CancelMark
from tests.simulation.lives import Life
from tests.simulation.policies.checks import policy_violations
from tests.simulation.world import LIMITS, World
from trioloop import Event
from trioloop.codec import canonical
from trioloop.events import (
    AsideStarted,
    AssistantAttemptLogged,
    AssistantMessageLogged,
    EventData,
    NestedCallStarted,
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
from trioloop.log.rebuild import aside_of, request_of
from trioloop.log.repair import repair
from trioloop.plugins.compaction import CompactionStarted, CompactionSummarised
from trioloop.plugins.pruning import ResultsPruned

COMMITS = (
    StepStarted,
    SystemMessageLogged,
    UserMessageLogged,
    RequestHeaderLogged,
    RequestContextLogged,
    ToolCallStarted,
    ToolDispatched,
    NestedCallStarted,
    AsideStarted,
    CompactionStarted,
    CompactionSummarised,
    ResultsPruned,
)
"""What a cancelled turn must not write any more (R8, T9)."""

TIME_LIMITS = ("TURN_SECONDS_LIMIT", "SESSION_SECONDS_LIMIT", "TREE_SECONDS_LIMIT")
"""What may have cut a turn a moment before."""

LAST_FATES = ("pending", "admitted", "discarded", "unadmitted")
CUTS = 3  # prefixes of each log that are repaired


@attrs.define
class Walked:
    """What a log says, read once from its first event to its last.

    Attributes:
        told: the requests that its attempts were sent, encoded.
        dispatched: seq of the event that let a call's body run, by call.
        calls: the calls that were asked for, in order.
        results: the calls that have a result, in order.
        admitted: how often each message was admitted.
    """

    told: list[bytes] = attrs.field(factory=list)
    dispatched: dict[str, int] = attrs.field(factory=dict)
    calls: list[str] = attrs.field(factory=list)
    results: list[str] = attrs.field(factory=list)
    admitted: Counter[str] = attrs.field(factory=Counter)


def violations(world: World) -> list[str]:
    """Whatever broke a promise of the contract."""
    found = list(world.violations)
    told: dict[str, list[bytes]] = {}
    for life in world.lives:
        events = life.agent.session.events()
        try:
            walked = _walk(events, len(life.began), world.coverage)
        except Exception as error:
            found.append(f"the log of {life.agent.name} is none: {error!r} (G1)")
            continue
        told.setdefault(life.agent.name, []).extend(walked.told)
        about = [
            *_of_log(life, events, walked),
            *_of_messages(life, events, walked),
            *_of_notifications(life, events),
            *_of_bodies(world, life, walked),
            *(fault for mark in life.cancels for fault in _of_cancel(world, life, events, mark)),
            *_of_repair(world, life, events),
            *_of_resumption(world, life),
        ]
        found += [f"{life.agent.name}: {fault}" for fault in about]
    return [*found, *_of_requests(world, told), *policy_violations(world)]


def _walk(events: Sequence[Event], began: int, coverage: Coverage) -> Walked:
    """Read a log, whose first events another life may have written."""
    walked, state = Walked(), LogState()
    starts: dict[int, str] = {}
    for event in events:
        data, before = event.data, state.phase
        if isinstance(data, AssistantMessageLogged | AssistantAttemptLogged):
            if event.seq >= began and getattr(data, "sent", True):
                walked.told.append(canonical(request_of(state)))
            if isinstance(data, AssistantMessageLogged):
                walked.calls += [call.call for call in data.message.calls]
        elif isinstance(data, ToolCallStarted | NestedCallStarted):
            starts[event.seq] = data.call
            if data.dispatched:
                walked.dispatched[data.call] = event.seq
        elif isinstance(data, ToolDispatched):
            walked.dispatched[starts[data.call_seq]] = event.seq
        elif isinstance(data, ToolResultLogged) and data.replaces is None:
            walked.results.append(data.call)
        elif isinstance(data, UserMessageLogged):
            walked.admitted[data.message.id] += 1
        elif isinstance(data, AsideStarted) and event.seq >= began:
            walked.told.append(canonical(aside_of(state, data)))
        state.apply(event)
        coverage.saw_transition(before, event, state.phase)
    return walked


def _of_log(life: Life, events: Sequence[Event], walked: Walked) -> Iterator[str]:
    state = life.agent.session.state
    if state.turn is not None:
        yield "a turn is still open"
    if fold(events) != state:
        yield "the fold of the log isn't the live state (G9)"
    if view(rows_of(list(events))) != first_view(state):
        yield "the second fold of the log isn't the live state (G9)"
    if walked.results != walked.calls:
        yield f"the calls {walked.calls} have the results {walked.results} (G4)"


def _of_messages(life: Life, events: Sequence[Event], walked: Walked) -> Iterator[str]:
    state = life.agent.session.state
    pending = {one.message.id for one in state.inbox}
    told = {one.message: one.fate for one in stories(events)}
    if told != state.fates:
        yield f"messages are {state.fates}, and explained as {told} (G5)"
    for id, story in told.items():
        if story.status not in LAST_FATES or (story.status == "pending") != (id in pending):
            yield f"{id} ended as {story} (G5)"
        if walked.admitted[id] != (story.status == "admitted"):
            yield f"{id} is {story}, and was admitted {walked.admitted[id]} times (S3)"
    for id in life.taken:
        if id not in state.fates:
            yield f"{id} was taken, and the log knows nothing of it (G5)"


def _of_notifications(life: Life, events: Sequence[Event]) -> Iterator[str]:
    """Each insertion has one end, each turn was settled once, each failed one told once."""
    first = [one.message.id for one in fold(life.began).inbox]
    left = [one.message.id for one in life.agent.session.state.inbox]
    if sorted([*first, *life.inserted]) != sorted([*life.ended, *left]):
        yield f"inserted {[*first, *life.inserted]}, ended {life.ended}, pending {left} (S3)"
    own = [event.data for event in events[len(life.began) :]]
    turns = [data.turn for data in own if isinstance(data, TurnStarted)]
    if life.settled != turns:
        yield f"the turns {turns} ran, and {life.settled} were settled (S4)"
    failed = [data.turn for data in own if isinstance(data, TurnEnded) and data.reason == "error"]
    if life.failed != failed:
        yield f"the turns {failed} failed, and {life.failed} were told to (H5)"
    expected = ["running", "idle"] * (len(life.statuses) // 2)
    if life.statuses != expected:
        yield f"its status went {life.statuses} (S2)"


def _of_bodies(world: World, life: Life, walked: Walked) -> Iterator[str]:
    """A body that isn't read-only started behind its durable dispatch (G8)."""
    for body in world.started:
        if body.session is life.agent.session:
            seq = walked.dispatched.get(body.call)
            if seq is None:
                yield f"{body.call} started without a dispatch (G8)"
            elif body.effects != "read-only" and seq >= body.durable:
                yield f"{body.call} started before its dispatch {seq} was durable (G8)"


def _of_cancel(
    world: World, life: Life, events: Sequence[Event], mark: CancelMark
) -> Iterator[str]:
    """Behind a cancel the turn commits nothing, and ends soon, with the first cause (R8, I3)."""
    behind = list(_of_turn(events, mark))
    for event in behind:
        joins = getattr(event.data, "replaces", None) is None
        if isinstance(event.data, COMMITS) and joins:
            yield f"{event.type} {event.seq} came behind a cancel at {mark.seq} by {mark.by} (R8)"
    last = behind[-1] if behind else None
    if last is None or not isinstance(last.data, TurnEnded):
        yield f"turn {mark.turn} has no end behind its cancel by {mark.by}"
        return
    allowed_s = LIMITS.grace_s + LIMITS.post_s if mark.calling else 0
    took_s = last.time / 1000 - mark.at_s
    if took_s > allowed_s + 0.001:
        yield f"turn {mark.turn} took {took_s:g} s to end behind its cancel by {mark.by}"
    yield from _of_end(world, last.data, mark)


def _of_turn(events: Sequence[Event], mark: CancelMark) -> Iterator[Event]:
    """The events of a turn behind its cancel."""
    for event in events[mark.seq + 1 :]:
        if isinstance(event.data, TurnStarted) and event.data.turn > mark.turn:
            return
        yield event
        if isinstance(event.data, TurnEnded):
            return


def _of_end(world: World, end: TurnEnded, mark: CancelMark) -> Iterator[str]:
    if world.store.failed and end.code in ("STORE_FAILED", "FENCED"):
        return
    if end.reason != "aborted":
        yield f"turn {mark.turn} was cancelled by {mark.by}, and ended {end.reason} {end.code} (R8)"
    elif mark.cause is not None and end.cause not in (mark.cause, *TIME_LIMITS):
        yield f"turn {mark.turn} was cancelled because of {mark.cause!r}, not {end.cause!r} (I3)"


def _of_repair(world: World, life: Life, events: Sequence[Event]) -> Iterator[str]:
    """Had the process died anywhere, repair would have closed the log (D4)."""
    chance = random.Random(world.script.seed)
    for _ in range(CUTS):
        cut = events[: chance.randint(len(life.began), len(events))]
        facts: Sequence[EventData] = repair(cut)
        repaired = [Event(seq, cut[-1].time, fact) for seq, fact in enumerate(facts, len(cut))]
        state = fold(cut)
        for event in repaired:
            before = state.phase
            state.apply(event)
            world.coverage.saw_transition(before, event, state.phase)
        if state.turn is not None or repair(state):
            yield f"cut behind event {cut[-1].seq} it is repaired only in part (D4)"
        lost = [id for id, fate in state.fates.items() if fate.status not in LAST_FATES]
        if lost:
            yield f"cut behind event {cut[-1].seq} it loses {lost} (D4)"


def _of_resumption(world: World, life: Life) -> Iterator[str]:
    """A log is taken up as it was left, as far as the store was good."""
    index = world.lives.index(life)
    before = [one for one in world.lives[:index] if one.agent.name == life.agent.name]
    if before and not world.store.failed:
        left = before[-1].agent.session.events()
        if life.began[: len(left)] != left:
            yield "it was taken up with another log than it was left with"


def _of_requests(world: World, told: dict[str, list[bytes]]) -> Iterator[str]:
    """Every request that a model received is the one that the log tells of, in order (G2)."""
    for session, received in world.models.received.items():
        logged = iter(told.get(session, []))
        if not all(any(one == other for other in logged) for one in received):
            yield f"a model received of {session} what its log doesn't tell of (G2)"
