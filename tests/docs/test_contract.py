"""The contract's pages have every rule that is cited, and name tests that exist for each."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "docs" / "contract.md", ROOT / "docs" / "contract-tools.md"]
LAST = {"S": 4, "I": 7, "P": 22, "R": 10, "H": 6, "E": 6, "D": 6, "G": 12, "T": 14}
RULES = [f"{letter}{number}" for letter, last in LAST.items() for number in range(1, last + 1)]

HEADING = re.compile(r"^### ([A-Z]\d+): .*\{ #([a-z]\d+) \}$", re.MULTILINE)
CITED = re.compile(r"(?<![\w/.-])([SIPRHEDGT][1-9]\d?)(?![\w:])")
SECTION = re.compile(r"(?<!\.md )[Ss]ection (\d)(?! of tools)")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def _sections() -> dict[str, str]:
    """The text of each rule, by its number."""
    found: dict[str, str] = {}
    for page in PAGES:
        parts = HEADING.split(page.read_text(encoding="utf-8"))
        found.update(zip(parts[1::3], parts[3::3], strict=True))
    return found


def _sources() -> Iterator[Path]:
    for folder in ("trioloop", "tests"):
        yield from sorted((ROOT / folder).rglob("*.py"))


@cache
def known_tests(file: str) -> frozenset[str]:
    """The names of the tests in a file; none where there is no such file."""
    path = ROOT / file
    if not path.exists():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in tree.body if isinstance(node, functions))


def test_the_pages_have_every_rule_once_under_an_anchor_of_its_own() -> None:
    headings = [
        heading for page in PAGES for heading in HEADING.findall(page.read_text(encoding="utf-8"))
    ]
    assert [rule for rule, _ in headings] == RULES
    assert [anchor for _, anchor in headings] == [rule.lower() for rule in RULES]


def test_every_rule_that_is_cited_is_on_a_page() -> None:
    unknown = {
        f"{path.relative_to(ROOT)}: {rule}"
        for path in _sources()
        for rule in CITED.findall(path.read_text(encoding="utf-8"))
        if rule not in RULES
    }
    assert unknown == set()


def test_every_section_that_is_cited_is_on_the_page() -> None:
    page = PAGES[0].read_text(encoding="utf-8")
    anchors = set(re.findall(r"\{ #section-(\d) \}", page))
    cited = {
        section
        for path in _sources()
        for section in SECTION.findall(path.read_text(encoding="utf-8"))
    }
    assert cited <= anchors


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_names_tests_that_exist(rule: str) -> None:
    named = TEST.findall(_sections()[rule])
    assert named != []
    assert [f"{file}::{name}" for file, name in named if name not in known_tests(file)] == []
