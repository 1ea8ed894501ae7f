"""A failing script shrinks to what its failure needs, and the checks see what is wrong."""

import pytest

from tests.simulation.checks import violations
from tests.simulation.drawing import drawn
from tests.simulation.script import Script
from tests.simulation.shrink import shrunk
from tests.simulation.world import run_script
from trioloop import Session
from trioloop.agent import step
from trioloop.agent.signal import TurnSignal
from trioloop.testing import ToolCall

SEEDS_MAX = 300


def calls(script: Script) -> int:
    """How many calls its models ask for."""
    return sum(
        isinstance(piece, ToolCall)
        for agent in script.agents
        for answer in agent.answers
        for piece in answer.pieces
    )


def test_only_what_a_failure_needs_is_left() -> None:
    script = next(one for one in map(drawn, range(100)) if calls(one) > 5)
    small = shrunk(script, lambda one: calls(one) >= 2)
    assert calls(small) == 2
    assert len(small.agents) <= 2
    assert (small.users, small.hooks, small.tools, small.sections) == ((), (), (), ())


async def _nothing(*_: object) -> None:
    pass


def _last_cause_stands(signal: TurnSignal, cause: str) -> None:
    signal.cause = cause
    signal.scope.cancel()


@pytest.mark.parametrize(
    ("target", "name", "mutant", "rule"),
    [
        (step, "_look", _nothing, "R8"),
        (Session, "gate", _nothing, "G8"),
        (TurnSignal, "cancel", _last_cause_stands, "I3"),
    ],
)
def test_a_loop_that_breaks_a_rule_is_found(
    target: object, name: str, mutant: object, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, name, mutant)
    for seed in range(SEEDS_MAX):
        ran = run_script(drawn(seed))
        if any(f"({rule})" in fault for fault in violations(ran.world)):
            return
    pytest.fail(f"{SEEDS_MAX} seeds, and none saw that {name} is another one")
