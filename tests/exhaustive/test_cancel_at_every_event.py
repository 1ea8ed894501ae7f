"""Work is ended by whoever observes any of its events: inside the blocks that no task waits in.

What an observer ends is ended behind the block that it saw (contract section 4).
"""

from collections import Counter

import pytest

from tests.exhaustive.cancelling import COMBINATIONS, WAYS, swept_by_events
from tests.exhaustive.lines import LINES, table

BETWEEN = ("tool set", "assemble", "gate", "turn_stopping")
"""Lines that append nothing, not even where policies are open."""


@pytest.mark.parametrize(("scene", "way"), COMBINATIONS)
def test_whatever_ends_work_at_any_event_leaves_it_whole(scene: str, way: str) -> None:
    assert swept_by_events(scene, way).points > 0


def test_points_fell_into_every_line_that_appends(capsys: pytest.CaptureFixture[str]) -> None:
    lines = {way: Counter[str]() for way in WAYS}
    for scene, way in COMBINATIONS:
        lines[way] += swept_by_events(scene, way).lines
    with capsys.disabled():
        print(f"\n{table(lines)}")
    for way in ("turn", "discard", "dispose", "host"):
        without = {line for line in LINES if not lines[way][line]}
        assert without == {*BETWEEN, "checkpoint, settled"}
