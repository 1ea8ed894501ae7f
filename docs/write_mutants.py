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

Each is put into a copy of what git would commit, and its tests run there in a process of their own.
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

## Not noticed yet

Tried and noticed by none of the tests that were named for them, so that each still wants a test,
better tests to name, or a proof that it can't be told apart: a call speaks behind its end (T11); a
call that became a barrier keeps its old mode (T1); a call that was cut starts (P14); a cancelled
ask cancels a turn that isn't its own (I6); a cancelled ask drops what others sent (I6); a cancelled
call lets its nested calls run (T12); a failed scheduler leaves calls without a result (P21); a
failure of the store in a call is the scheduler's (D3); a full transaction has no limit (D2); a
later boundary claims next-turn (R7); a message is restored anywhere (R5); a read-only body waits
for the gate (D2); a result that can't be encoded ends the batch (G12); a retry turn outranks a
cancel (R8); a store is not closed under a cancelled host (R9); a stray cancel aborts its call (T9);
a stray cancel of a body goes up (T9); a stream is read on behind its finish (P1); a thread that
ends late leaves a token too many (T13); a truncated stream hides a swallowed cancel (R8); a turn
ends well though results are owed (R7); a turn is restored twice (R5); a turn that went well is
repeated (R2); a wire id may come twice in a history (G4); a withheld result adds its contexts (T9);
an abandoned thread's token is not replaced (T13); an admitted message is restored (R5); an answer
of a listener is the inner one's (H3); an append is two transactions (P1); an application's
exception comes out in our own layers (R10); any turn's messages are restored (R5); arguments have
no limit (G12); guards see the arguments before policy changed them (T4); no last look before the
stream is entered (P8); no last look behind a pre-policy (R8); no last look behind the wait for a
place (T9); no last look between frames (P9); rows of a failed commit are lost (D3); the end of a
stream is told before its event (H5); the history is rewritten under a request (G2); the last cause
of a stop counts (T12); the last outcome stands (I6); the policy's contexts come before the body's
(T7); the usage of a cancelled attempt is lost (E3).

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
