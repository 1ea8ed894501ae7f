"""Fixed scripts with something at every task step of a turn, for windows that chance seldom hits.

A section changes before each step, the model is told of it in the history, its first attempt
fails, and a compaction takes the change out again: so the retry is admitted anew, in its own step.
"""

from collections.abc import Iterator

import attrs

from tests.simulation.script import (
    AgentScript,
    Deed,
    DeedKind,
    HookScript,
    ObserverScript,
    Script,
    SectionScript,
    Settings,
    ToolScript,
    UserAct,
    UserScript,
)
from trioloop.testing import Answer, Fail, Text, ToolCall

STEPS = 360  # of the turns that are swept
DEEDS: tuple[DeedKind, ...] = ("cancel", "note", "inject", "prune", "compact")
ALWAYS = tuple(range(9))

_FAILS = Answer((Text("half"), Fail("SERVER")))
_CALLS = Answer((Text("I look"), ToolCall("look"), ToolCall("nothing")))
_SAYS = Answer((Text("some words"),))
_SECOND_TURN = (_FAILS, _CALLS, _CALLS, _FAILS, _FAILS, _SAYS)
_THIRD_TURN = (_FAILS, _SAYS)
_SENDS = UserAct(0, Deed("followup"))
_WAITS = UserAct(0, "idle", patience_s=50)
_ACTS = (_SENDS, _WAITS, _SENDS, _WAITS)


def scenes() -> Iterator[Script]:
    """All of them."""
    for steps in range(1, STEPS, 6):
        yield _scene(Deed("cancel"), steps)
        yield _scene(Deed("cancel"), steps, "prune")
    for deed in DEEDS[1:]:
        for steps in range(1, STEPS, 24):
            yield _scene(Deed(deed), steps)
    for steps in range(1, STEPS, 12):
        for deed in DEEDS[:2]:
            yield _with_request(_scene(Deed(deed), steps), "temperature")
    for steps in range(40, STEPS, 40):
        cancelled = _scene(Deed("cancel"), steps)
        yield from _told_of_everything(cancelled)
        yield from _changing(_scene(Deed("cancel"), steps, "prune"))
        yield from _changing(cancelled)
    acts = (*_ACTS, UserAct(0, Deed("prune")))
    yield attrs.evolve(_scene(Deed("note"), 1, "note"), users=(UserScript(acts),))


def _scene(deed: Deed, steps: int, repairs: DeedKind = "compact") -> Script:
    point = UserAct(0, deed, after_steps=steps)
    return Script(
        seed=steps,
        agents=(AgentScript((_SAYS, *_SECOND_TURN, *_THIRD_TURN)),),
        users=(UserScript((_SENDS, _WAITS, point, *_ACTS)),),
        tools=(ToolScript("look", "read-only"),),
        hooks=(HookScript("request_error", "retry", ALWAYS, deed=Deed(repairs)),),
        sections=(SectionScript("p", changes_every=1), SectionScript("q", changes_every=2)),
        settings=_settings(),
    )


def _settings(window_grows_every: int = 0) -> Settings:
    return Settings(
        in_history=True,
        window_grows_every=window_grows_every,
        chunk_chars=4,
        read_delay_s=0.1,
    )


def _told_of_everything(script: Script) -> Iterator[Script]:
    """Something happens behind each event of one kind."""
    for watches in ("assistant/attempt", "assistant/message", "step/end", "request/header"):
        for kind in DEEDS[1:3]:
            observer = ObserverScript(watches, 1, 99, Deed(kind))
            yield attrs.evolve(script, observers=(observer,))


def _changing(script: Script) -> Iterator[Script]:
    """Each attempt has other settings, or another model, or its model another window."""
    yield _with_request(script, "temperature")
    yield _with_request(script, "switch")
    yield attrs.evolve(script, settings=_settings(window_grows_every=1))


def _with_request(script: Script, does: str) -> Script:
    return attrs.evolve(script, hooks=(*script.hooks, HookScript("request", does, ALWAYS)))
