"""Work is ended before any of its task steps, in every way that ends work (G1, G3, G4, G5)."""

from collections import Counter

import pytest

from tests.exhaustive.cancelling import COMBINATIONS, WAYS, swept
from tests.exhaustive.lines import LINES, table
from tests.exhaustive.scenes import SCENES

SYNCHRONOUS = ("claim", "admission", "step/end", "turn/end")
"""Lines in which no task waits: only an observer can end work there."""


@pytest.mark.parametrize(("scene", "way"), COMBINATIONS)
def test_whatever_ends_work_at_any_task_step_leaves_it_whole(scene: str, way: str) -> None:
    assert swept(scene, way).points > 0


def test_points_fell_into_every_line_in_which_the_driver_waits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = {way: Counter[str]() for way in WAYS}
    for scene, way in COMBINATIONS:
        lines[way] += swept(scene, way).lines
    seconds = sum(swept(scene, way).seconds for scene, way in COMBINATIONS)
    points = sum(count.total() for count in lines.values())
    with capsys.disabled():
        print(f"\n{table(lines)}\n{points} points, {points / seconds:.0f} a processor second")
    for way in ("turn", "discard", "dispose", "host"):
        assert [line for line in LINES if not lines[way][line]] == list(SYNCHRONOUS)
    assert lines["first call"]["tools"]
    assert lines["last call"]["tools"]


def test_points_fell_before_an_admission_in_every_scene(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each compared the log, byte for byte, with what it was (G3, R5)."""
    counts = {
        scene: sum(swept(scene, way).before_admission for way in ("turn", "discard", "dispose"))
        for scene in SCENES
    }
    with capsys.disabled():
        print(f"\nlogs compared from claim to admission: {counts}")
    assert [scene for scene, count in counts.items() if not count] == []
