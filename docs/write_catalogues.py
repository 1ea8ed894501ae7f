"""Write the catalogues of the reference from the code.

    python -m docs.write_catalogues

They are the pages in `docs/reference/catalogues/`; a test compares each with what it would be now.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from docs.catalogues import codes, events, hooks, limits, notifications

FOLDER = Path(__file__).parent / "reference" / "catalogues"

PAGES: Mapping[str, Callable[[], str]] = {
    "events": events.page,
    "hooks": hooks.page,
    "notifications": notifications.page,
    "codes": codes.page,
    "limits": limits.page,
}


def path(name: str) -> Path:
    """Where a catalogue stands."""
    return FOLDER / f"{name}.md"


if __name__ == "__main__":
    for name, page in PAGES.items():
        path(name).write_text(page(), encoding="utf-8")
        print(f"wrote {path(name)}")
