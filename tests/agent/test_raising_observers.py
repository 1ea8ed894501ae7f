"""Whoever watches may raise at any moment; turns and the log don't notice (H5; TRN-20, 21, 28)."""

import logging

import pytest
from trio.testing import MockClock

from tests.agent.reading import reasons, types
from trioloop import tool
from trioloop.agent.agent import Agent
from trioloop.events import Event
from trioloop.testing import Fail, ScriptedModel, Text, ToolCall, open_test_runtime

EVENTS = [
    "agent/inbox/spliced",
    "turn/start",
    "step/start",
    "user/message",
    "request/header",
    "assistant/message",
    "assistant/attempt",
    "tool/call",
    "tool/result",
    "step/end",
    "turn/end",
]
KINDS = [
    "status",
    "inserted",
    "claimed",
    "spliced",
    "stream-start",
    "stream-chunk",
    "stream-end",
    "tool-body-end",
    "error",
    "settled",
]


@tool(effects="read-only")
async def look() -> str:
    """Look."""
    return "seen"


def _model() -> ScriptedModel:
    return ScriptedModel([ToolCall("look"), Fail("SERVER"), Text("hi")])


async def _work(agent: Agent) -> list[str]:
    """One turn that fails in its second step, and one that completes."""
    await agent.ask("one")
    await agent.ask("two")
    return types(agent)


async def test_an_observer_that_raises_at_any_event_changes_no_log(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    async with open_test_runtime(model=_model(), tools=[look]) as runtime:
        plain = await _work(await runtime.create_agent("a"))
    for kind in EVENTS:

        def raise_at(event: Event, kind: str = kind) -> None:
            if event.type == kind:
                raise ValueError(kind)

        async with open_test_runtime(model=_model(), tools=[look]) as runtime:
            agent = await runtime.create_agent("a")
            agent.session.observe(raise_at)
            assert await _work(agent) == plain, kind
            assert reasons(agent) == ["error", "completed"]
            await agent.wait_idle()


@pytest.mark.parametrize("kind", [*KINDS, "*"])
async def test_a_listener_that_raises_at_any_notification_changes_no_log(
    kind: str, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    calls: list[object] = []

    def boom(told: object) -> None:
        calls.append(told)
        raise ValueError("boom")

    async with open_test_runtime(model=_model(), tools=[look]) as runtime:
        agent = await runtime.create_agent("a")
        agent.on(kind, boom)
        runtime.on(kind, boom)
        await _work(agent)
        assert reasons(agent) == ["error", "completed"]
    assert calls != []
