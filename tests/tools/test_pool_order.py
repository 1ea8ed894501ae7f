"""The pool alone: limit, barriers, order, makespan (T2, T3, T10, T11, G7)."""

import contextvars
from collections.abc import Sequence

import attrs
import outcome
import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.batches import under_virtual_time
from trioloop.errors import InvalidInputError, LeakedCancelError
from trioloop.machine.plan import Mode
from trioloop.tools.pool import Call, run_calls


@attrs.frozen
class Work:
    """What a generated call does."""

    mode: Mode
    seconds: float
    fails: bool = False


WORK = st.builds(
    Work,
    mode=st.sampled_from(["concurrent", "concurrent", "concurrent", "barrier"]),
    seconds=st.integers(0, 8).map(float),
    fails=st.booleans(),
)
BATCHES = st.lists(WORK, max_size=14)


def list_scheduling(batch: Sequence[Work], limit: int) -> float:
    """The makespan of calls that each start in order as soon as they may."""
    free = [0.0] * limit
    latest = earliest = 0.0
    for work in batch:
        if work.mode == "barrier":
            earliest = latest
        free.sort()
        began = max(free[0], earliest)
        free[0] = began + work.seconds
        latest = max(latest, free[0])
        if work.mode == "barrier":
            earliest = latest
    return latest


@given(BATCHES, st.integers(1, 4), st.random_module())
def test_any_batch_keeps_the_rules_and_takes_no_longer_than_list_scheduling(
    batch: list[Work], limit: int, random: object
) -> None:
    running: set[int] = set()
    starts: list[int] = []

    async def body(index: int) -> int:
        starts.append(index)
        assert not any(batch[other].mode == "barrier" for other in running)
        assert batch[index].mode != "barrier" or not running
        running.add(index)
        assert len(running) <= limit
        try:
            await trio.sleep(batch[index].seconds)
            if batch[index].fails:
                raise ValueError(index)
        finally:
            running.discard(index)
        return index

    async def main() -> None:
        began = trio.current_time()
        calls = [Call(body, (index,), work.mode) for index, work in enumerate(batch)]
        results = await run_calls(calls, limit=limit)
        took = trio.current_time() - began
        assert took == pytest.approx(list_scheduling(batch, limit), rel=0.01, abs=1e-9)
        assert starts == list(range(len(batch)))
        assert len(results) == len(batch)
        for index, (work, result) in enumerate(zip(batch, results, strict=True)):
            if work.fails:
                assert isinstance(result, outcome.Error)
                assert repr(result.error) == f"ValueError({index})"
            else:
                assert result == outcome.Value(index)

    under_virtual_time(main)


@given(st.integers(1, 30), st.integers(1, 6), st.random_module())
def test_calls_that_never_wait_run_in_order_too(count: int, limit: int, random: object) -> None:
    starts: list[int] = []

    async def body(index: int) -> None:
        starts.append(index)

    async def main() -> None:
        await run_calls([Call(body, (index,)) for index in range(count)], limit=limit)

    trio.run(main)
    assert starts == list(range(count))


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, None])
@pytest.mark.parametrize("count", [0, 1, 2])
async def test_an_invalid_limit_is_refused(limit: object, count: int) -> None:
    with pytest.raises(InvalidInputError, match="limit must be a whole number"):
        await run_calls([Call(trio.sleep, (0,))] * count, limit=limit)  # type: ignore[arg-type]


def test_an_invalid_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="mode"):
        Call(trio.sleep, (0,), "serial")  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [0, 1, 5])
async def test_running_calls_is_a_checkpoint(count: int) -> None:
    async def body() -> None: ...

    with trio.testing.assert_checkpoints():
        await run_calls([Call(body)] * count, limit=2)


