"""Options that can't be used are refused where they are given, by name and value."""

import math
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

import pytest

from trioloop import InvalidInputError, Runtime
from trioloop.plugins import (
    Approvals,
    Budget,
    Delegate,
    Price,
    Rule,
    approval,
    compaction,
    limits,
    plan_mode,
    pruning,
    retry,
    spill,
    subagents,
)
from trioloop.testing import ScriptedModel, open_test_runtime

Opening: TypeAlias = Callable[[Runtime], AbstractAsyncContextManager[object]]

SOME: Any = 3  # of no class that any option has
NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Budget(steps=SOME * "x"), "steps must be a number greater than 0, not 'xxx'"),
        (lambda: Budget(seconds=True), "seconds must be a number greater than 0, not True"),
        (lambda: Budget(money=NAN), "money must be a number greater than 0, not nan"),
        (lambda: Price(input=-1, output=1), "input must be a number, 0 or more, not -1"),
        (lambda: Price(input=1, output=INF), "output must be a number, 0 or more, not inf"),
        (
            lambda: Price(input=1, output=1, cached_input=NAN),
            "cached_input must be a number, 0 or more, not nan",
        ),
        (lambda: Approvals(timeout_s=0), "timeout_s must be a number greater than 0, not 0"),
        (lambda: Approvals(timeout_s=INF), "timeout_s must be finite, not inf: None waits"),
        (lambda: Rule(tool=SOME), "tool must be text, not 3"),
        (lambda: Rule(question=" "), "question must be text, not ' '"),
        (lambda: Rule(effects=SOME), "effects must be some of read-only, idempotent, once"),
        (lambda: Rule(when=SOME), "when must be a function, not 3"),
        (lambda: Rule(alike=SOME), "alike must be a function, not 3"),
        (lambda: Delegate(timeout_s=-1), "timeout_s must be a number greater than 0, not -1"),
        (lambda: Delegate(description=""), "description must be text, not ''"),
        (lambda: Delegate(system=SOME), "system must be text, not 3"),
        (
            lambda: Delegate(tools=SOME),
            "tools must be a list of tools, as @tool makes them, not 3",
        ),
        (
            lambda: Delegate(tools=[SOME]),
            "tools must be a list of tools, as @tool makes them, not [3]",
        ),
    ],
)
def test_what_a_class_can_not_be_made_of_is_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        make()
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("opening", "words"),
    [
        (lambda it: compaction(it, at=NAN), "at must be a part of the window, 0 to 1, not nan"),
        (lambda it: compaction(it, keep=-0.1), "keep must be a part of the window"),
        (lambda it: compaction(it, window_tokens=0), "window_tokens must be a number greater"),
        (lambda it: compaction(it, recoveries_max=-1), "recoveries_max must be a whole number, 0"),
        (lambda it: compaction(it, instructions=""), "instructions must be text, not ''"),
        (lambda it: pruning(it, at=SOME), "at must be a part of the window"),
        (lambda it: pruning(it, gain=2), "gain must be a part of the window"),
        (lambda it: pruning(it, window_tokens=-5), "window_tokens must be a number greater than"),
        (lambda it: pruning(it, result_chars_max=99), "result_chars_max must be a whole number, 1"),
        (lambda it: limits(it, turn=SOME), "turn must be made with Budget(...), not 3"),
        (lambda it: limits(it, prices=SOME), "prices must be a dict of names and Price(...), not"),
        (
            lambda it: limits(it, prices={"m": SOME}),
            "the price of 'm' must be made with Price(",
        ),
        (lambda it: limits(it, hand_over_s=-1), "hand_over_s must be a number, 0 or more, not -1"),
        (lambda it: plan_mode(it, guidance=SOME), "guidance must be text, not 3"),
        (lambda it: approval(it, SOME), "a rule must be made with Rule(...), not 3"),
        (lambda it: approval(it, approvals=SOME), "approvals must be made with Approvals(...)"),
        (lambda it: spill(it, only=SOME), "only must be a function, not 3"),
        (lambda it: subagents(it, depth_max=0), "depth_max must be a whole number, 1 or more, not"),
        (lambda it: subagents(it, SOME), "a kind of child must be made with Delegate(...), not 3"),
        (lambda it: retry(it, policy=SOME), "policy must be made with RetryPolicy(...), not 3"),
        (lambda it: retry(it, random=SOME), "random must be a function, not 3"),
    ],
)
async def test_what_a_policy_can_not_be_opened_with_is_refused(
    opening: Opening, words: str
) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        with pytest.raises(InvalidInputError) as caught:
            async with opening(runtime):
                raise AssertionError("it was opened")
        assert words in str(caught.value)
