"""A session that grows long is named once, and works on."""

import logging

import pytest
from trio.testing import MockClock

from trioloop import Limits
from trioloop.testing import ScriptedModel, Text, open_test_runtime


async def test_a_long_session_is_named_once_and_works_on(
    caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    model = ScriptedModel([Text("one"), Text("two"), Text("three")])
    with caplog.at_level(logging.WARNING, logger="trioloop.session"):
        async with open_test_runtime(model=model, limits=Limits(session_events_warn=12)) as runtime:
            agent = await runtime.create_agent("long")
            answers = [(await agent.ask("next")).text for _ in range(3)]
    assert answers == ["one", "two", "three"]
    assert [record.getMessage()[:28] for record in caplog.records] == [
        "session 'long' has 12 events"
    ]
