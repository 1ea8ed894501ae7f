"""Synchronous bodies: threads, their limiter, grace, abandonment (T13). In real time."""

import logging
import threading

import pytest
import trio

from tests.tools.batches import Step
from trioloop.ids import call_id
from trioloop.tools import ToolContext, tool


async def until(condition: object, what: str) -> None:
    """Wait, for a few seconds at most, until a condition holds."""
    assert callable(condition)
    with trio.fail_after(10):
        while not condition():  # noqa: ASYNC110 - threads make it true
            await trio.sleep(0.005)


async def test_a_plain_function_runs_in_a_thread_of_its_own() -> None:
    main = threading.get_ident()

    @tool(effects="read-only")
    def where(context: ToolContext) -> bool:
        """Tell where it runs."""
        context.report_progress("there")
        context.add_context("noted")
        return threading.get_ident() != main

    step = Step()
    step.tools.register(where)
    await step.run(("where", {}), ("where", {}))
    assert step.texts == ["true", "true"]
    assert len(step.contexts) == 2


async def test_a_thread_that_asks_learns_of_the_first_cancel() -> None:
    started = threading.Event()

    @tool(effects="read-only")
    def patient(context: ToolContext) -> None:
        """Work until it is cancelled."""
        started.set()
        while True:
            context.check_cancelled()
            threading.Event().wait(0.005)

    step = Step()
    step.tools.register(patient)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(step.run, ("patient", {}))
            await until(started.is_set, "the thread")
            scope.cancel()
    assert step.codes == ["TOOL_ABORTED"]
    assert not step.threads.strays


async def test_a_thread_that_asks_learns_of_its_deadline() -> None:
    @tool(effects="read-only", timeout_s=0.02)
    def patient(context: ToolContext) -> None:
        """Work until it is told to stop."""
        while True:
            context.check_cancelled()
            threading.Event().wait(0.005)

    step = Step()
    step.tools.register(patient)
    await step.run(("patient", {}))
    assert step.codes == ["TOOL_TIMEOUT"]


@pytest.mark.parametrize("how", ["turn", "alone", "deadline"])
async def test_a_thread_that_hangs_is_abandoned_named_and_replaced(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    release = threading.Event()
    started = threading.Event()

    def hang(wait: bool) -> str:
        """Hang."""
        started.set()
        if wait:
            release.wait(20)
        return "late"

    step = Step(grace_s=0.05, tool_threads_max=1, stuck_warning_s=0.01)
    timeout = 0.05 if how == "deadline" else None
    step.tools.register(tool(effects="read-only", timeout_s=timeout)(hang))
    with caplog.at_level(logging.WARNING, "trioloop.tools"):
        async with trio.open_nursery() as services:
            services.start_soon(step.threads.name_strays)
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(step.run, ("hang", {"wait": True}))
                    await until(started.is_set, "the thread")
                    if how == "turn":
                        scope.cancel()
                    elif how == "alone":
                        step.running[call_id(1, 1, 0)].cancel()
            assert step.codes == ["TOOL_ABANDONED"]
            assert step.threads.strays == ("hang (call_1_1_0)",)
            await until(lambda: len(caplog.records) > 2, "its name in the log")

            other = Step(grace_s=5)
            other.threads = step.threads  # its only token was replaced
            other.tools.register(tool(effects="read-only")(hang))
            await other.run(("hang", {"wait": False}))
            assert other.texts == ["late"]
            assert step.threads.strays  # it didn't have to wait for the one that hangs

            release.set()
            await until(lambda: not step.threads.strays, "the thread's end")
            services.cancel_scope.cancel()


async def test_a_token_that_replaced_one_goes_when_the_abandoned_thread_ends() -> None:
    release = threading.Event()
    met = threading.Event()
    inside: list[str] = []

    @tool(effects="read-only")
    def hang() -> None:
        """Hang."""
        release.wait(20)

    @tool(effects="read-only")
    def meet(name: str) -> None:
        """Look for another one that runs at the same time."""
        inside.append(name)
        if len(inside) > 1:
            met.set()
        met.wait(0.1)
        inside.remove(name)

    step = Step(grace_s=0.01, tool_threads_max=1)
    step.tools.register(hang)
    with trio.move_on_after(0.1):
        await step.run(("hang", {}))
    assert step.codes == ["TOOL_ABANDONED"]
    release.set()
    await until(lambda: not step.threads.strays, "the thread's end")
    other = Step()
    other.threads = step.threads
    other.tools.register(meet)
    await other.run(("meet", {"name": "a"}), ("meet", {"name": "b"}))
    assert other.codes == [None, None]
    assert not met.is_set()


async def test_only_so_many_abandoned_threads_are_replaced() -> None:
    release = threading.Event()

    @tool(effects="read-only")
    def hang() -> None:
        """Hang."""
        release.wait(20)

    step = Step(grace_s=0.01, tool_threads_max=2, strays_max=1)
    step.tools.register(hang)
    with trio.move_on_after(0.1):
        await step.run(("hang", {}), ("hang", {}))
    assert step.codes == ["TOOL_ABANDONED"] * 2
    other = Step(grace_s=5)
    other.threads = step.threads
    other.tools.register(hang)
    with trio.move_on_after(0.2):
        await other.run(("hang", {}), ("hang", {}))
    assert other.codes[1] == "TOOL_ABORTED_BEFORE_DISPATCH"
    release.set()
    await until(lambda: not step.threads.strays, "the threads' end")


async def test_a_result_that_comes_within_the_grace_counts() -> None:
    started = threading.Event()
    release = threading.Event()

    @tool(effects="read-only")
    def slow() -> str:
        """Take a moment."""
        started.set()
        release.wait(20)
        return "real"

    step = Step()
    step.tools.register(slow)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(step.run, ("slow", {}))
            await until(started.is_set, "the thread")
            scope.cancel()
            release.set()
    assert step.codes == [None]
    assert step.texts == ["real"]


async def test_what_a_thread_raises_is_its_result() -> None:
    @tool(effects="read-only")
    def fail(kind: str) -> None:
        """Fail."""
        raise ValueError("oops") if kind == "value" else SystemExit(1)

    step = Step()
    step.tools.register(fail)
    await step.run(("fail", {"kind": "value"}), ("fail", {"kind": "exit"}))
    assert step.codes == ["TOOL_FAILED", "TOOL_CRASHED"]
