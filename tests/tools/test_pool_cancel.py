"""The pool alone, cancelled: at every task step, from inside and from outside (T9)."""

from collections.abc import Callable

import pytest
import trio
import trio.testing

from trioloop.machine.plan import Mode
from trioloop.tools.pool import Call, run_calls

Catalogue = list[tuple[Mode, int]]  # mode, and how many checkpoints a body makes

CATALOGUE: dict[str, tuple[Catalogue, int]] = {
    "one": ([("concurrent", 2)], 1),
    "side by side": ([("concurrent", 1), ("concurrent", 3), ("concurrent", 0)], 2),
    "one by one": ([("concurrent", 1), ("concurrent", 1)], 1),
    "barriers": ([("concurrent", 2), ("barrier", 1), ("concurrent", 1), ("barrier", 0)], 3),
    "many": ([("concurrent", index % 3) for index in range(9)], 4),
}


class CancelBeforeStep(trio.abc.Instrument):
    """Cancels a scope just before the n-th task step since it was entered."""

    def __init__(self, scope: trio.CancelScope, step: int) -> None:
        self._scope = scope
        self._left = step
        self.reached = False

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if self._left == 0:
            self.reached = True
            self._scope.cancel()
        self._left -= 1


class Ledger:
    """Which bodies began, and which came to an end."""

    def __init__(self) -> None:
        self.began: list[int] = []
        self.ended: list[int] = []
        self.cancelled_at: int | None = None

    async def body(self, index: int, checkpoints: int) -> int:
        self.began.append(index)
        try:
            for _ in range(checkpoints):
                await trio.lowlevel.checkpoint()
        finally:
            self.ended.append(index)
        return index


def _sweep(batch: Catalogue, limit: int, seed: int) -> int:
    """Cancel a batch before each of its task steps; tells how many there are."""
    step = 0
    while True:
        ledger = Ledger()
        reached, caught, results = trio.run(_cancelled_run, ledger, batch, limit, step + seed)
        assert ledger.began == sorted(ledger.began)
        assert sorted(ledger.ended) == ledger.began
        if not reached:
            assert results == list(range(len(batch)))
            return step
        assert caught or results == list(range(len(batch)))
        step += 1


async def _cancelled_run(
    ledger: Ledger, batch: Catalogue, limit: int, step: int
) -> tuple[bool, bool, list[int] | None]:
    results = None
    before = trio.lowlevel.current_statistics().tasks_living
    with trio.CancelScope() as scope:
        instrument = CancelBeforeStep(scope, step)
        trio.lowlevel.add_instrument(instrument)
        try:
            calls = [
                Call(ledger.body, (index, checkpoints), mode)
                for index, (mode, checkpoints) in enumerate(batch)
            ]
            results = [result.unwrap() for result in await run_calls(calls, limit=limit)]
        finally:
            trio.lowlevel.remove_instrument(instrument)
    assert trio.lowlevel.current_statistics().tasks_living == before
    return instrument.reached, scope.cancelled_caught, results


@pytest.mark.parametrize("name", CATALOGUE)
def test_cancelled_before_any_task_step_nothing_is_left_running(name: str) -> None:
    batch, limit = CATALOGUE[name]
    steps = max(_sweep(batch, limit, seed=0) for _ in range(10))  # Trio shuffles its tasks
    assert steps > len(batch) // limit


async def test_no_call_starts_after_a_cancel_that_another_call_makes(
    autojump_clock: trio.testing.MockClock,
) -> None:
    began: list[int] = []

    async def body(index: int, end: Callable[[], None]) -> None:
        began.append(index)
        await trio.sleep(1)
        if index == 1:
            end()

    for _ in range(20):
        began.clear()
        with trio.CancelScope() as scope:
            calls = [Call(body, (index, scope.cancel)) for index in range(9)]
            await run_calls(calls, limit=3)
        assert scope.cancelled_caught
        # Those of the same instant may have gone on before it, never after it.
        assert began[:3] == [0, 1, 2]
        assert len(began) <= 5


async def test_a_deadline_further_out_is_seen_before_each_start(
    autojump_clock: trio.testing.MockClock,
) -> None:
    began: list[int] = []

    async def body(index: int) -> None:
        began.append(index)
        await trio.sleep(1)

    with trio.move_on_after(2.5):
        await run_calls([Call(body, (index,)) for index in range(20)], limit=2)
    assert began == list(range(6))


async def test_cancelled_with_all_results_there_they_are_given() -> None:
    async def body(scope: trio.CancelScope) -> str:
        await trio.lowlevel.checkpoint()
        scope.cancel()
        return "done"

    with trio.CancelScope() as scope:
        results = await run_calls([Call(body, (scope,))], limit=1)
    assert [result.unwrap() for result in results] == ["done"]
