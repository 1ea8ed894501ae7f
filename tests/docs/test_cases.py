"""The page of cases names tests that exist, one line for each case."""

import re
from pathlib import Path

import pytest

from tests.docs.test_contract import TEST, known_tests

PAGE = Path(__file__).resolve().parents[2] / "docs" / "decisions" / "cases.md"
ROW = re.compile(r"^\| (?P<id>[A-Z0-9]+(?:-\d+)?) \|(?P<rest>.*)\|$", re.MULTILINE)
ROWS = {row["id"]: row["rest"] for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))}
REASONS = ("not possible", "elsewhere", "there is", "never mixed")


def test_each_case_has_a_line_of_its_own() -> None:
    lines = ROW.findall(PAGE.read_text(encoding="utf-8"))
    assert len(lines) == len(ROWS)
    assert len(ROWS) > 250


@pytest.mark.parametrize("case", ROWS)
def test_each_case_names_a_test_that_exists_or_says_why_there_is_none(case: str) -> None:
    named = TEST.findall(ROWS[case])
    assert [f"{file}::{name}" for file, name in named if name not in known_tests(file)] == []
    assert named != [] or any(reason in ROWS[case] for reason in REASONS)
