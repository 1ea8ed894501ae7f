"""The pages of cases name tests that exist, one line for each case."""

import re
from pathlib import Path

import pytest

from tests.docs.test_contract import TEST, known_tests

DECISIONS = Path(__file__).resolve().parents[2] / "docs" / "decisions"
PAGES = {
    "cases.md": 250,
    "tool-cases.md": 60,
    "compaction-cases.md": 17,
    "policy-cases.md": 10,
    "model-cases.md": 29,
}
ROW = re.compile(r"^\| (?P<id>[A-Z0-9]+(?:-\d+)?) \|(?P<rest>.*)\|$", re.MULTILINE)
LINES = {name: ROW.findall((DECISIONS / name).read_text(encoding="utf-8")) for name in PAGES}
ROWS = {f"{name} {id}": rest for name, lines in LINES.items() for id, rest in lines}
REASONS = ("not possible", "elsewhere", "there is", "there are", "never mixed", "can't be", "yet")


@pytest.mark.parametrize("page", PAGES)
def test_each_case_has_a_line_of_its_own(page: str) -> None:
    ids = [id for id, _ in LINES[page]]
    assert len(ids) == len(set(ids))
    assert len(ids) > PAGES[page]


@pytest.mark.parametrize("case", ROWS)
def test_each_case_names_a_test_that_exists_or_says_why_there_is_none(case: str) -> None:
    named = TEST.findall(ROWS[case])
    assert [f"{file}::{name}" for file, name in named if name not in known_tests(file)] == []
    assert named != [] or any(reason in ROWS[case] for reason in REASONS)
