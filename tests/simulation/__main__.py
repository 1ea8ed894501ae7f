"""`python -m tests.simulation`: replay one seed, or run many.

--seed N      print the run of a seed and its logs; if it fails, the smallest script that does
--seeds N     run seeds 0 to N - 1, and print what they have been through
"""

import argparse
import pprint
import sys

import attrs

from tests.simulation.coverage import DECLARED, told
from tests.simulation.drawing import drawn
from tests.simulation.seeds import Many, judged, smallest
from tests.simulation.world import Ran
from trioloop.codec import encode_event


def main() -> int:
    """Read the arguments and do what they say."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    return _many(given.first, given.seeds) if given.seed is None else _one(given.seed)


def _one(seed: int) -> int:
    script = drawn(seed)
    ran, faults = judged(script)
    _print(ran)
    print(f"digest {ran.digest}, task order {ran.order}, {ran.steps} task steps")
    if not faults:
        return 0
    small = smallest(script)
    print("\n\nIt fails. The smallest script that does:\n")
    ran, faults = judged(small)
    _print(ran)
    print("\n".join(faults))
    return 1


def _print(ran: Ran) -> None:
    script = ran.world.script
    for field in attrs.fields(type(script)):
        value = getattr(script, field.name)
        if value != ():
            print(f"{field.name}: {pprint.pformat(value, width=100)}")
    print()
    print("\n".join(ran.world.transcript))
    for life in ran.world.lives:
        print()
        for event in life.agent.session.events():
            print(life.agent.name, encode_event(event).decode())


def _many(first: int, seeds: int) -> int:
    many = Many()
    for seed in range(first, first + seeds):
        many.run_seed(seed)
        faults = many.failed.get(f"seed {seed}")
        if faults:
            print(f"seed {seed}:", *faults, sep="\n    ")
    print(
        f"{seeds} seeds, {many.events} events, {many.steps} task steps, "
        f"{len(many.coverage.triples)} (phase, event, cancel point) triples, "
        f"{len(many.coverage.transitions)} of {len(DECLARED)} transitions; never:"
    )
    print("\n".join(told(DECLARED - set(many.coverage.transitions))))
    print(f"{len(many.failed)} failed: {list(many.failed)}")
    return bool(many.failed)


sys.exit(main())
