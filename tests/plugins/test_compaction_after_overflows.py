"""Overflows: tried again with a shorter history, or failing as they did (R6).

CMP-04 to 07, 09.
"""

from functools import partial

import pytest

from tests.agent.reading import facts, said, types
from tests.plugins.compacting import LONG, OVERFLOW, SUMMARY, opened, outcomes
from tests.plugins.conversing import (
    Summarising,
    converse,
    give,
    script,
)
from trioloop.hooks import AttemptFailed, Next, Retry
from trioloop.models.scripted import Entry
from trioloop.plugins import compaction, pruning
from trioloop.plugins.compaction import (
    CompactionStarted,
)
from trioloop.testing import Fail, Text, open_test_runtime


async def test_a_request_that_was_too_large_is_tried_again_with_a_summary() -> None:
    model = Summarising([*script([[LONG], [LONG]]), OVERFLOW, Text("it fits")])
    async with opened(model) as runtime:
        agent = await converse(runtime, 2)
        settled = await agent.ask("more?")
        assert (settled.reason, settled.text) == ("completed", "it fits")
        assert said(model.steps[-1]) == [SUMMARY, "A That was it.", "U more?"]
        assert [start.why for start in facts(agent, CompactionStarted)] == ["overflow"]


@pytest.mark.parametrize(("recoveries_max", "tried"), [(0, 0), (1, 1), (2, 2)])
async def test_overflows_are_recovered_from_only_so_often(recoveries_max: int, tried: int) -> None:
    more = [OVERFLOW, OVERFLOW, OVERFLOW]
    model = Summarising([*script([[LONG], [LONG], [LONG]]), *more])
    async with opened(model, recoveries_max=recoveries_max, keep=0.5) as runtime:
        agent = await converse(runtime, 3)
        settled = await agent.ask("more?")
        assert (settled.reason, settled.code) == ("error", "CONTEXT_WINDOW_EXCEEDED")
        assert len(outcomes(agent)) == tried
        assert len(model.steps) == 6 + 1 + tried


async def test_without_recoveries_a_filling_window_is_still_relieved() -> None:
    model = Summarising([*script([[LONG]]), OVERFLOW])
    async with opened(model, recoveries_max=0, window_tokens=1_500) as runtime:
        agent = await converse(runtime, 2)
        assert [start.why for start in facts(agent, CompactionStarted)] == ["pressure"]


async def test_each_answer_allows_another_recovery() -> None:
    model = Summarising([*script([[LONG]]), OVERFLOW, *script([[LONG]]), OVERFLOW, Text("end")])
    async with opened(model) as runtime:
        agent = await converse(runtime, 3)
        assert outcomes(agent) == ["replaced"] * 2
        assert types(agent).count("assistant/attempt") == 2


@pytest.mark.parametrize(
    "bad", [Fail("SERVER"), Fail("CONTEXT_WINDOW_EXCEEDED"), Text("x" * 9_000)]
)
async def test_an_overflow_keeps_its_failure_where_nothing_helps(bad: Entry) -> None:
    model = Summarising([*script([[LONG]]), OVERFLOW], bad)
    async with opened(model) as runtime:
        agent = await converse(runtime, 1)
        settled = await agent.ask("more?")
        assert (settled.reason, settled.code) == ("error", "CONTEXT_WINDOW_EXCEEDED")
        assert len(model.asides) == 1


async def test_with_nothing_to_summarise_nobody_is_asked() -> None:
    model = Summarising([OVERFLOW])
    async with opened(model) as runtime:
        agent = await runtime.create_agent("a")
        assert (await agent.ask("a book")).code == "CONTEXT_WINDOW_EXCEEDED"
        assert (model.asides, outcomes(agent)) == ([], [])


async def test_other_failures_are_left_to_others() -> None:
    model = Summarising([*script([[LONG]]), Fail("RATE_LIMIT")])
    async with opened(model) as runtime:
        agent = await converse(runtime, 1)
        assert (await agent.ask("more?")).code == "RATE_LIMIT"
        assert model.asides == []


async def test_who_decided_before_is_not_overruled() -> None:
    model = Summarising([*script([[LONG]]), OVERFLOW])
    async with opened(model) as runtime:

        @runtime.hooks.request_error
        async def again(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
            assert await next() is None
            return Retry()

        agent = await converse(runtime, 1)
        assert (await agent.ask("more?")).code == "CONTEXT_WINDOW_EXCEEDED"  # R6
        assert model.asides == []


# Beside pruning


@pytest.mark.parametrize("order", ["pruning first", "compaction first"])
async def test_results_are_pruned_before_anything_is_summarised(order: str) -> None:
    model = Summarising([*script([[LONG], []]), OVERFLOW, Text("it fits")])
    prunes, compacts = partial(pruning, keep=0.1), partial(compaction)
    plugins = [prunes, compacts] if order == "pruning first" else [compacts, prunes]
    async with open_test_runtime(model=model, tools=[give], plugins=plugins) as runtime:
        agent = await converse(runtime, 2)
        assert (await agent.ask("more?")).text == "it fits"
        assert "pruning/pruned" in types(agent)
        assert model.asides == []


@pytest.mark.parametrize("order", ["pruning first", "compaction first"])
async def test_a_part_is_summarised_where_pruning_was_not_enough(order: str) -> None:
    model = Summarising([*script([[LONG], []]), OVERFLOW, OVERFLOW, Text("it fits")])
    prunes, compacts = partial(pruning), partial(compaction)
    plugins = [prunes, compacts] if order == "pruning first" else [compacts, prunes]
    async with open_test_runtime(model=model, tools=[give], plugins=plugins) as runtime:
        agent = await converse(runtime, 2)
        assert (await agent.ask("more?")).text == "it fits"
        assert outcomes(agent) == ["replaced"]
