"""The lifecycle diagram of the docs shows what a run does today."""

from docs.draw_lifecycle import PICTURE, lifecycle


def test_lifecycle_diagram_is_drawn_from_a_run_of_today() -> None:
    assert PICTURE.read_text(encoding="utf-8") == lifecycle(), (
        "the diagram is stale: run `python docs/draw_lifecycle.py` and look at it"
    )
