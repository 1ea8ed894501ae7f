"""The catalogue of durable events."""

from collections.abc import Iterator

from docs.catalogues.reading import says, sentence, table
from trioloop.events import (
    AssistantMessageLogged,
    CallConfig,
    EventData,
    Failure,
    PendingMessage,
    RequestHeaderLogged,
    SystemMessageLogged,
    ToolDeclaration,
    ToolResultLogged,
    Unadmitted,
    UserMessageLogged,
    event_classes,
    is_ignorable,
)
from trioloop.log.grammar import CHECKS
from trioloop.log.phases import MAY_FOLLOW

OPENING = """\
# Durable events

What a session's log is made of. In a store and in an export each event is one line of canonical
JSON: `{"type": ..., "seq": ..., "time": ..., "data": {...}}`. Its `data` has all the fields below;
a default is for those who make an event in Python. `seq` counts from 0 without gaps, `time` is Unix
milliseconds and never decreases. What may follow what is the [grammar](../../concepts/grammar.md).

The **surface** is what the model sees of a log: the system prompt, then the history. An event that
is **ignorable** may be skipped by a reader that doesn't know its type; any other unknown type
refuses the log.

"""

SURFACE: dict[type[EventData], str] = {
    SystemMessageLogged: "a node of the prompt is set or removed: in the head, or as a message at "
    "the end of the history",
    UserMessageLogged: "appends, or stands in the place of a range of the history",
    RequestHeaderLogged: "with `why` = `series`, system messages in the history are dropped",
    AssistantMessageLogged: "appends, unless it is empty",
    ToolResultLogged: "appends, or rewrites an earlier result",
}
"""What events do to the surface; every other one leaves it alone."""

PARTS = (PendingMessage, Unadmitted, ToolDeclaration, CallConfig, Failure)


def builtin() -> dict[str, type[EventData]]:
    """The events that the runtime itself writes, by wire name, in the order of the code."""
    return {
        name: cls
        for name, cls in event_classes().items()
        if cls.__module__ == "trioloop.events.facts"
    }


def anchor(name: str) -> str:
    """The anchor of an event on its page."""
    return name.replace("/", "-")


def _overview() -> Iterator[str]:
    yield "| event | says | surface | ignorable |\n| --- | --- | --- | --- |\n"
    for name, cls in builtin().items():
        surface = "changes it" if cls in SURFACE else ""
        ignorable = "yes" if is_ignorable(cls) else "no"
        yield (
            f"| [`{name}`](#{anchor(name)}) | {sentence(says(cls))} | {surface} | {ignorable} |\n"
        )


def _stands_in(cls: type[EventData]) -> str:
    kind = cls if cls in CHECKS else EventData
    phases = [phase.name for phase, row in MAY_FOLLOW.items() if kind in row]
    if len(phases) > len(MAY_FOLLOW) / 2:
        others = [phase.name for phase, row in MAY_FOLLOW.items() if kind not in row]
        return f"\n**May follow** anywhere but in {', '.join(map(_phase, others))}.\n"
    links = ", ".join(map(_phase, phases))
    return f"\n**May follow in** {links}.\n"


def _phase(name: str) -> str:
    return f"[{name}](../../concepts/grammar.md#{name.lower()})"


def page() -> str:
    """The page, as Markdown."""
    parts = [OPENING, *_overview()]
    for name, cls in builtin().items():
        parts.append(f"\n## `{name}` {{ #{anchor(name)} }}\n\n{says(cls)}\n\n{table(cls)}")
        if cls in SURFACE:
            parts.append(f"\n**Surface:** {SURFACE[cls]}.\n")
        parts.append(_stands_in(cls))
    parts.append("\n## What they are made of\n\nContent blocks, messages, usage and streams are ")
    parts.append("in the [reference](../events.md).")
    parts += [f"\n\n### `{cls.__name__}`\n\n{says(cls)}\n\n{table(cls)}" for cls in PARTS]
    return "".join(parts)
