"""The smallest script that still fails: whole agents, users, hooks first, then single acts."""

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from tests.simulation.script import Script
from trioloop.testing import Answer


def shrunk(script: Script, fails: Callable[[Script], bool], *, runs_max: int = 3000) -> Script:
    """Delete from a failing script what isn't needed for its failure.

    Args:
        script: one that fails.
        fails: runs a script, and tells whether it fails in the same way.
        runs_max: when to be content.
    """
    runs = 0
    smaller = True
    while smaller:
        smaller = False
        for candidate in variants(script):
            runs += 1
            if runs > runs_max:
                return script
            if fails(candidate):
                script, smaller = candidate, True
                break
    return script


def variants(script: Script) -> Iterator[Script]:
    """Scripts that are a little smaller, those that lack most first."""
    yield from _lacking(script, keeps_one=("agents",))
    yield from _simpler(script)


def _lacking(part: Any, keeps_one: tuple[str, ...] = ()) -> Iterator[Any]:  # Any: part of a script
    """The part without a half of one of its lists, without one item, with a smaller item."""
    lists = [(field.name, getattr(part, field.name)) for field in attrs.fields(type(part))]
    lists = [(name, items) for name, items in lists if isinstance(items, tuple)]
    for name, items in lists:
        least = 1 if name in keeps_one else 0
        if len(items) > 1:
            yield attrs.evolve(part, **{name: items[: len(items) // 2]})
            yield attrs.evolve(part, **{name: items[len(items) // 2 :]})
        for index in range(len(items) if len(items) > least else 0):
            yield attrs.evolve(part, **{name: items[:index] + items[index + 1 :]})
    for name, items in lists:
        for index, item in enumerate(items):
            if _is_part(item):
                for smaller in _lacking(item):
                    new = (*items[:index], smaller, *items[index + 1 :])
                    yield attrs.evolve(part, **{name: new})


def _simpler(part: Any) -> Iterator[Any]:  # Any: part of a script
    """The part with one of its values as it is by default, or zero."""
    for field in attrs.fields(type(part)):
        value = getattr(part, field.name)
        if isinstance(value, tuple):
            for index, item in enumerate(value):
                if _is_part(item):
                    for simpler in _simpler(item):
                        new = (*value[:index], simpler, *value[index + 1 :])
                        yield attrs.evolve(part, **{field.name: new})
        elif _is_part(value):
            for simpler in _simpler(value):
                yield attrs.evolve(part, **{field.name: simpler})
        elif field.name != "seed":
            yield from _plainer(part, field.name, field.default)


def _plainer(part: Any, name: str, default: object) -> Iterator[Any]:  # Any: part of a script
    value = getattr(part, name)
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        default = 0 if default is attrs.NOTHING else default
    if default is not attrs.NOTHING and value != default and _is_plain(default):
        yield attrs.evolve(part, **{name: default})


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)


def _is_part(value: object) -> bool:
    own = type(value).__module__.startswith("tests.simulation")
    return attrs.has(type(value)) and (own or isinstance(value, Answer))
