"""Every Python block in the README and the docs runs, page by page, and prints what it says.

The blocks of a page run in order and share their names, as a reader types them. A `text` block
directly after one is what it prints; `...` in it stands for anything.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^```python[^\n]*\n(?P<code>.*?)^```$(?:\s*^```text[^\n]*\n(?P<printed>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


class CodeBlock(NamedTuple):
    """A fenced block, the line that its code begins on, and what it should print."""

    code: str
    line: int
    printed: str | None


def _blocks(page: Path) -> Iterator[CodeBlock]:
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("code"))
        yield CodeBlock(found["code"], line, found["printed"])


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _prints(expected: str) -> re.Pattern[str]:
    parts = [re.escape(part) for part in expected.strip().split("...")]
    return re.compile(".*".join(parts), re.DOTALL)


@pytest.mark.parametrize("page", [page for page in PAGES if any(_blocks(page))], ids=_name)
def test_code_blocks_run_and_print_what_the_page_says(
    page: Path,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in _blocks(page):
        padded = "\n" * block.line + block.code  # so that a traceback names the page's own line
        exec(compile(padded, str(page), "exec"), names)
        printed = capsys.readouterr().out
        if block.printed is not None and not _prints(block.printed).fullmatch(printed.strip()):
            pytest.fail(f"{_name(page)}:{block.line} printed:\n{printed}", pytrace=False)
