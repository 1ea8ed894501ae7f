"""Old results are cut to head and tail when the window fills; the plugin and its twin alike.

CMP-07, 10, 15, 16, 25.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from examples.prune_results import cut_to
from examples.prune_results import pruning as twin
from tests.agent.reading import facts, reasons
from tests.plugins.conversing import (
    ANSWERS,
    TURNS,
    PlayedModel,
    Turns,
    assert_paired,
    converse,
    give,
    make_results_long,
    nodes,
    results,
    script,
)
from trioloop import Runtime
from trioloop.errors import InvalidInputError
from trioloop.events import ToolResultLogged
from trioloop.hooks import AttemptFailed, Next, Retry
from trioloop.messages import (
    AssistantMessage,
    Block,
    ImageBlock,
    Message,
    TextBlock,
    ToolResultMessage,
    text_of,
)
from trioloop.plugins import pruning
from trioloop.plugins.pruning import ResultsPruned, shortened
from trioloop.testing import (
    Answer,
    CancelPoint,
    Fail,
    ScriptedModel,
    Text,
    cancel_at_every_checkpoint,
    open_test_runtime,
)

Pruning: TypeAlias = Callable[..., AbstractAsyncContextManager[None]]
each_policy = pytest.mark.parametrize("policy", [pruning, twin], ids=["plugin", "twin"])
each_cut = pytest.mark.parametrize("cut", [shortened, cut_to], ids=["plugin", "twin"])
HISTORIES = int(os.environ.get("TRIOLOOP_HISTORIES", "60"))
OVERFLOW = Fail("CONTEXT_WINDOW_EXCEEDED")
LONG = [3_000, 3_000]


def run(test: Callable[[], Any]) -> None:
    """Run one example of a property."""
    trio.run(test, clock=MockClock(autojump_threshold=0))


@each_policy
async def test_old_results_are_cut_once_the_window_fills(policy: Pruning) -> None:
    model = ScriptedModel(script([[LONG, LONG], [[1_000]]]))
    async with (
        open_test_runtime(model=model, tools=[give]) as runtime,
        policy(runtime, window_tokens=4_000, keep=0.5, result_chars_max=200),
    ):
        agent = await converse(runtime, 2)
        first, second, third, fourth, last = results(agent)
        whole = await give.function(3_000)
        assert len(first) <= len(second) <= 200
        assert first.startswith(whole[:50])
        assert first.endswith(whole[-50:])
        assert [third, fourth] == [whole, whole]
        assert last == whole[:1_000]
        assert len(str(model.requests[2].history[2])) < 400
        assert_paired(model.requests[2].history)


@each_policy
async def test_the_whole_result_stays_in_the_log(policy: Pruning) -> None:
    model = ScriptedModel(script([[LONG], [[10]]]))
    async with (
        open_test_runtime(model=model, tools=[give]) as runtime,
        policy(runtime, window_tokens=2_000, result_chars_max=100),
    ):
        agent = await converse(runtime, 2)
    whole, cut = [
        [len(fact.content[0].text) for fact in told if isinstance(fact.content[0], TextBlock)]
        for told in (
            [one for one in facts(agent, ToolResultLogged) if one.replaces is None],
            [one for one in facts(agent, ToolResultLogged) if one.replaces is not None],
        )
    ]
    assert whole == [3_000, 3_000, 10]
    assert len(cut) == 2
    assert max(cut) <= 100


@each_policy
async def test_what_the_model_has_not_seen_is_left_alone(policy: Pruning) -> None:
    model = ScriptedModel(script([[[9_000]]]))
    async with (
        open_test_runtime(model=model, tools=[give]) as runtime,
        policy(runtime, window_tokens=1_000, keep=0),
    ):
        agent = await converse(runtime, 1)
        assert [len(text) for text in results(agent)] == [9_000]


@each_policy
@pytest.mark.parametrize(
    "options",
    [{"window_tokens": 100_000}, {"window_tokens": None}, {"window_tokens": 4_000, "gain": 0.9}],
    ids=["room enough", "unknown window", "little to gain"],
)
async def test_nothing_is_cut_without_need(policy: Pruning, options: dict[str, Any]) -> None:
    model = ScriptedModel(script([[LONG], [LONG]]))
    async with (
        open_test_runtime(model=model, tools=[give]) as runtime,
        policy(runtime, **options),
    ):
        agent = await converse(runtime, 2)
        assert {len(text) for text in results(agent)} == {3_000}


@each_policy
async def test_the_provider_s_own_count_goes_before_any_guess(policy: Pruning) -> None:
    model = ScriptedModel([Answer(one.pieces) for one in script([[LONG], [LONG]])])
    async with (
        open_test_runtime(model=model, tools=[give]) as runtime,
        policy(runtime, window_tokens=2_000, at=0.8, keep=0),
    ):
        agent = await converse(runtime, 2)  # it says 15 tokens each time
        assert {len(text) for text in results(agent)} == {3_000}


# Overflow


@each_policy
async def test_a_request_that_was_too_large_is_tried_again_without_old_results(
    policy: Pruning,
) -> None:
    model = ScriptedModel([*script([[LONG, [3_000]]]), OVERFLOW, Text("it fits")])
    async with open_test_runtime(model=model, tools=[give]) as runtime, policy(runtime):
        agent = await converse(runtime, 1)
        settled = await agent.ask("more?")
        assert (settled.reason, settled.text) == ("completed", "it fits")
        assert len(str(list(model.requests[-1].messages))) < 8_000
        assert len(model.requests) == 5


@each_policy
async def test_an_overflow_stands_where_nothing_more_can_be_cut(policy: Pruning) -> None:
    model = ScriptedModel([*script([[LONG], []]), OVERFLOW, OVERFLOW, Text("never")])
    async with open_test_runtime(model=model, tools=[give]) as runtime, policy(runtime):
        agent = await converse(runtime, 2)
        assert (await agent.ask("more?")).code == "CONTEXT_WINDOW_EXCEEDED"
        assert len(model.requests) == 5


@each_policy
async def test_other_failures_are_left_to_others(policy: Pruning) -> None:
    model = ScriptedModel([*script([[LONG], []]), Fail("RATE_LIMIT"), Text("never")])
    async with open_test_runtime(model=model, tools=[give]) as runtime, policy(runtime):
        agent = await converse(runtime, 2)
        assert (await agent.ask("more?")).code == "RATE_LIMIT"
        assert {len(text) for text in results(agent)} == {3_000}


@each_policy
async def test_who_decided_before_is_not_overruled(
    policy: Pruning, autojump_clock: MockClock
) -> None:
    model = ScriptedModel([*script([[LONG], []]), OVERFLOW, Text("later")])
    async with open_test_runtime(model=model, tools=[give]) as runtime, policy(runtime):

        @runtime.hooks.request_error
        async def wait(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
            return Retry(5)

        agent = await converse(runtime, 2)
        began = trio.current_time()
        assert (await agent.ask("more?")).text == "later"
        assert trio.current_time() - began == 5


# Cancelled


@each_policy
def test_cancelled_at_any_checkpoint_all_old_results_are_cut_or_none(policy: Pruning) -> None:
    async def scenario(point: CancelPoint) -> None:
        model = ScriptedModel([*script([[LONG], []]), OVERFLOW, Text("it fits")])
        async with open_test_runtime(model=model, tools=[give]) as runtime, policy(runtime, keep=0):
            agent = await converse(runtime, 2)
            point.arm(agent.cancel)
            agent.followup("more?")
            await agent.wait_idle()
            point.disarm()
            sizes = {len(text) for text in results(agent)}
            assert len(sizes) == 1
            assert point.reached or max(sizes) <= 2_000
            assert set(reasons(agent)[2:]) <= {"completed", "aborted"}

    assert cancel_at_every_checkpoint(scenario) > 10


# By hand


@each_policy
async def test_old_results_are_cut_when_somebody_asks(policy: Pruning) -> None:
    model = ScriptedModel(script([[LONG], []]))
    async with open_test_runtime(model=model, tools=[give]) as runtime, policy(runtime):
        agent = await converse(runtime, 2)
        assert await agent.compact()
        assert max(map(len, results(agent))) <= 2_000
        assert not await agent.compact()


# Any content


@each_cut
@given(st.text(max_size=400), st.integers(100, 300))
def test_a_cut_is_short_keeps_head_and_tail_and_changes_nothing_twice(
    cut: Callable[..., tuple[Block, ...]], text: str, chars_max: int
) -> None:
    (block,) = cut([TextBlock(text)], chars_max)
    assert isinstance(block, TextBlock)
    assert len(block.text) <= chars_max
    assert cut([block], chars_max) == (block,)
    if len(text) <= chars_max:
        assert block.text == text
    else:
        assert len(block.text) >= chars_max - 1
        assert block.text[:10] == text[:10]
        assert block.text[-10:] == text[-10:]


@each_cut
def test_images_are_named(cut: Callable[..., tuple[Block, ...]]) -> None:
    content = [TextBlock("look:"), ImageBlock("image/png", "A" * 10_000)]
    (block,) = cut(content, 100)
    assert isinstance(block, TextBlock)
    assert block.text.startswith("look:\n[")


# Any history


@each_policy
@settings(max_examples=HISTORIES)
@given(turns=TURNS, keep=st.floats(0, 1), window=st.integers(100, 4_000))
def test_any_history_stays_paired_gets_smaller_and_is_cut_once(
    policy: Pruning, turns: Turns, keep: float, window: int
) -> None:
    async def main() -> None:
        model = ScriptedModel([*script(turns), Text("end")])
        async with open_test_runtime(model=model, tools=[give]) as runtime:
            agent = await converse(runtime, len(turns))
            before = nodes(agent)
            async with policy(runtime, window_tokens=window, keep=keep, gain=0, at=0):
                await agent.ask("cut")
                after = nodes(agent)
                _check_cut([node for _, node in before], [node for _, node in after])
                assert_paired(model.requests[-1].history)
                await agent.compact()
                once = nodes(agent)
                assert not await agent.compact()
                assert nodes(agent) == once

    run(main)


def _check_cut(before: list[Message], after: list[Message]) -> None:
    """Only results changed, and they are shorter."""
    for old, new in zip(before, after, strict=False):
        if old == new:
            continue
        assert isinstance(old, ToolResultMessage)
        assert isinstance(new, ToolResultMessage)
        assert (new.call, new.wire_id, new.is_error) == (old.call, old.wire_id, old.is_error)
        assert len(text_of(new.content)) < len(text_of(old.content))


@each_policy
@settings(max_examples=HISTORIES)
@given(names=st.lists(st.sampled_from(sorted(ANSWERS)), max_size=12), keep=st.sampled_from([0, 1]))
def test_what_providers_sent_stays_paired(policy: Pruning, names: list[str], keep: float) -> None:
    async def main() -> None:
        model = PlayedModel(names)
        async with (
            open_test_runtime(model=model) as runtime,
            policy(runtime, at=0, keep=keep, gain=0, result_chars_max=100),
        ):
            make_results_long(runtime)
            await converse(runtime, 4)
        for request in model.requests:
            assert_paired(request.history)
            if keep == 0:
                assert max(map(len, _seen(request.history)), default=0) <= 100

    run(main)


def _seen(history: Sequence[Message]) -> list[str]:
    """The results that the model has answered to."""
    answers = [place for place, one in enumerate(history) if isinstance(one, AssistantMessage)]
    seen = history[: answers[-1]] if answers else []
    return [text_of(one.content) for one in seen if isinstance(one, ToolResultMessage)]


# The plugin alone


async def test_what_was_done_is_in_the_log() -> None:
    model = ScriptedModel(script([[LONG], [[10]]]))
    async with (
        open_test_runtime(model=model, tools=[give]) as runtime,
        pruning(runtime, window_tokens=2_000, result_chars_max=100),
    ):
        agent = await converse(runtime, 2)
        (pruned,) = facts(agent, ResultsPruned)
        assert (pruned.why, pruned.results) == ("pressure", 2)
        assert pruned.tokens_before == 2 * 754
        assert pruned.tokens_after == 2 * 29


@pytest.mark.parametrize("options", [{"at": 1.1}, {"keep": -1}, {"result_chars_max": 99}])
async def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        with pytest.raises(InvalidInputError, match=f"{next(iter(options))} must be"):
            await _open(runtime, options)


async def _open(runtime: Runtime, options: dict[str, Any]) -> None:
    async with pruning(runtime, **options):
        pass


async def test_it_ends_with_its_block() -> None:
    model = ScriptedModel(script([[LONG], [LONG]]))
    async with open_test_runtime(model=model, tools=[give]) as runtime:
        async with pruning(runtime, window_tokens=1_000):
            pass
        agent = await converse(runtime, 2)
        assert facts(agent, ResultsPruned) == []
