"""The catalogue fits the code of today, breaks every rule, and what it holds is noticed.

`python -m tests.mutants` tries all of them; here as many are tried as TRIOLOOP_MUTANTS says.
"""

import ast
import os
import random
import re
import subprocess
import sys
from collections import Counter
from functools import cache

from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import ROOT
from tests.mutants.written_run import caught_by

TRIALS = int(os.environ.get("TRIOLOOP_MUTANTS", "1"))
SEED = int(os.environ.get("TRIOLOOP_SEED", str(random.SystemRandom().randrange(10**6))))

PAGES = [ROOT / "docs" / "contract.md", ROOT / "docs" / "contract-tools.md"]
HEADING = re.compile(r"^### ([A-Z]\d+): ", re.MULTILINE)


@cache
def _source(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


@cache
def _tests_of(file: str) -> frozenset[str]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    body = ast.parse(_source(file)).body
    return frozenset(node.name for node in body if isinstance(node, functions))


def _exists(test: str) -> bool:
    file, _, name = test.partition("::")
    return (ROOT / file).exists() and (not name or name in _tests_of(file))


def test_no_two_have_the_same_name() -> None:
    names = Counter(mutant.name for mutant in MUTANTS)
    assert [name for name, times in names.items() if times > 1] == []


def test_each_changes_one_place_of_a_file_that_still_compiles() -> None:
    for mutant in MUTANTS:
        source = _source(mutant.file)
        changed = mutant.applied(source)
        assert changed != source, mutant.name
        compile(changed, mutant.file, "exec")


def test_each_names_tests_that_exist() -> None:
    named = [(mutant.name, test) for mutant in MUTANTS for test in mutant.tests]
    assert [(name, test) for name, test in named if not _exists(test)] == []
    assert {name for name, _ in named} == {mutant.name for mutant in MUTANTS}


def test_every_rule_is_broken_by_some() -> None:
    rules = {rule for page in PAGES for rule in HEADING.findall(page.read_text(encoding="utf-8"))}
    assert {mutant.rule for mutant in MUTANTS} == rules


def test_each_was_caught_when_it_was_last_tried() -> None:
    caught = caught_by(MUTANTS)
    assert [mutant.name for mutant in MUTANTS if mutant.name not in caught] == [], (
        'try these with `python -m tests.mutants --write --only "NAME"`'
    )


def test_some_drawn_at_random_are_caught() -> None:
    """Of those that a failing test catches: one that hangs a test takes its whole time limit."""
    quick = sorted(name for name, by in caught_by(MUTANTS).items() if not by.startswith("hang"))
    drawn = random.Random(SEED).sample(quick, min(TRIALS, len(quick)))
    command = [sys.executable, "-m", "tests.mutants", "--verbose"]
    only = [word for name in drawn for word in ("--only", name)]
    run = subprocess.run([*command, *only], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"TRIOLOOP_SEED={SEED}\n{run.stdout}{run.stderr}"
