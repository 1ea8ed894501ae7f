"""What the docs draw from the code shows the code of today."""

from docs import draw_lifecycle, write_grammar


def test_lifecycle_diagram_is_drawn_from_a_run_of_today() -> None:
    drawn = draw_lifecycle.PICTURE.read_text(encoding="utf-8")
    assert drawn == draw_lifecycle.lifecycle(), (
        "the diagram is stale: run `python docs/draw_lifecycle.py` and look at it"
    )


def test_page_on_the_grammar_is_written_from_its_table() -> None:
    written = write_grammar.PAGE.read_text(encoding="utf-8")
    assert written == write_grammar.page(), "the page is stale: run `python docs/write_grammar.py`"