@pytest.mark.parametrize("count", [1, 6])
async def test_context_variables_of_a_call_are_its_own(count: int) -> None:
    variable = contextvars.ContextVar[str]("variable", default="unset")
    seen: list[str] = []

    async def body(index: int) -> str:
        seen.append(variable.get())
        variable.set(f"set by {index}")
        await trio.lowlevel.checkpoint()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.lowlevel.checkpoint)
        if index == 2:
            raise ValueError(index)
        return variable.get()

    token = variable.set("outer")
    results = await run_calls([Call(body, (index,)) for index in range(count)], limit=2)
    assert variable.get() == "outer"
    variable.reset(token)
    assert seen == ["outer"] * count
    assert [result.value for result in results if isinstance(result, outcome.Value)] == [
        f"set by {index}" for index in range(count) if index != 2
    ]


async def stray_cancelled() -> None:
    """Raise a `Cancelled` that is nobody's."""
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.sleep_forever()
        except trio.Cancelled as error:
            stray = error
    raise stray


async def open_scope() -> None:
    """Leave a cancelled scope open."""
    trio.CancelScope().__enter__().cancel()


async def open_nursery() -> None:
    """Leave a nursery open, with a task in it."""
    nursery = await trio.open_nursery().__aenter__()
    nursery.start_soon(trio.sleep_forever)


async def test_a_stray_cancelled_is_an_error_of_its_call(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def group() -> None:
        try:
            await stray_cancelled()
        except trio.Cancelled as error:
            raise BaseExceptionGroup("both", [error, ValueError("real")]) from None

    for alone in ([Call(stray_cancelled)], [Call(stray_cancelled), Call(trio.sleep, (1,))]):
        results = await run_calls(alone, limit=2)
        assert isinstance(results[0], outcome.Error)
        assert isinstance(results[0].error, LeakedCancelError)
    (result, _) = await run_calls([Call(group), Call(group)], limit=1)
    assert isinstance(result, outcome.Error)
    assert isinstance(result.error, BaseExceptionGroup)
    assert [repr(error) for error in result.error.exceptions] == ["ValueError('real')"]


@pytest.mark.parametrize("leave_open", [open_scope, open_nursery])
async def test_what_a_call_leaves_open_hurts_no_other_call(
    autojump_clock: trio.testing.MockClock, leave_open: object
) -> None:
    async def body(index: int) -> int:
        await trio.sleep(index % 3)
        return index

    calls: list[Call[object]] = [Call(body, (index,)) for index in range(12)]
    for index in (0, 4, 5, 11):
        calls[index] = Call(leave_open)  # type: ignore[arg-type]
    results = await run_calls(calls, limit=3)
    for index, result in enumerate(results):
        if index in (0, 4, 5, 11):
            assert isinstance(result, outcome.Error)
            assert "stack corrupted" in str(result.error)
        else:
            assert result == outcome.Value(index)
    await trio.sleep(1)  # nothing here is inside a scope that was left open


async def test_a_failing_call_of_any_kind_leaves_the_others_alone() -> None:
    class Own(BaseException): ...

    async def body(error: BaseException | None) -> str:
        await trio.lowlevel.checkpoint()
        if error is not None:
            raise error
        return "good"

    errors = [None, SystemExit(1), GeneratorExit(), Own(), StopIteration(1), None]
    results = await run_calls([Call(body, (error,)) for error in errors], limit=2)
    assert [type(getattr(result, "error", None)).__name__ for result in results] == [
        "NoneType", "SystemExit", "GeneratorExit", "Own", "RuntimeError", "NoneType"
    ]  # fmt: skip


@pytest.mark.parametrize("count", [1, 5])
async def test_ctrl_c_in_a_call_goes_up_after_the_others_were_cancelled(count: int) -> None:
    ended: list[int] = []

    async def body(index: int) -> None:
        try:
            if index == count - 1:
                raise KeyboardInterrupt
            await trio.sleep_forever()
        finally:
            ended.append(index)

    with pytest.raises(KeyboardInterrupt):
        await run_calls([Call(body, (index,)) for index in range(count)], limit=count)
    assert sorted(ended) == list(range(count))


async def test_twenty_calls_give_each_its_own_result(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def body(index: int) -> int:
        await trio.sleep(index * 7 % 20)
        return index

    results = await run_calls([Call(body, (index,)) for index in range(20)], limit=20)
    assert [result.unwrap() for result in results] == list(range(20))
