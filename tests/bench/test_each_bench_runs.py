"""Does each benchmark run, however small, and tell its figures as bench.md says?"""

import json
import sys
from contextlib import aclosing
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

from bench.__main__ import BENCHES
from bench.peers.environments import PACKAGES
from bench.plots import plot
from bench.report import Figure
from bench.timing import Effort

TINY = Effort(runs=1, part=0.002)
SCHEMA = {
    "type": "object",
    "properties": {
        "bench": {"type": "string"},
        "case": {"type": "string", "pattern": r"^[a-z0-9-]+$"},
        "unit": {
            "enum": [
                "us",
                "ms",
                "bytes",
                "us/call",
                "us/step",
                "us/turn",
                "us/agent",
                "us/chunk",
                "us/event",
            ]
        },
        "runs": {"type": "integer", "minimum": 1},
        "versus": {"type": "string", "minLength": 1},
        **{
            name: {"type": "number", "exclusiveMinimum": 0}
            for name in (
                "min",
                "median",
                "max",
                "baseline",
                "ratio",
                "ratio_min",
                "ratio_max",
                "quickest",
            )
        },
    },
    "additionalProperties": {"type": ["number", "string"]},
}
SCHEMA["required"] = list(SCHEMA["properties"])


@pytest.fixture(autouse=True)
def one_peer_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain anyio is here, as a part of what the tests need; no other peer is."""
    python = tmp_path / "peers" / "anyio" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    monkeypatch.setenv("TRIOLOOP_BENCH_PEERS", str(tmp_path / "peers"))


async def figures_of(bench: str) -> list[Figure]:
    async with aclosing(BENCHES[bench].run(TINY)) as cases:
        return [figure async for figure in cases]


@pytest.mark.parametrize("bench", sorted(BENCHES))
async def test_each_bench_gives_figures_that_fit_the_schema(bench: str) -> None:
    figures = await figures_of(bench)
    assert figures
    for figure in figures:
        told = json.loads(figure.as_json())
        jsonschema.validate(told, SCHEMA)
        assert told["bench"] == bench
        assert told["min"] <= told["median"] <= told["max"]
    assert len({figure.case for figure in figures}) == len(figures)


async def test_a_peer_that_is_not_installed_is_skipped_with_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRIOLOOP_BENCH_PEERS", str(tmp_path / "none"))
    assert await figures_of("peers") == []
    told = capsys.readouterr().err
    for peer in PACKAGES:
        assert f"{peer} is skipped, because it isn't installed" in told


def test_pictures_are_drawn_of_figures(tmp_path: Path) -> None:
    figures = [
        Figure("stream", case, "us/chunk", (ratio, ratio), "zero-buffer channel", (1.0, 1.0))
        for case, ratio in (("read-1", 0.75), ("read-4", 0.25))
    ]
    plot(figures, tmp_path / "plots")
    (picture,) = (tmp_path / "plots").iterdir()
    assert picture.name == "stream.svg"
    words = "".join(ElementTree.parse(picture).getroot().itertext())
    assert all(word in words for word in ("read-1", "0.75", "read-4", "0.25", "zero-buffer"))


def test_a_picture_of_the_same_figures_is_the_same(tmp_path: Path) -> None:
    figure = Figure("cancel", "tool", "us", (2.0,), "cancel and join of 1 task", (1.0,))
    for folder in ("one", "other"):
        plot([figure], tmp_path / folder)
    one, other = ((tmp_path / folder / "cancel.svg").read_bytes() for folder in ("one", "other"))
    assert one == other
