"""Draw the paths of a turn from recorded runs, and write the page that shows them.

    python -m docs.draw_paths

Each run is a real one, with a scripted model under a virtual clock, seen from outside. A test
compares the page and the pictures with what they would be now.
"""

from collections.abc import Iterator
from pathlib import Path

from docs.sequences.drawing import draw
from docs.sequences.scenarios import SCENARIOS, record

FOLDER = Path(__file__).parent / "concepts"

OPENING = """\
---
hide:
  - toc
---

# Paths of a turn

Whatever happens, a turn takes one of the paths below, and its log says which. The pictures are
drawn by `docs/draw_paths.py` from recorded runs; CI fails when they differ from what the runtime
does. Time goes downwards. A box in the log is one append: all of its events are there, or none.
*Durable to n* is the store's answer that the log up to event n would outlive the process.

"""

ALL = """\
## All paths { #all }

What the log has behind `turn/start` and the claim of the messages.

| path | what happens | events | turn ends as |
| --- | --- | --- | --- |
"""


def picture(name: str) -> Path:
    """Where the picture of a path stands."""
    return FOLDER / "paths" / f"{name.lower()}.svg"


def drawings() -> Iterator[tuple[Path, str]]:
    """Each picture: where it stands, and its SVG."""
    for name, scenario in SCENARIOS.items():
        yield picture(name), draw(f"{name}: {scenario.title}", record(scenario))


def page() -> str:
    """The page, as Markdown."""
    parts = [OPENING]
    for name, scenario in SCENARIOS.items():
        parts.append(f"## {name}: {scenario.title} {{ #{name.lower()} }}\n\n{scenario.says}\n\n")
        parts.append(
            f'<div class="drawn" data-search-exclude>\n--8<-- "{_snippet(name)}"\n</div>\n\n'
        )
    return "".join((*parts, ALL))


def _snippet(name: str) -> str:
    return picture(name).relative_to(FOLDER.parent).as_posix()


PAGE = FOLDER / "paths.md"

if __name__ == "__main__":
    picture("P1").parent.mkdir(exist_ok=True)
    for path, drawing in drawings():
        path.write_text(drawing, encoding="utf-8")
        print(f"wrote {path}")
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
