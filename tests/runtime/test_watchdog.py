"""What blocks Trio's thread is named by another one (fault 6). In real time.

A body blocks until its name is in the log, so that no time is asserted.
"""

import logging
import threading
import time
from collections.abc import Callable

import pytest
import trio

from trioloop import Limits, ToolContext, open_runtime, tool
from trioloop.hooks import Decision, Next, PreStep
from trioloop.testing import ScriptedModel, Text, ToolCall, open_test_runtime

LIMITS = Limits(block_warning_s=0.05, stuck_warning_s=0.05)


def watchdogs() -> list[threading.Thread]:
    """The threads that watch."""
    return [thread for thread in threading.enumerate() if thread.name == "trioloop watchdog"]


def block_until(condition: Callable[[], bool]) -> None:
    """Block this thread, for some seconds at most."""
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)


async def test_a_body_that_blocks_is_named_and_the_loop_recovers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @tool(effects="read-only")
    async def careless(context: ToolContext) -> str:
        """Block Trio's thread."""
        block_until(lambda: len(caplog.records) > 1)
        return "done"

    model = ScriptedModel([ToolCall("careless"), Text("hi")])
    with caplog.at_level(logging.WARNING, "trioloop.runtime"):
        async with open_test_runtime(model=model, tools=[careless], limits=LIMITS) as runtime:
            agent = await runtime.create_agent("main")
            settled = await agent.ask("go")
    assert settled.text == "hi"
    first, again, *_ = [record.getMessage() for record in caplog.records]
    assert first.startswith("Trio's thread has been blocked for ")
    assert "It is the tool careless (call_1_1_0), at " in first
    assert "test_watchdog.py" in first
    assert "in block_until" in first
    assert "careless" in again


@pytest.mark.parametrize("timeout_s", [None, 60])
async def test_a_listener_that_blocks_is_named(
    caplog: pytest.LogCaptureFixture, timeout_s: float | None
) -> None:
    async def thoughtless(step: PreStep, next: Next[Decision]) -> Decision:
        decision = await next()
        block_until(lambda: bool(caplog.records))
        return decision

    with caplog.at_level(logging.WARNING, "trioloop.runtime"):
        async with open_test_runtime(model=ScriptedModel([Text("hi")]), limits=LIMITS) as runtime:
            runtime.hooks.pre_step.add(thoughtless, timeout_s=timeout_s)
            agent = await runtime.create_agent("main")
            await agent.ask("go")
    assert "It is the listener" in caplog.text
    assert "thoughtless" in caplog.text


async def test_code_that_we_did_not_call_is_named_by_its_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "trioloop.runtime"):
        async with open_test_runtime(model=ScriptedModel([]), limits=LIMITS):
            block_until(lambda: bool(caplog.records))
    assert "It is at " in caplog.text
    assert "in block_until" in caplog.text


async def test_a_loop_that_waits_is_not_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "trioloop.runtime"):
        async with open_test_runtime(model=ScriptedModel([]), limits=Limits(block_warning_s=0.5)):
            await trio.sleep(1)
    assert not caplog.records


async def test_a_runtime_without_the_limit_is_not_watched() -> None:
    async with open_runtime(model=ScriptedModel([]), limits=Limits(block_warning_s=None)):
        assert watchdogs() == []


async def test_several_runtimes_share_a_watchdog_and_leave_no_thread() -> None:
    assert watchdogs() == []
    async with open_runtime(model=ScriptedModel([])):
        async with open_runtime(model=ScriptedModel([])):
            assert len(watchdogs()) == 1
        assert len(watchdogs()) == 1
    assert watchdogs() == []
