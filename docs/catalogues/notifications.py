"""The catalogue of notifications."""

from collections.abc import Iterator

from docs.catalogues.reading import says, sentence, table
from trioloop.agent.notifications import Notification

OPENING = """\
# Notifications

Live facts about an agent. They aren't durable, and whoever hears them can't veto. A synchronous
listener takes one kind, `agent.on("status", listener)`, or every kind, `"*"`; a watcher reads all
of them, `async with agent.watch() as feed`. Those of a runtime, `runtime.on` and `runtime.watch`,
hear every agent; `agent` says whose fact it is. How it works:
[listening and watching](../runtime.md#listening-and-watching).

"""


def kinds() -> list[type[Notification]]:
    """Every class of notifications, in the order of the code."""
    found = Notification.__subclasses__()
    return [cls for cls in found if cls.__module__ == Notification.__module__]


def _overview() -> Iterator[str]:
    yield "| kind | class | says |\n| --- | --- | --- |\n"
    for cls in kinds():
        name = f"[`{cls.kind}`](#{cls.kind})"
        yield f"| {name} | [`{cls.__name__}`][{_path(cls)}] | {sentence(says(cls))} |\n"


def _path(cls: type[Notification]) -> str:
    return f"{cls.__module__}.{cls.__name__}"


def page() -> str:
    """The page, as Markdown."""
    parts = [OPENING, *_overview()]
    for cls in kinds():
        parts.append(f"\n## `{cls.kind}` {{ #{cls.kind} }}\n\n")
        parts.append(f"[`{cls.__name__}`][{_path(cls)}]: {says(cls)}\n\n{table(cls)}")
    return "".join(parts)
