"""Any valid log: a strategy that walks the loop's paths at random."""

from collections.abc import Callable
from typing import TypeAlias

from hypothesis import strategies as st

from tests.log.writing import (
    CANCELLED,
    CONTEXT,
    FAILED,
    OTHER_CONFIG,
    UNSENT,
    LogWriter,
    Note,
    answer,
    answer_calls,
    call_block,
    header,
    pending,
    result,
    started,
)
from trioloop.events import (
    EventData,
    InboxSpliced,
    NestedCallStarted,
    NestedResultLogged,
    RequestHeaderLogged,
    StepEnded,
    StepStarted,
    SystemMessageLogged,
    ToolDispatched,
    ToolResultLogged,
    TurnEnded,
    TurnStarted,
    Unadmitted,
    UserMessageLogged,
)
from trioloop.ids import nested_call_id
from trioloop.log.phases import Phase
from trioloop.machine.inbox import claim_step, claim_turn, clear, insert, remove, restore
from trioloop.messages import (
    MessageList,
    ReasoningBlock,
    TextBlock,
    ToolResultMessage,
    user_message,
)

Draw: TypeAlias = Callable[[st.SearchStrategy[int]], int]


class Walk:
    """Takes one random step of the loop after the other, each a block of facts that may follow."""

    def __init__(self, draw: Draw) -> None:
        self.writer = LogWriter()
        self._draw = draw
        self._ids = 0

    def go(self) -> None:
        """Take a step."""
        state = self.writer.state
        moves = [*_MOVES.get(state.phase, ()) * 2]
        if state.phase not in (Phase.CLAIMING, Phase.CUT):
            moves.append(Walk.disturb)
        self.writer.add(*moves[self.pick(len(moves))](self))

    def pick(self, count: int) -> int:
        """A number below `count`."""
        return self._draw(st.integers(0, count - 1))

    def chance(self) -> bool:
        """Yes or no."""
        return self.pick(2) == 1

    def new_id(self) -> str:
        """A message id that wasn't there."""
        self._ids += 1
        return f"m{self._ids}"

    # Anywhere

    def disturb(self) -> tuple[EventData, ...]:
        """Somebody sends, discards, or notes something."""
        inbox, lists = self.writer.state.inbox, ("next-step", "next-turn")
        what = self.pick(6)
        if what == 0:
            return (Note("noted"),)
        if what == 1 and len(inbox):
            gone = remove(inbox, [*inbox][self.pick(len(inbox))].message.id)
            return () if gone is None else (gone,)
        if what == 2 and len(inbox):
            return clear(inbox) if self.chance() else self._edit()
        target: MessageList = lists[self.pick(2)]  # type: ignore[assignment]
        return (insert(inbox, target, pending(self.new_id(), wakeup=self.chance())),)

    def _edit(self) -> tuple[EventData, ...]:
        inbox = self.writer.state.inbox
        place = inbox.find([*inbox][self.pick(len(inbox))].message.id)
        assert place is not None
        new = pending(place.pending.message.id if self.chance() else self.new_id())
        return (InboxSpliced(place.list, place.index, 1, (new,), "replaced"),)

    def compact(self) -> tuple[EventData, ...]:
        """A range of the history is replaced, or a result rewritten."""
        nodes = list(self.writer.state.surface.nodes)
        if not nodes:
            return (Note("nothing to compact"),)
        first = self.pick(len(nodes))
        last = first + self.pick(len(nodes) - first)
        seq, message = nodes[first]
        if isinstance(message, ToolResultMessage) and self.chance():
            rewritten = (TextBlock("pruned"),)
            return (ToolResultLogged(message.call, rewritten, message.is_error, replaces=seq),)
        span = seq, nodes[last][0]
        if self.writer.state.surface.fault_in_range(*span) is not None:
            return (Note("would separate a call from its result"),)
        return (UserMessageLogged(user_message("summary", id=self.new_id()), span),)

    # Turns

    def open_turn(self) -> tuple[EventData, ...]:
        """A turn opens, if something is pending."""
        state = self.writer.state
        if not len(state.inbox):
            return self.disturb()
        return (TurnStarted(state.turns + 1), *claim_turn(state.inbox))

    def retry_turn(self) -> tuple[EventData, ...]:
        """The last turn is repeated, where that may be."""
        state = self.writer.state
        failed = state.last_turn is not None and state.last_turn.reason == "error"
        if not (failed and state.chain_failures and state.last_turn_seq == state.seq):
            return self.open_turn()
        claim = claim_step(state.inbox)
        return (TurnStarted(state.turns + 1, state.turns), *(() if claim is None else (claim,)))

    def put_back(self) -> tuple[EventData, ...]:
        """What the last turn didn't admit is restored."""
        return restore(self.writer.state, self.writer.state.turns)

    def claim(self) -> tuple[EventData, ...]:
        """What waits in next-step is claimed at a step's boundary."""
        claim = claim_step(self.writer.state.inbox)
        return () if claim is None else (claim,)

    def end_turn(self) -> tuple[EventData, ...]:
        """The turn ends in one of the ways that are open to it."""
        state = self.writer.state
        turn = state.turn
        assert turn is not None
        reasons = ["error", "aborted", "interrupted"]
        if state.phase == Phase.PREPARING:
            reasons.append("blocked")
            if turn.owed in (None, "pause"):
                reasons.append(turn.reason_so_far)
        reason = reasons[self.pick(len(reasons))]
        if state.phase == Phase.CUT:
            reason = "interrupted"
        left = tuple(
            Unadmitted(claim.pending.message.id, claim.list, reason) for claim in turn.claimed
        )
        return (
            TurnEnded(
                turn.number,
                reason,  # type: ignore[arg-type]
                code="X" if reason in ("error", "blocked") else None,
                cause="user" if reason == "aborted" else None,
                unadmitted=left,
            ),
        )

    # Steps

    def admit(self) -> tuple[EventData, ...]:
        """A step is committed, if something asks for one."""
        turn = self.writer.state.turn
        assert turn is not None
        entered = [claim.pending.message for claim in turn.fresh if self.pick(4)]
        if self.pick(8) == 0:
            entered.append(user_message("added", id=self.new_id()))
        if not entered and turn.owed is None:
            return self.end_turn()
        system = self._system()
        return (
            StepStarted(turn.number, turn.steps + 1),
            *system,
            *(UserMessageLogged(message) for message in entered),
            *self._header(system),
        )

    def readmit(self) -> tuple[EventData, ...]:
        """What changed is admitted before a retry."""
        system = self._system()
        return (*system, *self._header(system))

    def _system(self) -> tuple[SystemMessageLogged, ...]:
        surface = self.writer.state.surface
        if self.writer.state.header is None:
            return tuple(
                SystemMessageLogged(name, order, "head", f"{name} 0")
                for order, name in enumerate("ab"[: self.pick(3)])
            )
        node, kind = "abc"[self.pick(3)], self.pick(8)
        text = None if self.pick(4) == 0 else f"{node} {self.writer.seq}"
        if kind == 0 and (text is not None or node in surface.sections()):
            return (SystemMessageLogged(node, 0, "tail", text),)
        if kind == 1:
            return self._series(node)
        return ()

    def _series(self, changed: str) -> tuple[SystemMessageLogged, ...]:
        surface = self.writer.state.surface
        wanted = {**surface.sections(), changed: f"{changed} {self.writer.seq}"}
        gone = [head.node for head in surface.heads if head.node not in wanted]
        return (
            *(SystemMessageLogged(node, 0, "head", None) for node in gone),
            *(SystemMessageLogged(node, 0, "head", text) for node, text in wanted.items()),
        )

    def _header(self, system: tuple[SystemMessageLogged, ...]) -> tuple[EventData, ...]:
        before = self.writer.state.header
        if before is None:
            return (header(), CONTEXT)
        if any(node.placement == "head" for node in system):
            return (header("series"),)
        if self.pick(6) == 0:
            return (header("resume"),)
        if self.pick(6) == 0:
            return (self._changed(before), CONTEXT)
        return ()

    def _changed(self, before: RequestHeaderLogged) -> RequestHeaderLogged:
        config = OTHER_CONFIG if before.config != OTHER_CONFIG else header().config
        return header("change", config)

    def attempt(self) -> tuple[EventData, ...]:
        """The model answers, or doesn't."""
        turn = self.writer.state.turn
        assert turn is not None
        what, count = self.pick(10), 1 + self.pick(4)
        if what < 4:
            return (answer_calls(turn.number, turn.steps, count),)
        if what == 4:
            cut = [call_block(turn.number, turn.steps, index) for index in range(count)]
            return (answer([TextBlock("so"), *cut], "length"),)
        return (
            (
                answer(),
                answer([], "stop"),
                answer([], "pause"),
                answer([ReasoningBlock("hm"), TextBlock("He")], interrupted=True),
                (FAILED, CANCELLED, UNSENT)[self.pick(3)],
            )[what - 5],
        )

    def end_step(self) -> tuple[EventData, ...]:
        """The step ends."""
        turn = self.writer.state.turn
        assert turn is not None
        return (StepEnded(turn.number, turn.steps),)

    # Calls

    def start(self) -> tuple[EventData, ...]:
        """The next call starts, if one may."""
        step = self.writer.state.step
        assert step is not None
        last = next(reversed(step.starts.values()), None)
        first = max(step.answered, 0 if last is None else last.index + 1)
        if step.is_cut or first >= len(step.order):
            return self.answer_call()
        call = step.calls[step.order[min(first + (self.pick(4) == 0), len(step.order) - 1)]]
        return (started(call.block, dispatched=self.chance()),)

    def work(self) -> tuple[EventData, ...]:
        """A call that has started is dispatched, or calls something itself."""
        step = self.writer.state.step
        assert step is not None
        running = [call for call in step.starts.values() if call.result is None]
        if not running:
            return self.start()
        call = running[self.pick(len(running))]
        assert call.call_seq is not None
        if not call.dispatched:
            return (ToolDispatched(call.call_seq, "{}" if self.chance() else None, "x"),)
        nested = call.nested or {}
        for id in call.unanswered:
            if self.chance():
                return (NestedResultLogged(id, call.block.call, (TextBlock("in"),)),)
        waiting = [seq for seq, one in (step.nested or {}).items() if not one.dispatched]
        waiting = [seq for seq in waiting if not (step.nested or {})[seq].answered]
        if waiting and self.chance():
            return (ToolDispatched(waiting[0]),)
        new = nested_call_id(call.block.call, len(nested))
        return (NestedCallStarted(new, call.block.call, "look", "{}", self.chance()),)

    def answer_call(self) -> tuple[EventData, ...]:
        """The next result is recorded."""
        step = self.writer.state.step
        assert step is not None
        assert step.next_result is not None
        call = step.calls[step.next_result]
        for id in call.unanswered:
            return (NestedResultLogged(id, call.block.call, (TextBlock("in"),)),)
        recorded = result(step.next_result, call.call_seq)
        if self.pick(8) == 0:
            return (
                ToolResultLogged(
                    recorded.call,
                    recorded.content,
                    recorded.is_error,
                    call_seq=recorded.call_seq,
                    concludes_turn=True,
                ),
            )
        return (recorded,)


