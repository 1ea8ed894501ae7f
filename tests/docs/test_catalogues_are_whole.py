"""The catalogues leave nothing out: every code, every effect on the surface."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from docs.catalogues.codes import raised
from docs.catalogues.events import SURFACE, builtin
from trioloop.codes import MODEL_FAILURES, RAISED, TOOL_CODES, TURN_CODES, ToolCode
from trioloop.log.changes import CHANGES

PACKAGE = Path(__file__).resolve().parents[2] / "trioloop"
KNOWN = {*TOOL_CODES, *MODEL_FAILURES, *TURN_CODES, *RAISED}
ROOMS = ("agent", "hooks", "log", "machine", "runtime", "session.py", "stream", "tools")
A_CODE = re.compile(r"[A-Z]{3,}(?:_[A-Z]+)*")
NO_CODES = {"EMPTY_INBOX"}


def _words() -> Iterator[tuple[str, str]]:
    """Every string in the rooms whose code ends up in logs that looks like a code."""
    for room in ROOMS:
        for path in sorted([PACKAGE / room, *(PACKAGE / room).rglob("*.py")]):
            if path.suffix == ".py":
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                    value = node.value if isinstance(node, ast.Constant) else None
                    if isinstance(value, str) and A_CODE.fullmatch(value):
                        yield path.relative_to(PACKAGE).as_posix(), value


def test_every_code_in_the_source_is_in_a_table() -> None:
    found = set(_words())
    assert len(found) > 20
    assert [(path, word) for path, word in found if word not in KNOWN | NO_CODES] == []


def test_every_code_of_a_call_is_explained() -> None:
    assert set(TOOL_CODES) == set(get_args(ToolCode))


def test_every_error_that_is_raised_says_what_to_do() -> None:
    assert {cls.code for cls in raised()} == set(RAISED)


def test_catalogue_names_every_event_that_changes_the_surface() -> None:
    changing = {
        cls
        for cls in builtin().values()
        if cls in CHANGES and "state.surface." in inspect.getsource(CHANGES[cls])
    }
    assert changing == set(SURFACE)
