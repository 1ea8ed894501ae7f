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
from tests.simulation.seeds import Many
from tests.simulation.world import run_script
from trioloop import EventData
from trioloop.events import NestedCallStarted, NestedResultLogged
from trioloop.log.phases import Phase

ROOT = Path(__file__).parents[2]
SEEDS = int(os.environ.get("TRIOLOOP_SIMULATION_SEEDS", "500"))
SEEDS_MORE = 1500

UNREACHED: dict[Transition, str] = {
    (Phase.CALLING, NestedCallStarted, Phase.CALLING): "only a program that calls tools",
    (Phase.CALLING, NestedResultLogged, Phase.CALLING): "only a program that calls tools",
    (Phase.CUT, EventData, Phase.CUT): "behind a step that repair has cut the turn ends at once",
}
"""Transitions that no run comes to. Those of repair alone are seen as logs are cut and repaired."""


@pytest.fixture(scope="module")
def many() -> Many:
    """All the seeds, run and judged."""
    ran = Many()
    for seed in range(SEEDS):
        ran.run(seed)
    print(f"{SEEDS} seeds, {ran.events} events, {ran.steps} task steps")
    return ran


def test_no_seed_breaks_the_contract(many: Many) -> None:
    told_of = [f"seed {seed}: {faults}" for seed, faults in many.failed.items()]
    assert many.failed == {}, "\n".join(told_of)


def test_runs_are_cancelled_at_many_places(many: Many) -> None:
    """The grammar's phase, the type of the last event, and who cancelled where in the driver."""
    triples = many.coverage.triples
    print(f"{len(triples)} triples of phase, event and cancel point")
    assert {phase for phase, _, _ in triples} >= {
        one.name for one in Phase if one not in (Phase.NEW, Phase.CLAIMING, Phase.CUT)
    }


def test_every_transition_of_the_grammar_is_exercised(many: Many) -> None:
    """Some come up seldom: a few more seeds may be needed, and are judged like the others."""
    more = 0
    while _missing(many) and more < SEEDS_MORE:
        many.run(SEEDS + more)
        more += 1
    print(f"every transition after {more} more seeds")
    assert told(_missing(many)) == []
    assert told(set(UNREACHED) & set(many.coverage.transitions)) == []
    assert many.failed == {}


def _missing(many: Many) -> set[Transition]:
    return set(DECLARED - set(many.coverage.transitions) - set(UNREACHED))


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
