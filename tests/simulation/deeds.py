"""What can be done to an agent without waiting, and what is noted down about each cancel.

Users, hook listeners, tool bodies and observers all come here, so every deed meets every place.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import attrs
import trio

from tests.simulation.policies.deeds import POLICY_DEEDS
from tests.simulation.script import Deed, DeedKind, ObserverScript
from trioloop import Agent, Event, EventData, Notification, Session, event
from trioloop.errors import GrammarError, InternalError, TrioloopError
from trioloop.events import ToolResultLogged, UserMessageLogged
from trioloop.ids import MessageId
from trioloop.log.phases import Phase
from trioloop.messages import TextBlock, ToolResultMessage, UserMessage, user_message

if TYPE_CHECKING:
    from tests.simulation.lives import Life
    from tests.simulation.world import World

ItemT = TypeVar("ItemT")
REWRITABLE = (Phase.IDLE, Phase.PREPARING, Phase.FAILED)


class ScriptedError(Exception):
    """What scripted listeners, bodies and observers raise."""


@event("simulation/note")
class Note(EventData):
    """An application's own event."""

    text: str


@attrs.frozen
class CancelMark:
    """A cancel that met an open turn.

    Attributes:
        turn: the turn's number.
        seq: of the last event before.
        at_s: when.
        cause: as it was given; None: somebody else was first, or the host did it.
        calling: calls had no result yet, so bodies and policies may take their time.
        discards: what is pending was to be dropped.
        by: who, and where the driver was.
    """

    turn: int
    seq: int
    at_s: float
    cause: str | None
    calling: bool
    discards: bool
    by: str


def do(world: "World", deed: Deed, by: str) -> None:
    """Do something to an agent; what trioloop refuses by name is fine.

    Raises:
        ScriptedError: the deed is to raise.
    """
    life = world.life(deed.agent)
    if life is not None and deed.of_child:
        life = world.children.at_work(life, deed.pick)
    if life is None:
        return
    world.tell(f"{by}: {deed.kind} {life.agent.name}")
    try:
        _DEEDS[deed.kind](world, life, deed, by)
    except (InternalError, GrammarError) as error:
        world.violations.append(f"{deed.kind} by {by} raised {error!r}")
    except TrioloopError as error:
        world.tell(f"{by}: refused, {error.code}")


def message(world: "World") -> UserMessage:
    """The next message that somebody sends: its text and id are its number in the run."""
    world.sent += 1
    return user_message(f"message {world.sent}", id=f"m{world.sent}")


def mark_cancel(
    world: "World", agent: Agent, by: str, *, cause: str | None, discards: bool = False
) -> None:
    """Note that an agent is about to be cancelled."""
    signal = agent.turn
    state = agent.session.state
    place = "between turns" if signal is None else signal.place
    world.coverage.saw_cancel(agent.session, f"{by.split(maxsplit=1)[0]} in {place}")
    if signal is None or by == "observer of error":  # its end is decided already
        return
    if state.turn is None or state.turn.number != signal.turn:
        return  # it closes, or opens, in this very append
    world.of(agent).cancels.append(
        CancelMark(
            turn=signal.turn,
            seq=agent.session.seq,
            at_s=trio.current_time(),
            cause=cause if signal.cause is None else None,
            calling=state.phase == Phase.CALLING,
            discards=discards,
            by=f"{by} in {place}",
        )
    )


def chosen(items: Sequence[ItemT], pick: int) -> ItemT | None:
    """One of some items."""
    return items[pick % len(items)] if items else None


def _pending(life: "Life", deed: Deed) -> MessageId | None:
    one = chosen(tuple(life.agent.session.state.inbox), deed.pick)
    return None if one is None else one.message.id


# The deeds


def _send(world: "World", life: "Life", deed: Deed, by: str) -> None:
    sends: dict[str, Callable[[UserMessage], MessageId]] = {
        "followup": life.agent.followup,
        "steer": life.agent.steer,
        "inject": life.agent.inject,
    }
    life.taken.append(sends[deed.kind](message(world)))


def _repeat(world: "World", life: "Life", deed: Deed, by: str) -> None:
    """A message is sent a second time, which changes nothing (I1)."""
    known = chosen(life.taken, deed.pick)
    if known is None:
        return
    before = life.agent.session.seq
    try:
        life.agent.followup(user_message("again", id=known))
    except TrioloopError:
        if life.agent.session.seq != before:
            world.violations.append(f"{known} was refused, and the log changed (I1)")
        raise
    world.violations.append(f"the message {known} was taken twice (I1)")


def _cancel(world: "World", life: "Life", deed: Deed, by: str) -> None:
    world.causes += 1
    cause = f"cause {world.causes}"
    discards = deed.kind == "cancel-discard"
    mark_cancel(world, life.agent, by, cause=cause, discards=discards)
    life.agent.cancel(cause, discard_inbox=discards)
    kept = len(life.agent.inbox) and not (life.disposing or world.left or world.script.observers)
    if discards and kept:
        world.violations.append(f"{by} cancelled {life.agent.name}, and its inbox isn't empty (I3)")


