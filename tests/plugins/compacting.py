"""What tests of compaction share: a runtime that compacts, and what came of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.agent.reading import facts
from tests.plugins.conversing import (
    Summarising,
    give,
)
from trioloop import Agent, Runtime
from trioloop.plugins import compaction
from trioloop.plugins.compaction import (
    CompactionEnded,
)
from trioloop.testing import Fail, open_test_runtime

OVERFLOW = Fail("CONTEXT_WINDOW_EXCEEDED")
LONG = [3_000, 3_000]
SUMMARY = "U [A summary of the conversation up to here]\n\nWhat was said."


@asynccontextmanager
async def opened(model: Summarising, **options: Any) -> AsyncIterator[Runtime]:
    """A runtime that compacts."""
    async with (
        open_test_runtime(model=model, tools=[give]) as runtime,
        compaction(runtime, **options),
    ):
        yield runtime


def outcomes(agent: Agent) -> list[str]:
    """What came of each compaction."""
    return [end.outcome for end in facts(agent, CompactionEnded)]
