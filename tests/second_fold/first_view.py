"""What the first reading of a log says, in the form of the second, so that they can be compared."""

import json

from tests.second_fold.second_surface import Json, Row
from trioloop.codec import canonical, encode_event
from trioloop.events import Event
from trioloop.ids import MessageId
from trioloop.log.fold import LogState
from trioloop.log.state import OpenStep


def rows_of(events: list[Event]) -> list[Row]:
    """A log as plain JSON, through the bytes that a store would keep."""
    return [json.loads(encode_event(event)) for event in events]


def first_view(state: LogState) -> dict[str, Json]:
    """All that the first reading knows, as `second_fold.view` gives it."""
    surface = state.surface
    view = {
        "session": state.session,
        "seq": state.seq,
        "time": state.time,
        "inbox": {"next-turn": state.inbox.next_turn, "next-step": state.inbox.next_step},
        "fates": {id: _fate(state, id) for id in state.fates},
        "turns": state.turns,
        "turn": _turn(state),
        "last_turn": state.last_turn,
        "header": state.header,
        "context": state.context,
        "heads": surface.heads,
        "history": list(surface.history),
        "generation": surface.generation,
        "sections": surface.sections(),
        "usage": state.usage,
        "wire_ids": sorted(state.wire_ids),
    }
    plain: dict[str, Json] = json.loads(canonical(view))
    return plain


def _fate(state: LogState, id: MessageId) -> Json:
    fate = state.fates[id]
    return {"status": fate.status, "list": fate.list, "turn": fate.turn, "why": fate.why}


def _turn(state: LogState) -> Json:
    turn = state.turn
    if turn is None:
        return None
    return {
        "number": turn.number,
        "retry_of": turn.retry_of,
        "steps": turn.steps,
        "claimed": turn.claimed,
        "fresh": turn.fresh,
        "dropped": turn.dropped,
        "failures": turn.failures,
        "reason_so_far": turn.reason_so_far,
        "owed": turn.owed,
        "usage": turn.usage,
        "step": None if turn.step is None else _step(turn.step),
    }


def _step(step: OpenStep) -> Json:
    calls = {
        id: {"call_seq": call.call_seq, "dispatched": call.dispatched, "result": call.result}
        for id, call in step.calls.items()
    }
    return {
        "number": step.number,
        "attempts": step.attempts,
        "answer": step.answer,
        "calls": calls,
        "unanswered": step.unanswered,
    }
