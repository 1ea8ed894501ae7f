"""Fail when a test was skipped that `tests/allowed_skips.txt` doesn't allow.

    python .ci/skips.py PYTEST_OUTPUT ALLOWED

Reads the short summary that `pytest -rsx --no-fold-skipped` prints, and prints each skipped or
expectedly failing test with its reason. Each line of the allowed file is `TEST ID - REASON`, as
pytest prints it; `*` stands for any text, and lines that begin with `#` are comments.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

SUMMARY = re.compile(
    r"^(?:SKIPPED|XFAIL) (?!\[)(?P<test>.+?) - (?:Skipped: )?(?P<reason>.*)$", re.MULTILINE
)
FOLDED = re.compile(r"^SKIPPED \[\d+\].*$", re.MULTILINE)
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


class Skip(NamedTuple):
    """A test that didn't run, and why."""

    test: str
    reason: str

    def __str__(self) -> str:
        return f"{self.test} - {self.reason}"


def skips_of(output: str) -> list[Skip]:
    """The tests that a run of pytest skipped.

    Raises:
        SystemExit: the summary is folded, so it doesn't name each test.
    """
    plain = ESCAPES.sub("", output)
    folded = FOLDED.search(plain)
    if folded:
        raise SystemExit(f"run pytest with --no-fold-skipped: {folded[0]!r} names no test")
    return [Skip(found["test"], found["reason"]) for found in SUMMARY.finditer(plain)]


def allowed(skip: Skip, lines: Sequence[str]) -> bool:
    """Whether one of the lines allows it."""
    return any(_pattern(line).fullmatch(str(skip)) for line in lines)


def _pattern(line: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in line.split("*")))


def main(output: Path, allowed_file: Path) -> int:
    """Print the skips and those that nobody allowed; the answer is the exit code."""
    lines = [
        line.strip()
        for line in allowed_file.read_text(encoding="utf-8").splitlines()
        if line.strip() and not line.startswith("#")
    ]
    skips = skips_of(output.read_text(encoding="utf-8", errors="replace"))
    refused = [skip for skip in skips if not allowed(skip, lines)]
    print(f"tests that were skipped: {len(skips)}")
    for skip in skips:
        print(f"  {'NOT ALLOWED: ' if skip in refused else ''}{skip}")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
