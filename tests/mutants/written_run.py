"""The last run of each mutant, written down: which test caught it."""

import json
from collections.abc import Iterable

from tests.mutants.mutant import ROOT, Mutant
from tests.mutants.trying import Tried

FILE = ROOT / "tests" / "mutants" / "written_run.json"


def caught_by(mutants: Iterable[Mutant]) -> dict[str, str]:
    """The test that caught each mutant, by its name; of those that were tried as they are now."""
    runs = _read()
    return {
        mutant.name: runs[mutant.name][1]
        for mutant in mutants
        if runs.get(mutant.name, ("", ""))[0] == mutant.digest
    }


def write(runs: Iterable[Tried], known: Iterable[Mutant]) -> None:
    """Write down some runs; those of mutants that aren't known any more are dropped."""
    kept = _read()
    kept.update((run.mutant.name, (run.mutant.digest, run.caught_by)) for run in runs if run.caught)
    names = sorted({mutant.name for mutant in known} & kept.keys())
    lines = [f"{json.dumps(name)}: {json.dumps(kept[name])}" for name in names]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _read() -> dict[str, tuple[str, str]]:
    if not FILE.exists():
        return {}
    return {name: (run[0], run[1]) for name, run in json.loads(FILE.read_text("utf-8")).items()}
