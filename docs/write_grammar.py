"""Write the page on a log's grammar from the table that checks it.

    python docs/write_grammar.py

`docs/concepts/grammar.md` is this page; a test compares the two.
"""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

from trioloop.events import EventData, wire_name
from trioloop.log import phases
from trioloop.log.phases import MAY_FOLLOW, Phase

PAGE = Path(__file__).parent / "concepts" / "grammar.md"

OPENING = """\
# The grammar of a log

Written by `docs/write_grammar.py` from the table in `trioloop/log/phases.py`, by which every append
is checked, and every log that `trioloop.check` is given.

Behind its last event a log stands in one of the phases below. For each, the table has what may
follow, and where that leads. Where there are several ways on, the event itself decides: an answer
with tool calls leads to `CALLING`, one without to `ANSWERED`. Beyond its place, an event must say
the right thing: a result must answer the next call in order, a turn's end must name what it left.
Those checks are in `trioloop/log/grammar.py`.
"""


def _meanings() -> dict[str, str]:
    """The docstrings of the phases, which Python itself doesn't keep."""
    (phase,) = ast.parse(inspect.getsource(phases.Phase)).body
    assert isinstance(phase, ast.ClassDef)
    found = {}
    for member, text in zip(phase.body, phase.body[1:], strict=False):
        if isinstance(member, ast.Assign) and isinstance(text, ast.Expr):
            (name,) = member.targets
            found[ast.unparse(name)] = str(ast.literal_eval(text.value))
    return found


def _event(kind: type[EventData]) -> str:
    return "an application's own" if kind is EventData else f"`{wire_name(kind)}`"


def _ways_on(phase: Phase) -> Iterator[str]:
    """The events that lead on, by where they lead; those that lead nowhere else come last."""
    by_target: dict[tuple[Phase, ...], list[str]] = {}
    for kind, targets in MAY_FOLLOW[phase].items():
        by_target.setdefault(targets, []).append(_event(kind))
    for targets, events in sorted(by_target.items(), key=lambda item: item[0] == (phase,)):
        where = "stays" if targets == (phase,) else "or ".join(f"→ {_link(to)} " for to in targets)
        yield f"| {', '.join(sorted(events))} | {where.strip()} |"


def _link(phase: Phase) -> str:
    return f"[{phase.name}](#{phase.name.lower()})"


def page() -> str:
    """The page, as Markdown."""
    meanings = _meanings()
    parts = [OPENING]
    for phase in Phase:
        parts.append(f"\n## {phase.name}\n\n{meanings[phase.name]}\n")
        parts.append("\n| may follow | leads |\n| --- | --- |\n")
        parts += [f"{row}\n" for row in _ways_on(phase)]
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
