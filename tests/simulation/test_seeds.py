"""Random runs keep the contract, and go everywhere that the log's grammar lets them go.

`TRIOLOOP_SIMULATION_SEEDS` says how many; `python -m tests.simulation --seed N` replays one.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.coverage import DECLARED, Transition, told
from tests.simulation.drawing import drawn
from tests.simulation.scenes import scenes
from tests.simulation.seeds import Many
from tests.simulation.world import run_script
from trioloop import EventData
from trioloop.log.phases import Phase

ROOT = Path(__file__).parents[2]
SEEDS = int(os.environ.get("TRIOLOOP_SIMULATION_SEEDS", "300"))

UNREACHED: dict[Transition, str] = {
    (Phase.CUT, EventData, Phase.CUT): "behind a step that repair has cut the turn ends at once",
}
"""Transitions that no run comes to. Those of repair alone are seen as logs are cut and repaired."""

CANCELLED_IN = (Phase.IDLE, Phase.PREPARING, Phase.ADMITTED, Phase.FAILED, Phase.CALLING)
"""Where something is cancelled even in a few runs."""


@pytest.fixture(scope="module")
def many() -> Many:
    """All the seeds, run and judged."""
    ran = Many()
    for seed in range(SEEDS):
        ran.run_seed(seed)
    return ran


def test_no_seed_breaks_the_contract(many: Many) -> None:
    told_of = [f"{name}: {faults}" for name, faults in many.failed.items()]
    assert many.failed == {}, "\n".join(told_of)


def test_runs_are_cancelled_at_many_places(many: Many, capsys: pytest.CaptureFixture[str]) -> None:
    """The grammar's phase, the type of the last event, and who cancelled where in the driver."""
    triples = many.coverage.triples
    with capsys.disabled():
        print(
            f"\n{SEEDS} seeds, {many.events} events, {many.steps} task steps, "
            f"{len(triples)} (phase, event, cancel point) triples"
        )
    assert {phase for phase, _, _ in triples} >= {phase.name for phase in CANCELLED_IN}
    assert len(triples) >= min(SEEDS // 5, 100)


def test_every_policy_does_its_work_somewhere(many: Many) -> None:
    assert set(many.coverage.kinds) >= {
        "agent/delegated",
        "approval/answer",
        "compaction/summary",
        "limits/reached",
        "plan/mode",
        "pruning/pruned",
        "subagents/settled",
    }


def test_every_transition_of_the_grammar_is_exercised(many: Many) -> None:
    """By the seeds, and where chance comes too seldom by scenes that are swept step by step."""
    for number, script in enumerate(scenes()):
        many.run(f"scene {number}", script, twice=False)
    missing = DECLARED - set(many.coverage.transitions) - set(UNREACHED)
    assert told(missing) == []
    assert told(set(UNREACHED) & set(many.coverage.transitions)) == []
    assert many.failed == {}


def test_another_process_replays_a_seed() -> None:
    """Whatever its hashes are: the order of a set must not get into a log."""
    seed = 3
    code = (
        "from tests.simulation.drawing import drawn\n"
        "from tests.simulation.world import run_script\n"
        f"print(run_script(drawn({seed})).digest)"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hashes},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for hashes in ("1", "2")
    }
    assert digests == {run_script(drawn(seed)).digest}
