"""`python -m tests.mutants`: put one fault after the other into a copy, and see who notices.

--only X      mutants whose rule is X, or whose name has X in it; may be given again
--sample N    N of them, drawn by --seed
--minutes M   begin no further one after M minutes
--write       write down who noticed, for the page in the docs
--verbose     show what pytest printed of those that nobody noticed
"""

import argparse
import random
import sys
import time
from collections.abc import Sequence

from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.trying import Tried, copied_checkout, tried
from tests.mutants.written_run import write


def main() -> int:
    """Read the arguments and do what they say."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if _is_chosen(mutant, given.only)]
    if given.sample is not None:
        chosen = random.Random(given.seed).sample(chosen, min(given.sample, len(chosen)))
    runs = _try_all(chosen, given.minutes * 60, verbose=given.verbose)
    if given.write:
        write(runs, MUTANTS)
    survived = sum(not run.caught for run in runs)
    print(f"tried {len(runs)} of {len(chosen)}: {len(runs) - survived} caught, {survived} not")
    return 1 if survived else 0


def _is_chosen(mutant: Mutant, only: Sequence[str]) -> bool:
    return not only or any(word == mutant.rule or word in mutant.name for word in only)


def _try_all(chosen: Sequence[Mutant], seconds: float, *, verbose: bool) -> list[Tried]:
    runs: list[Tried] = []
    began = time.monotonic()
    with copied_checkout() as copy:
        for mutant in chosen:
            if time.monotonic() - began > seconds:
                break
            run = tried(mutant, copy)
            print(f"{mutant.name} | {mutant.rule} | {run.caught_by}", flush=True)
            if verbose and not run.caught:
                print(run.output)
            runs.append(run)
    return runs


if __name__ == "__main__":
    sys.exit(main())
