"""Which line of the driver's listing (contract section 4) a point fell in, and how many did."""

from collections import Counter
from collections.abc import Mapping

from trioloop.agent.agent import Agent
from trioloop.events import Event, InboxSpliced

LINES = (
    "claim",
    "tool set",
    "assemble",
    "pre_step",
    "request, prepare",
    "admission",
    "gate",
    "attempt",
    "tools",
    "step/end",
    "turn_stopping",
    "turn/end",
    "checkpoint, settled",
)
"""The lines of the listing, from its first to its last."""

BESIDE = ("retry", "no turn")
"""Where else a point may fall: between attempts (P12), and where no turn is under way."""

BEFORE_ADMISSION = LINES[: LINES.index("admission")]

_PLACES = {
    "its beginning": "claim",
    "the conditions of its tools": "tool set",
    "system_prompt.assemble": "assemble",
    "agent.pre_step": "pre_step",
    "agent.request": "request, prepare",
    "its model's preparation": "request, prepare",
    "its durable gate": "gate",
    "its model's stream": "attempt",
    "agent.request_error": "retry",
    "its wait before a retry": "retry",
    "its tools": "tools",
    "agent.turn_stopping": "turn_stopping",
}
_EVENTS = {
    "turn/start": "claim",
    "step/start": "admission",
    "system/message": "admission",
    "user/message": "admission",
    "request/header": "admission",
    "request/context": "admission",
    "assistant/message": "attempt",
    "assistant/attempt": "attempt",
    "tool/call": "tools",
    "tool/dispatch": "tools",
    "tool/result": "tools",
    "step/end": "step/end",
    "turn/end": "turn/end",
}


def line_of(agent: Agent, settled: int) -> str:
    """The line that an agent's driver waits in.

    Args:
        agent: whose driver.
        settled: the last turn whose settlement was told.
    """
    if agent.turn is not None:
        return _PLACES[agent.turn.place]
    is_over = agent.session.state.turn is None and agent.session.state.turns > settled
    return "checkpoint, settled" if is_over and agent.status == "running" else "no turn"


def line_of_event(event: Event) -> str | None:
    """The line whose block appended an event; None: some policy's listener did."""
    if isinstance(event.data, InboxSpliced):
        claims = event.data.removed and event.data.outcome is None
        return "claim" if claims else "no turn"
    is_rewrite = getattr(event.data, "replaces", None) is not None
    return None if is_rewrite else _EVENTS.get(event.type)


def table(counts: Mapping[str, Counter[str]]) -> str:
    """Counts by line as a table, one column for each name."""
    head = "".join(name.rjust(11) for name in counts)
    rows = [
        f"{line:20}" + "".join(f"{count[line]:11}" for count in counts.values())
        for line in (*LINES, *BESIDE)
    ]
    total = "".join(f"{count.total():11}" for count in counts.values())
    return "\n".join([f"{'line':20}{head}", *rows, f"{'all':20}{total}"])