_ATTEMPTS = (Walk.attempt,)
_MOVES: dict[Phase, tuple[Callable[[Walk], tuple[EventData, ...]], ...]] = {
    Phase.IDLE: (Walk.open_turn, Walk.open_turn, Walk.retry_turn, Walk.put_back, Walk.compact),
    Phase.CLAIMING: (Walk.claim,),
    Phase.PREPARING: (Walk.claim, Walk.admit, Walk.admit, Walk.admit, Walk.end_turn, Walk.compact),
    Phase.SYSTEM: _ATTEMPTS,
    Phase.MESSAGES: _ATTEMPTS,
    Phase.HEADER: _ATTEMPTS,
    Phase.ADMITTED: _ATTEMPTS,
    Phase.READMITTING: _ATTEMPTS,
    Phase.FAILED: (Walk.attempt, Walk.readmit, Walk.compact, Walk.end_step),
    Phase.STOPPED: (Walk.end_step,),
    Phase.CALLING: (Walk.start, Walk.work, Walk.answer_call),
    Phase.ANSWERED: (Walk.end_step,),
    Phase.ENDING: (Walk.end_turn,),
}


@st.composite
def written_logs(draw: Draw, moves_max: int = 50) -> LogWriter:
    """Strategy: the writer of a valid log of up to `moves_max` blocks."""
    walk = Walk(draw)
    for _ in range(draw(st.integers(0, moves_max))):
        walk.go()
    return walk.writer
