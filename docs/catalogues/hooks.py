"""The catalogue of hooks."""

import ast
import inspect
from collections.abc import Iterator
from types import UnionType
from typing import get_args

import attrs

from docs.catalogues.reading import class_link, says, table, type_words
from trioloop.hooks import points
from trioloop.hooks.points import Hooks, StreamRequest

OPENING = """\
# Hooks

The places where policy joins the loop. A **waterfall** listener is `async def listener(payload,
next)`: it awaits `next()` at most once for what those behind it answer, or answers alone. A
**serial** listener is `async def listener(payload)`, and what it returns is ignored. Listeners of
the runtime wrap those of an agent, in the order in which they were registered.

Register by decorating, `@runtime.hooks.pre_step`, or with `agent.hooks.pre_step.add(listener,
timeout_s=5)`, whose handle removes it again. [Listeners](../hooks.md#listeners) has the details.

"""

ANSWERS = {
    "request": "the one that `next()` gave, perhaps changed",
    "assemble": "the sections that the model shall see, in any order",
    "compact": "whether the history is shorter now; the default is that it isn't",
    "stream": "the stream that `next()` gave, or one that wraps it",
    "execute": "the one that `next()` gave, or another in its place",
}
"""What to answer where the type doesn't say it."""


@attrs.frozen
class Hook:
    """A hook: where it is registered, its name and kind, what it tells and may be answered."""

    attribute: str
    name: str
    kind: str
    payload: type
    answer: object

    @property
    def anchor(self) -> str:
        """Its anchor on the page."""
        return self.name.replace(".", "-")

    @property
    def answers(self) -> tuple[type, ...]:
        """The classes of this room that it may be answered with."""
        parts = get_args(self.answer) if isinstance(self.answer, UnionType) else (self.answer,)
        return tuple(
            part for part in parts if isinstance(part, type) and part.__module__ == points.__name__
        )


def hooks() -> list[Hook]:
    """Every hook, as the code declares it: Python doesn't keep what a generic is made with."""
    tree = ast.parse(inspect.getsource(points))
    (cls,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Hooks")
    made = (node.value for node in ast.walk(cls) if isinstance(node, ast.Assign))
    found = {}
    for call in made:
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Subscript):
            (name,) = (ast.literal_eval(argument) for argument in call.args)
            found[name] = eval(ast.unparse(call.func.slice), vars(points))
    return [_hook(attribute, found) for attribute in _in_order(found)]


def _in_order(found: dict[str, object]) -> list[str]:
    """The attributes of `Hooks` in the order of the code."""
    hooks = Hooks()
    by_name = {getattr(hooks, attribute).name: attribute for attribute in Hooks.__slots__}
    return [by_name[name] for name in found]


def _hook(attribute: str, found: dict[str, object]) -> Hook:
    hook = getattr(Hooks(), attribute)
    types = found[hook.name]
    payload, answer = types if isinstance(types, tuple) else (types, None)
    assert isinstance(payload, type)
    return Hook(attribute, hook.name, type(hook).__name__.lower(), payload, answer)


def _answer(hook: Hook) -> str:
    if hook.answer is None:
        return "nothing"
    if hook.payload is StreamRequest:
        return "a stream of chunks"
    return type_words(hook.answer)


def _overview() -> Iterator[str]:
    yield "| hook | kind | payload | answer |\n| --- | --- | --- | --- |\n"
    for hook in hooks():
        payload = class_link(hook.payload)
        yield f"| [`{hook.name}`](#{hook.anchor}) | {hook.kind} | {payload} | {_answer(hook)} |\n"


def _section(hook: Hook) -> Iterator[str]:
    yield f"\n## `{hook.name}` {{ #{hook.anchor} }}\n\n"
    yield f"{says(hook.payload)}\n\n**Register** a {hook.kind} listener with "
    yield f"`hooks.{hook.attribute}`.\n\n"
    yield f"**Payload** {class_link(hook.payload)}\n\n{table(hook.payload)}"
    yield f"\n**Answer** {_answer(hook)}"
    yield f": {ANSWERS[hook.attribute]}.\n" if hook.attribute in ANSWERS else ".\n"
    for cls in hook.answers:
        yield f"\n### `{cls.__name__}` {{ #{cls.__name__.lower()} }}\n\n{says(cls)}\n\n{table(cls)}"


def page() -> str:
    """The page, as Markdown."""
    parts = [OPENING, *_overview()]
    for hook in hooks():
        parts += _section(hook)
    return "".join(parts)
