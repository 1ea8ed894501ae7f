"""Write the page on a turn's decisions from the functions that decide.

    python -m docs.write_decisions

Each table asks a function of `trioloop/machine/` about every case that can be told apart, and shows
what it answers. The diagram is drawn from the same answers. A test compares both with what they
would be now.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from docs.decisions_drawing import decisions_diagram
from docs.turn_cases import (
    CALLS,
    NEXT_STEP,
    NEXT_TURN,
    REASONS,
    call_closing,
    claims,
    left_behind,
    opens_turn,
    request_closing,
    step_asked_for,
)

FOLDER = Path(__file__).parent / "concepts"
PAGE = FOLDER / "decisions.md"
PICTURE = FOLDER / "decisions.svg"

OPENING = """\
---
hide:
  - toc
---

# Decisions of a turn

What a turn does next is decided by plain functions of the folded log, in `trioloop/machine/`. They
await nothing and change nothing; the driver carries out what they say. This page is written by
`docs/write_decisions.py`, which asks them about every case.

<div class="drawn" data-search-exclude>
--8<-- "concepts/decisions.svg"
</div>

"""

STEP = """\
## What asks for a step

`owed(turn, inbox)`, asked at each step boundary. `-` is nothing: listeners of
`agent.turn_stopping` may then steer, and if none does the turn ends. A pause asks for a step at
most `pauses_max` times in a turn, listeners at most `continuations_max` times.

"""

CLAIM = """\
## What a turn claims first

`claim_turn(inbox)`, when a turn opens: all of next-step joins, then the head of next-turn, for
which the turn is opened. But what was steered to an idle agent gets a turn of its own, ahead of
messages that wake nobody. At later boundaries `claim_step(inbox)` takes all of next-step.

"""

TURN = """\
## When a further turn opens

`goes_on(state, opened)`, asked when a turn has closed. A turn that failed or was cancelled leaves
what is pending where it is, until somebody wakes the agent; only what was sent after the cancel
goes on by itself, and only once. So does a turn that a dead process left open and whose calls were
run again (`interrupted`): only what was sent meanwhile opens another one.

"""

CLOSING = """\
## What closes an open step

`closing_step(step, turn)`, when a turn is cancelled or fails inside a step: what is appended for
each part of it, then `step/end`.

"""

MESSAGES = """\
## Where claimed messages go

`closing_turn(turn, ending)`, for messages that the turn claimed and no step admitted. Those of a
cancelled turn go back to the heads of their lists, unless the cancel asked to drop the inbox; every
other is named in `turn/end` with a reason, and `agent.inbox.restore(turn)` puts it back.

"""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"


def _step_table() -> str:
    rows = []
    for steps, place in ((0, "before the first step"), (1, "behind a step")):
        for left in (None, "results", "pause", "retry"):
            if (steps, left) in _UNREACHABLE:
                continue
            answers = [step_asked_for(steps, left, filled=filled) for filled in (False, True)]
            rows.append([place, _LEFT[left], *answers])
    return _table(["", "left owed", "next-step is empty", "next-step holds input"], rows)


_UNREACHABLE = {(0, "results"), (0, "pause"), (1, "retry")}
_LEFT = {
    None: "nothing",
    "results": "results that the model hasn't seen",
    "pause": "the model paused",
    "retry": "the request of the turn that this one repeats",
}


def _grid(ask: Callable[[str, str], str]) -> str:
    """What is answered for both lists; what next-turn holds has one row where it is all one."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for words in NEXT_TURN:
        groups.setdefault(tuple(ask(words, other) for other in NEXT_STEP), []).append(words)
    head = ["next-turn holds", *(f"next-step holds {words}" for words in NEXT_STEP)]
    return _table(head, (["; ".join(rows), *answers] for answers, rows in groups.items()))


def _turn_tables() -> str:
    """One table for each group of reasons that the function doesn't tell apart."""
    groups: dict[str, list[str]] = {}
    for reason in REASONS:
        groups.setdefault(_grid(partial(opens_turn, reason)), []).append(f"`{reason}`")
    return "".join(f"Behind {_and(reasons)}:\n\n{grid}" for grid, reasons in groups.items())


def _and(words: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


def _closing_table() -> str:
    head = ["open is", "cancelled, or failed elsewhere", "the scheduler of calls failed"]
    request = ["a request without its attempt", *map(request_closing, (False, True))]
    calls = ([f"a call that {words}", *_call_answers(words)] for words in CALLS)
    return _table(head, (request, *calls))


def _call_answers(words: str) -> list[str]:
    return [call_closing(words, failed_inside) for failed_inside in (False, True)]


def _messages_table() -> str:
    groups: dict[tuple[str, ...], list[str]] = {}
    for reason in REASONS:
        if reason == "interrupted":  # written by repair alone, which puts back what it can
            continue
        answers = tuple(left_behind(reason, keeps) for keeps in (True, False))
        groups.setdefault(answers, []).append(f"`{reason}`")
    head = ["the turn ends as", "the inbox is kept", "the cancel drops the inbox"]
    return _table(head, ([", ".join(reasons), *answers] for answers, reasons in groups.items()))


def page() -> str:
    """The page, as Markdown."""
    parts = (
        OPENING,
        STEP,
        _step_table(),
        CLAIM,
        _grid(claims),
        TURN,
        _turn_tables(),
        CLOSING,
        _closing_table(),
        MESSAGES,
        _messages_table(),
    )
    return "".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    PICTURE.write_text(decisions_diagram(), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE} and {PICTURE}")
