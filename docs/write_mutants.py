"""Write the page on mutants from their catalogue and the last run of each.

    python -m docs.write_mutants

`python -m tests.mutants --write` tries them and writes down who noticed. A test compares the page
with what it would be now.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.written_run import caught_by

PAGE = Path(__file__).parent / "decisions" / "mutants.md"

OPENING = """\
# Mutants

**Decided.** A rule counts as tested when breaking it makes a test fail. `tests/mutants/` keeps a
catalogue of *mutants*: small faults that somebody might make, each one place of one file, with the
rule that it breaks and the test that notices. A test holds that the catalogue fits today's code and
that each mutant was caught when it was last tried as it stands, and tries one drawn at random in
each run of CI.

```console
$ python -m tests.mutants                     # all of them, each some seconds
$ python -m tests.mutants --only R8           # those of a rule, or with a word in their name
$ python -m tests.mutants --sample 20 --seed 7 --minutes 5
$ python -m tests.mutants --write && python -m docs.write_mutants    # write down who noticed
```

Each is put into a copy of the checkout, and its tests run there in a process of their own.
A run that takes more than three minutes counts as noticed, as "hang in" the test that was running:
that is how most faults of a scheduler show.

**Why.** Coverage tells which lines ran, not whether anybody would notice. Trying mutants found
places that no test held: a last look that could go, a cause that the host should have, usage that
counted once. Each became a test of the behaviour.

**What it costs.** A mutant names the text that it replaces, so whoever changes that line changes
the mutant, and tries it again.

## By a generator

The catalogue is by hand. On floor 2 mutmut 3.8 made 5,323 mutants of `log`, `machine`, `stream`,
`schema`, `codec` and `chunks`, against the tests of those rooms alone, with small budgets for
properties. 1,174 of them were tried, those with the quickest tests first:

| came to | mutants |
| --- | --- |
| caught | 828, 4 of them by a run that didn't end |
| in functions that only tests of higher floors call: delays of retries, closing of turns | 110 |
| survived: other words in a message, or another part of an error that nobody compares | 99 |
| survived: anything else | 137 |

Of the last, 9 stand in code that runs as it is imported, which mutmut can't switch, and 29 in
decisions of a turn that the tests of agents hold. 18 can't be told apart: another negative number
for "none", `None` for `False`, `strict=` where lengths are equal already, another type for `cast`.
39 are in `schema`, mostly about the words for wrong arguments, which its tests read by their gist.
Three groups were gaps, and are tests now: what a replay shows of a failed attempt, what an
interrupted answer costs and whose it is, what a replacement keeps. 4,149 weren't tried.

## Dropped

A mutant that nothing can tell apart stands in no catalogue. One was dropped for that reason: *a
retry turn outranks a cancel* (R8) judged a turn that is to be repeated before it looked whether the
turn is cancelled. A step that asks for a retry turn waits for its delay last, and a wait in a
cancelled turn ends in a `Cancelled`, however long it is, so that nothing is left to be judged.

## The catalogue

"""

LETTERS = {
    "S": "The four states",
    "I": "Sending and the inbox",
    "P": "Paths of a turn",
    "R": "The driver",
    "H": "Hooks and notifications",
    "E": "Durable events",
    "D": "Durability",
    "G": "Guarantees",
    "T": "Tools",
}


def page() -> str:
    """The whole page."""
    caught = caught_by(MUTANTS)
    parts = [OPENING, f"{len(MUTANTS)} mutants.\n\n"]
    for letter, title in LETTERS.items():
        of_letter = [mutant for mutant in MUTANTS if mutant.rule.startswith(letter)]
        of_letter.sort(key=lambda mutant: (int(mutant.rule[1:]), mutant.file))
        parts += [f"### {title}\n\n", *_table(of_letter, caught), "\n"]
    return "".join(parts).rstrip("\n") + "\n"


def _table(mutants: Sequence[Mutant], caught: dict[str, str]) -> Iterator[str]:
    yield "| rule | what is wrong | in | caught by |\n| --- | --- | --- | --- |\n"
    for mutant in mutants:
        where = mutant.file.removeprefix("trioloop/")
        by = _test(caught.get(mutant.name, "not tried"))
        yield f"| {mutant.rule} | {mutant.name} | `{where}` | {by} |\n"


def _test(caught: str) -> str:
    """A test in the width of a table: its folder is that of what it tests."""
    how, _, test = caught.rpartition("tests/")
    file, _, name = test.partition("::")
    told = f"`{file}`: {name.removeprefix('test_').replace('_', ' ')}" if name else caught
    return f"{how}{told}"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
