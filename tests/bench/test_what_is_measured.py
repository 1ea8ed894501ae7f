"""Does what a benchmark measures go through everything that it says?"""

import time
from typing import Any

from bench.pool_overhead import step
from bench.timing import Effort

EFFORT = Effort(runs=3, part=0.5)
SLOWER_US = 100


def adds(listener: Any) -> Any:
    return lambda hooks: hooks.pre_execute.add(listener)


async def quick(payload: object, next: Any) -> Any:
    return await next()


async def slower(payload: object, next: Any) -> Any:
    over = time.process_time() + SLOWER_US / 1e6
    while time.process_time() < over:  # a busy CPU is what the benchmark measures
        pass
    return await next()


async def test_the_ratio_rises_when_one_listener_takes_100_us_more() -> None:
    before = await step(EFFORT, 20, also=[adds(quick)])
    after = await step(EFFORT, 20, also=[adds(slower)])
    assert after.quickest > before.quickest
    assert min(after.values) > SLOWER_US


async def test_a_step_is_measured_with_its_log() -> None:
    figure = await step(Effort(runs=1, part=0.1), 20)
    assert int(figure.facts["events_per_turn"]) > 3 * 20  # each call's start, dispatch and result
