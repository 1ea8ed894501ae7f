"""`python -m tests.chaos`: try faults for some minutes, and print what was tried and found.

--minutes M      for so long; 10 unless told otherwise
--kind K         only faults of this kind; may be repeated
--at PLACE       in this one place, which plays a failure again
--kills N        at least so many kills at random, however long they take
--seed N         the order in which places are tried
"""

import argparse
import itertools
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import attrs

from tests.chaos.trials import KINDS, Outcome, Trial, facts

RANDOM = "kill-at-random"


@attrs.define
class Trying:
    """The trials of one kind: those to come, and what came of those before.

    Attributes:
        name: of the kind.
        places: those that are still to be tried, in the order in which they are.
        of: how many there are in all; None: there is no end of them.
        outcomes: what was found, place by place.
        spent_s: how long that took.
    """

    name: str
    places: Iterator[str]
    of: int | None
    outcomes: dict[str, Outcome] = attrs.field(factory=dict)
    spent_s: float = 0.0

    def once(self) -> bool:
        """Try one more place; False: there is none."""
        at = next(self.places, None)
        if at is None:
            return False
        began = time.monotonic()
        trial = Trial(self.name, at)
        outcome = self.outcomes[at] = trial.strike()
        self.spent_s += time.monotonic() - began
        for fault in outcome.faults:
            print(f"{self.name} at {at}: {fault}\n    {trial.replay}", flush=True)
        return True

    @property
    def failed(self) -> int:
        """How many places broke a promise."""
        return sum(bool(outcome.faults) for outcome in self.outcomes.values())


def main() -> int:
    """Read the arguments and do what they say."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--kind", action="append", choices=list(KINDS))
    parser.add_argument("--at")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    given = parser.parse_args()
    if given.at is not None:
        return _again(given.kind or [], given.at)
    print(f"seed {given.seed}", flush=True)
    tried = list(_tryings(given.kind or list(KINDS), given.seed))
    _try(tried, given.minutes * 60, given.kills)
    _report(tried)
    return 1 if any(one.failed for one in tried) else 0


def _again(kinds: Sequence[str], at: str) -> int:
    """Play single trials again."""
    failed = 0
    for kind in kinds:
        outcome = Trial(kind, at).strike()
        print(f"{kind} at {at}: appended {outcome.appended}, durable {outcome.durable}")
        print("\n".join(outcome.faults) or "all that is promised was kept")
        failed += bool(outcome.faults)
    return 1 if failed else 0


def _tryings(kinds: Iterable[str], seed: int) -> Iterator[Trying]:
    for name in kinds:
        why_not = KINDS[name].why_not()
        if why_not is not None:
            print(f"{name}: not tried: {why_not}", flush=True)
        elif name == RANDOM:
            yield Trying(name, (f"{seed + more}" for more in itertools.count()), None)
        else:
            places = list(KINDS[name].places())
            random.Random(seed).shuffle(places)
            yield Trying(name, iter(places), len(places))


def _try(tried: Sequence[Trying], budget_s: float, kills: int) -> None:
    """Try places for some time, so that each kind gets as much of it as it can use."""
    began = time.monotonic()
    open_ones = list(tried)
    while open_ones and time.monotonic() - began < budget_s:
        least = min(open_ones, key=lambda one: one.spent_s)
        if not least.once():
            open_ones.remove(least)
    for one in tried:
        while one.name == RANDOM and len(one.outcomes) < kills:
            one.once()


def _report(tried: Iterable[Trying]) -> None:
    print(f"\n{'fault':22}{'tried':>7}{'of':>8}{'failed':>8}{'seconds':>9}")
    for one in tried:
        of = one.of if one.of is not None else "any"
        print(f"{one.name:22}{len(one.outcomes):7}{of:>8}{one.failed:8}{one.spent_s:9.1f}")
    kills = [
        outcome for one in tried if one.name.startswith("kill") for outcome in one.outcomes.values()
    ]
    if kills:
        print(f"\n{len(kills)} kills, by the last event that was")
        _histogram("durable", (outcome.durable for outcome in kills))
        _histogram("appended", (outcome.appended for outcome in kills))
        _report_types(kills)


def _report_types(kills: Sequence[Outcome]) -> None:
    """How many kills fell behind each type of event: as the last durable, as the last in memory."""
    durable = Counter(outcome.durable.split(" ")[-1] for outcome in kills)
    appended = Counter(outcome.appended.split(" ")[-1] for outcome in kills)
    types = {fact.split(" ")[2] for fact in facts() if fact.startswith("appended")}
    print(f"\n{'kills behind an event':28}{'durable':>9}{'appended':>10}")
    for type in sorted(types):
        print(f"{type:28}{durable[type]:9}{appended[type]:10}")
    missed = sorted(type for type in types if not durable[type] + appended[type])
    print(f"no kill fell behind: {', '.join(missed) or 'none of them was missed'}")


def _histogram(title: str, events: Iterable[str]) -> None:
    counted = Counter(events)
    print(f"  {title}:")
    for event in sorted(counted, key=_seq):
        print(f"    {event:28}{counted[event]:5}")


def _seq(event: str) -> int:
    first = event.split(" ", maxsplit=1)[0]
    return int(first) if first.isdecimal() else -1


if __name__ == "__main__":
    sys.exit(main())
