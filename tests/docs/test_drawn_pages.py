"""What the docs draw from the code shows the code of today."""

import pytest

from docs import (
    draw_lifecycle,
    draw_paths,
    write_catalogues,
    write_decisions,
    write_grammar,
    write_mutants,
    write_performance,
)
from docs.decisions_drawing import decisions_diagram


def test_lifecycle_diagram_is_drawn_from_a_run_of_today() -> None:
    drawn = draw_lifecycle.PICTURE.read_text(encoding="utf-8")
    assert drawn == draw_lifecycle.lifecycle(), (
        "the diagram is stale: run `python docs/draw_lifecycle.py` and look at it"
    )


def test_page_on_the_grammar_is_written_from_its_table() -> None:
    written = write_grammar.PAGE.read_text(encoding="utf-8")
    assert written == write_grammar.page(), "the page is stale: run `python docs/write_grammar.py`"


@pytest.mark.parametrize("name", write_catalogues.PAGES)
def test_catalogue_is_written_from_the_code(name: str) -> None:
    written = write_catalogues.path(name).read_text(encoding="utf-8")
    assert written == write_catalogues.PAGES[name](), (
        "the page is stale: run `python -m docs.write_catalogues`"
    )


def test_paths_are_drawn_from_runs_of_today() -> None:
    stale = "the pictures are stale: run `python -m docs.draw_paths` and look at them"
    for path, drawing in draw_paths.drawings():
        assert path.read_text(encoding="utf-8") == drawing, stale
    assert draw_paths.PAGE.read_text(encoding="utf-8") == draw_paths.page(), stale


def test_decisions_are_written_from_the_functions_that_decide() -> None:
    stale = "the page is stale: run `python -m docs.write_decisions` and look at it"
    assert write_decisions.PAGE.read_text(encoding="utf-8") == write_decisions.page(), stale
    assert write_decisions.PICTURE.read_text(encoding="utf-8") == decisions_diagram(), stale


def test_page_on_performance_has_the_figures_that_were_measured() -> None:
    stale = "the page is stale: run `python -m docs.write_performance`"
    assert write_performance.PAGE.read_text(encoding="utf-8") == write_performance.page(), stale


def test_page_on_mutants_is_written_from_their_catalogue_and_its_last_run() -> None:
    written = write_mutants.PAGE.read_text(encoding="utf-8")
    assert written == write_mutants.page(), "the page is stale: run `python -m docs.write_mutants`"
