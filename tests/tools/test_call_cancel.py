"""Calls that are stopped: by their id, their deadline, their turn (T9, T12, T13)."""

import logging

import pytest
import trio
from trio.testing import MockClock

from tests.tools.batches import Step, nap, naps, step_of
from trioloop.hooks import CallRequest, Next
from trioloop.hooks.points import PrePolicy
from trioloop.ids import call_id
from trioloop.tools import tool


async def test_its_own_deadline_ends_a_body(autojump_clock: MockClock) -> None:
    step = Step()
    step.tools.register(tool(effects="read-only", timeout_s=2)(nap))
    began = trio.current_time()
    await step.run(*naps(1, 5, 1, 9))
    assert step.codes == [None, "TOOL_TIMEOUT", None, "TOOL_TIMEOUT"]
    assert "unknown" in step.texts[1]
    assert trio.current_time() - began == 2


async def test_a_body_that_ends_at_its_deadline_keeps_its_result(autojump_clock: MockClock) -> None:
    step = Step(calls_max=1)
    step.tools.register(tool(effects="read-only", timeout_s=2)(nap))
    await step.run(*naps(2, 1))
    assert step.codes[1] is None  # what happens at the very instant is Trio's choice


async def test_the_turn_s_cancel_stands_over_a_deadline_that_comes_later(
    autojump_clock: MockClock,
) -> None:
    step = Step()

    @tool(effects="read-only", timeout_s=2, on_cancel="finish")
    async def slow() -> None:
        """Take long."""
        await trio.sleep(99)

    step.tools.register(slow)
    with trio.move_on_after(1):
        await step.run(("slow", {}))
    assert step.codes == ["TOOL_ABORTED"]


async def test_a_running_call_is_cancelled_alone(autojump_clock: MockClock) -> None:
    step = step_of(nap, calls_max=2)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(step.run, *naps(9, 3, 1, 1))
        await trio.sleep(2)
        step.running[call_id(1, 1, 0)].cancel()
        step.running[call_id(1, 1, 0)].cancel()
    assert step.codes == ["TOOL_CANCELLED", None, None, None]
    assert "unknown" in step.texts[0]


async def test_a_waiting_call_that_was_cancelled_does_not_run_when_its_turn_comes(
    autojump_clock: MockClock,
) -> None:
    step = step_of(nap, calls_max=1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(step.run, *naps(3, 1, 1))
        await trio.sleep(1)
        step.running[call_id(1, 1, 1)].cancel()
    assert step.codes == [None, "TOOL_CANCELLED", None]
    assert step.shape == ["call 0", "result 0", "result 1", "call 2", "result 2"]
    assert "before it ran" in step.texts[1]


async def test_a_call_cancelled_while_its_policy_waits_has_not_run(
    autojump_clock: MockClock,
) -> None:
    step = step_of(nap)

    @step.hooks.pre_execute
    async def slow(request: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
        await trio.sleep(5)
        return await next()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(step.run, *naps(1, 1))
        await trio.sleep(1)
        step.running[call_id(1, 1, 0)].cancel()
    assert step.codes == ["TOOL_CANCELLED", None]
    assert "before it ran" in step.texts[0]


async def test_a_cancelled_turn_leaves_a_true_result_for_each_call(
    autojump_clock: MockClock,
) -> None:
    step = step_of(nap, calls_max=2)
    with trio.move_on_after(2) as scope:
        await step.run(*naps(1, 9, 9, 1), ("nope", {}))
    assert scope.cancelled_caught
    assert step.codes == [
        None, "TOOL_ABORTED", "TOOL_ABORTED",
        "TOOL_ABORTED_BEFORE_DISPATCH", "TOOL_ABORTED_BEFORE_DISPATCH",
    ]  # fmt: skip
    assert step.shape[-2:] == ["result 3", "result 4"]
    assert not step.running


async def test_a_barrier_behind_a_cancelled_call_does_not_run(autojump_clock: MockClock) -> None:
    step = step_of(nap)
    step.tools.register(tool(name="write", description="Write.", mode="barrier")(nap))
    with trio.move_on_after(1):
        await step.run(*naps(9, 9), ("write", {"seconds": 1}))
    assert step.codes == ["TOOL_ABORTED", "TOOL_ABORTED", "TOOL_ABORTED_BEFORE_DISPATCH"]


async def test_a_body_that_fails_while_it_is_cancelled_keeps_its_failure(
    autojump_clock: MockClock,
) -> None:
    async def fragile() -> None:
        """Fail while it is cancelled."""
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("on the way out")

    step = step_of(fragile)
    with trio.move_on_after(1):
        await step.run(("fragile", {}))
    assert step.codes == ["TOOL_FAILED"]


async def test_a_finishing_body_goes_on_for_its_grace(autojump_clock: MockClock) -> None:
    step = Step(grace_s=5)
    step.tools.register(tool(effects="read-only", on_cancel="finish")(nap))
    began = trio.current_time()
    with trio.move_on_after(1):
        await step.run(*naps(4, 20))
    assert step.codes == [None, "TOOL_ABORTED"]
    assert step.texts[0] == "4.0"
    assert trio.current_time() - began == 6


async def test_a_finishing_body_cancelled_alone_goes_on_for_its_grace(
    autojump_clock: MockClock,
) -> None:
    step = Step(grace_s=5)
    step.tools.register(tool(effects="read-only", on_cancel="finish")(nap))
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(step.run, *naps(4, 20))
        await trio.sleep(1)
        for running in list(step.running.values()):
            running.cancel()
    assert step.codes == [None, "TOOL_CANCELLED"]
    assert trio.current_time() - began == 6


@pytest.mark.parametrize("how", ["turn", "alone", "deadline"])
async def test_a_body_that_swallows_its_cancel_is_shielded_named_and_counts(
    autojump_clock: MockClock, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    cancels = 0

    async def stubborn() -> str:
        """Go on."""
        nonlocal cancels
        end = trio.current_time() + 60
        while trio.current_time() < end:
            try:
                await trio.sleep_until(end)
            except trio.Cancelled:  # noqa: ASYNC103 - a fault, on purpose
                cancels += 1
                with trio.CancelScope(shield=True):
                    await trio.sleep(4)
        return "still here"

    step = Step(grace_s=10, stuck_warning_s=10)
    timeout = 5 if how == "deadline" else None
    step.tools.register(tool(effects="read-only", timeout_s=timeout)(stubborn))
    with caplog.at_level(logging.WARNING, "trioloop.tools"), trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(step.run, ("stubborn", {}))
            await trio.sleep(5)
            if how == "turn":
                scope.cancel()
            elif how == "alone":
                step.running[call_id(1, 1, 0)].cancel()
    assert step.codes == [None]
    assert step.texts == ["still here"]
    assert cancels == 3  # at 5, 9 and 13 s; at 15 s it is shielded
    named = [record.getMessage() for record in caplog.records]
    assert len(named) == 5
    assert all("stubborn (call_1_1_0)" in line for line in named)


async def test_the_first_of_two_cancels_is_the_one_that_is_told(autojump_clock: MockClock) -> None:
    step = Step(grace_s=5)
    step.tools.register(tool(effects="read-only", on_cancel="finish")(nap))
    with trio.move_on_after(2):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(step.run, *naps(60))
            await trio.sleep(1)
            step.running[call_id(1, 1, 0)].cancel()
    assert step.codes == ["TOOL_CANCELLED"]
