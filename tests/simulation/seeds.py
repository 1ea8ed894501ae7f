"""Runs of seeds: run twice, judged, and if need be shrunk."""

import traceback
from collections.abc import Iterable

import attrs

from tests.simulation.checks import violations
from tests.simulation.coverage import Coverage
from tests.simulation.drawing import drawn
from tests.simulation.script import Script
from tests.simulation.shrink import shrunk
from tests.simulation.world import Ran, run_script


def judged(script: Script, *, twice: bool = True) -> tuple[Ran, list[str]]:
    """Run a script, and once more to see the same log: the first run, and what broke a promise."""
    ran = run_script(script)
    faults = violations(ran.world)
    if ran.error is not None:
        faults.insert(0, "".join(traceback.format_exception(ran.error)))
    again = run_script(script) if twice else ran
    if again.digest != ran.digest:
        faults.append(f"the same seed gave two logs: {_difference(ran, again)} (G10)")
    return ran, faults


def _difference(one: Ran, other: Ran) -> str:
    lines = zip(one.world.transcript, other.world.transcript, strict=False)
    return next((f"{mine} / {theirs}" for mine, theirs in lines if mine != theirs), "in an event")


def smallest(script: Script) -> Script:
    """The smallest script that breaks what this one breaks."""
    rules = _rules(judged(script)[1])
    return shrunk(script, lambda candidate: bool(rules & _rules(judged(candidate)[1])))


def _rules(faults: Iterable[str]) -> set[str]:
    """What kind of promises were broken, whatever their numbers."""
    return {"".join(sign for sign in fault[-40:] if not sign.isdigit()) for fault in faults}


@attrs.define
class Many:
    """What many seeds came to.

    Attributes:
        coverage: what they have seen.
        failed: the faults of each script that has any, by its name.
        events: that they logged.
        steps: of tasks.
    """

    coverage: Coverage = attrs.field(factory=Coverage)
    failed: dict[str, list[str]] = attrs.field(factory=dict)
    events: int = 0
    steps: int = 0

    def run_seed(self, seed: int) -> None:
        """Run the script of one more seed."""
        self.run(f"seed {seed}", drawn(seed))

    def run(self, name: str, script: Script, *, twice: bool = True) -> None:
        """Run one more script."""
        ran, faults = judged(script, twice=twice)
        self.coverage.add(ran.world.coverage)
        self.steps += ran.steps
        self.events += sum(life.agent.session.seq + 1 for life in ran.world.lives)
        if faults:
            self.failed[name] = faults