def _cancel_call(world: "World", life: "Life", deed: Deed, by: str) -> None:
    step = life.agent.session.state.step
    call = chosen([] if step is None else list(step.calls), deed.pick)
    if call is not None:
        world.coverage.saw_cancel(life.agent.session, f"{by.split(maxsplit=1)[0]}, one call")
        life.agent.cancel_call(call)


def _wake(world: "World", life: "Life", deed: Deed, by: str) -> None:
    life.agent.wake()


def _remove(world: "World", life: "Life", deed: Deed, by: str) -> None:
    id = _pending(life, deed)
    if id is not None and not life.agent.inbox.remove(id):
        world.violations.append(f"{id} is pending, and can't be removed")


def _replace(world: "World", life: "Life", deed: Deed, by: str) -> None:
    id = _pending(life, deed)
    if id is not None:
        new = message(world)
        life.agent.inbox.replace(id, "edited" if deed.pick % 2 else new)
        if not deed.pick % 2:
            life.taken.append(new.id)


def _clear(world: "World", life: "Life", deed: Deed, by: str) -> None:
    life.agent.inbox.clear()
    if len(life.agent.inbox) and not world.script.observers:
        world.violations.append("the inbox was cleared, and isn't empty")


def _restore(world: "World", life: "Life", deed: Deed, by: str) -> None:
    turns = life.agent.session.state.turns
    life.agent.inbox.restore(1 + deed.pick % max(turns, 1))


def _note(world: "World", life: "Life", deed: Deed, by: str) -> None:
    if not life.disposing and not world.left:
        life.agent.session.append(Note(by))


def _compact(world: "World", life: "Life", deed: Deed, by: str) -> None:
    """The whole history becomes one message, as a compaction does it."""
    session = life.agent.session
    nodes = [seq for seq, _ in session.state.surface.nodes]
    if session.state.phase not in REWRITABLE or life.disposing or world.left or not nodes:
        return
    if session.state.surface.fault_in_range(nodes[0], nodes[-1]) is None:
        _rewrite(world, session, UserMessageLogged(message(world), (nodes[0], nodes[-1])))


def _prune(world: "World", life: "Life", deed: Deed, by: str) -> None:
    """A result's content is taken out of the history, as a pruning does it."""
    session = life.agent.session
    nodes = session.state.surface.nodes
    results = [(seq, node) for seq, node in nodes if isinstance(node, ToolResultMessage)]
    found = chosen(results, deed.pick)
    if session.state.phase in REWRITABLE and not (life.disposing or world.left) and found:
        seq, result = found
        content = (TextBlock("..."),)
        _rewrite(
            world, session, ToolResultLogged(result.call, content, result.is_error, replaces=seq)
        )


def _rewrite(world: "World", session: Session, fact: EventData) -> None:
    try:
        session.append(fact)
    except GrammarError as error:
        if "breaks G2" not in str(error):  # the model of a retry reads the history just now
            raise
        world.tell("refused, since a model reads the history")


def _dispose(world: "World", life: "Life", deed: Deed, by: str) -> None:
    discards = deed.kind == "dispose-discard"
    if not life.disposing:
        mark_cancel(world, life.agent, by, cause="disposed", discards=discards)
    life.disposing = True
    life.agent.begin_disposal("disposed", discard_inbox=discards)


def _swap_tool(world: "World", life: "Life", deed: Deed, by: str) -> None:
    """A tool's registration is taken back, and after that a new one made."""
    world.toolbox.swap(deed.pick)


def _raise(world: "World", life: "Life", deed: Deed, by: str) -> None:
    raise ScriptedError(by)


_DEEDS: Mapping[DeedKind, Callable[["World", "Life", Deed, str], None]] = {
    "followup": _send,
    "steer": _send,
    "inject": _send,
    "repeat": _repeat,
    "cancel": _cancel,
    "cancel-discard": _cancel,
    "cancel-call": _cancel_call,
    "wake": _wake,
    "remove": _remove,
    "replace": _replace,
    "clear": _clear,
    "restore": _restore,
    "note": _note,
    "compact": _compact,
    "prune": _prune,
    "dispose": _dispose,
    "dispose-discard": _dispose,
    "swap-tool": _swap_tool,
    "raise": _raise,
    **POLICY_DEEDS,
}


def observe(world: "World", agent: Agent, script: ObserverScript) -> None:
    """Do a deed on each so-manieth of what an observer watches, a few times."""
    seen = done = 0

    def see(what: Event | Notification) -> None:
        nonlocal seen, done
        kind = "event" if isinstance(what, Event) else what.kind
        if isinstance(what, Event) and script.watches not in ("events", what.type):
            return
        seen += 1
        if seen % script.every == 0 and done < script.times:
            done += 1
            do(world, script.deed, f"observer of {kind}")

    if script.watches == "events" or "/" in script.watches:
        agent.session.observe(see)
    else:
        agent.on(script.watches, see)
