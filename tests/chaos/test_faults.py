"""Wherever a fault strikes `trioloop run`, nothing acknowledged is lost and no effect comes twice.

`TRIOLOOP_CHAOS_TRIALS` says in how many places each kind of fault is tried, `TRIOLOOP_SEED` in
which; a few by chance, unless told otherwise. `python -m tests.chaos` tries them by the minute.
"""

import os
import random
from itertools import count, islice

import pytest

from tests.chaos.trials import KINDS, Trial, facts

TRIALS = os.environ.get("TRIOLOOP_CHAOS_TRIALS")
SEED = int(os.environ.get("TRIOLOOP_SEED", str(random.SystemRandom().randrange(10**6))))
FEW = {"kill-at-fact": 2, "kill-at-random": 1, "cut-session": 6}
INSIDE = {"turn/start", "system/message", "user/message", "request/header"}  # no append ends there
MANY = ("flip", "flip-log", "zero", "zero-log", "cut", "cut-log")  # no process is started for those


def some_places(kind: str) -> list[str]:
    """The places in which a kind of fault is tried here."""
    if kind == "kill-at-random":
        return [str(seed) for seed in islice(count(SEED), int(TRIALS or FEW[kind]))]
    places = list(KINDS[kind].places())
    trials = int(TRIALS or FEW.get(kind, 120 if kind in MANY else 1))
    return random.Random(SEED).sample(places, min(trials, len(places)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_breaks_no_promise_wherever_it_strikes(kind: str) -> None:
    why_not = KINDS[kind].why_not()
    if why_not is not None:
        pytest.skip(why_not)
    for at in some_places(kind):
        trial = Trial(kind, at)
        outcome = trial.strike()
        assert not outcome.faults, f"{outcome}; again: {trial.replay}"


EVENTS = {
    "session/opened",
    "agent/inbox/spliced",
    "turn/start",
    "step/start",
    "system/message",
    "user/message",
    "request/header",
    "request/context",
    "assistant/message",
    "tool/call",
    "tool/result",
    "step/end",
    "turn/end",
}


def appended() -> list[tuple[str, str]]:
    """The events of a whole run: each seq with its type."""
    return [(seq, type) for fact in facts() for kind, seq, type in [words(fact)] if kind]


def words(fact: str) -> tuple[bool, str, str]:
    """Whether a fact is an append, of which seq, and of which type."""
    kind, seq, type = (*fact.split(" "), "")[:3]
    return kind == "appended", seq, type


def test_there_is_a_place_behind_each_event_of_a_two_step_turn() -> None:
    types = [type for _, type in appended()]
    assert types.count("step/start") == 2
    assert set(types) == EVENTS
    assert {"effect ledger/call_1_1_1 begins", "effect ledger/call_1_1_1 done"} < set(facts())


@pytest.mark.parametrize("type", sorted(EVENTS))
def test_a_kill_behind_each_type_of_event_loses_nothing(type: str) -> None:
    """The last event of its type: durable, where an append ends with it, else in memory."""
    seq = [seq for seq, found in appended() if found == type][-1]
    kind, fact = ("kill-at-fact", "appended") if type in INSIDE else ("kill-at-commit", "committed")
    trial = Trial(kind, f"{fact} {seq} {type}")
    outcome = trial.strike()
    assert not outcome.faults, f"{outcome}; again: {trial.replay}"
    assert (outcome.appended if type in INSIDE else outcome.durable) == f"{seq} {type}"
