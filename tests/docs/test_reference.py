"""The reference has every public name: the module that defines it is on one of its pages."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
SHOWN = {
    module
    for page in REFERENCE.rglob("*.md")
    for module in re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
}
FRONTS = [
    "trioloop",
    "trioloop.control",
    "trioloop.ext.code",
    "trioloop.hooks",
    "trioloop.models",
    "trioloop.plugins",
    "trioloop.store",
    "trioloop.testing",
    "trioloop.tools",
]


@pytest.mark.parametrize("front", FRONTS)
def test_every_public_name_is_in_the_reference(front: str) -> None:
    module = importlib.import_module(front)
    public = {name: getattr(module, name) for name in module.__all__}
    homes = {
        name: found.__module__
        for name, found in public.items()
        if inspect.isclass(found) or inspect.isfunction(found)
    }
    assert {name: home for name, home in homes.items() if home not in SHOWN} == {}
