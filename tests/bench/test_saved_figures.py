"""Can figures be kept, and compared with later ones?"""

import json
from pathlib import Path

import pytest

from bench.report import Figure
from bench.saved import print_changes, read, save


def figure(case: str, *ratios: float) -> Figure:
    return Figure("stream", case, "us/chunk", ratios, "a channel", (1.0,) * len(ratios))


def test_saved_figures_are_read_by_bench_and_case(tmp_path: Path) -> None:
    save([figure("read-1", 1.5), figure("read-4", 0.5)], tmp_path)
    found = read(tmp_path)
    assert {case: line["ratio"] for case, line in found.items()} == {
        ("stream", "read-1"): 1.5,
        ("stream", "read-4"): 0.5,
    }
    facts = json.loads((tmp_path / "environment.json").read_text(encoding="utf-8"))
    assert {"python", "cores", "load", "trio"} <= facts.keys()


def test_a_change_is_called_one_where_no_run_of_before_was_like_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = [figure(case, 1.0, 1.1, 1.2) for case in ("dear", "cheap", "wavering")]
    save(before, tmp_path)
    now = [
        figure("dear", 1.3, 1.4),
        figure("cheap", 0.8, 0.9),
        figure("wavering", 1.15, 1.4),
        figure("unknown", 1.0),
    ]
    print_changes(now, read(tmp_path))
    verdicts = [line.split()[-1] for line in capsys.readouterr().out.splitlines()[1:]]
    assert verdicts == ["dearer", "cheaper", "1.275", "new"]
