"""Compaction of any history: paired, smaller each time, once and no more; never without progress.

B39; the histories are drawn, or made of what providers really sent.
"""

import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from tests.plugins.conversing import (
    ANSWERS,
    TURNS,
    PlayedModel,
    Summarising,
    Turns,
    assert_paired,
    converse,
    give,
    make_results_long,
    nodes,
    script,
)
from trioloop import Agent, ByteEstimator, Event, Request
from trioloop.events import AssistantAttemptLogged, UserMessageLogged
from trioloop.messages import Message, UserMessage
from trioloop.models.scripted import Entry
from trioloop.plugins import compaction
from trioloop.plugins.compaction import (
    CompactionEnded,
    CompactionStarted,
    CompactionSummarised,
    SummaryError,
)
from trioloop.plugins.compaction.choosing import chosen_cut, cuts
from trioloop.testing import Fail, Text, open_test_runtime

HISTORIES = int(os.environ.get("TRIOLOOP_HISTORIES", "60"))
"""How many of each kind are tried."""

ESTIMATOR = ByteEstimator()
PARTS = st.floats(0, 1)


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Run one example of a property."""
    trio.run(test, clock=MockClock(autojump_threshold=0))


def tokens(request: Request) -> int:
    """The size of a request, as the plugin guesses it."""
    return ESTIMATOR.estimate(list(request.messages))


def check_log(agent: Agent) -> None:
    """Brackets are closed, one at a time; each replacement is in one, and made all smaller."""
    began: CompactionStarted | None = None
    for event in agent.session.events():
        data = event.data
        if isinstance(data, CompactionStarted):
            assert began is None
            began = data
        elif isinstance(data, CompactionSummarised):
            assert began is not None
            assert data.tokens < began.tokens
        elif isinstance(data, UserMessageLogged) and data.replaces is not None:
            assert began is not None
            assert data.replaces == began.history
        elif isinstance(data, CompactionEnded):
            assert began is not None
            began = None
    assert began is None


@settings(max_examples=HISTORIES)
@given(TURNS)
def test_every_cut_that_is_accepted_leaves_calls_with_their_results(turns: Turns) -> None:
    async def main() -> None:
        async with open_test_runtime(model=Summarising(script(turns)), tools=[give]) as runtime:
            agent = await converse(runtime, len(turns))
            surface, history = agent.session.state.surface, nodes(agent)
            messages = [message for _, message in history]
            for place in range(1, len(history) + 1):
                fault = surface.fault_in_range(history[0][0], history[place - 1][0])
                assert (place in cuts(messages)) == (fault is None)
                if fault is None:
                    assert_paired(messages[:place])
                    assert_paired(messages[place:])

    run(main)


@settings(max_examples=HISTORIES)
@given(turns=TURNS, keep_tokens=st.integers(0, 3_000), least_tokens=st.integers(0, 500))
def test_what_was_cut_is_not_cut_again(turns: Turns, keep_tokens: int, least_tokens: int) -> None:
    def chosen(history: Sequence[Message]) -> int | None:
        return chosen_cut(history, ESTIMATOR, keep_tokens=keep_tokens, least_tokens=least_tokens)

    async def main() -> None:
        async with open_test_runtime(model=Summarising(script(turns)), tools=[give]) as runtime:
            agent = await converse(runtime, len(turns))
            history = [message for _, message in nodes(agent)]
            cut = chosen(history)
            if cut is not None:
                summary = UserMessage((), source="compaction")
                assert chosen([summary, *history[cut:]]) is None

    run(main)


@settings(max_examples=HISTORIES)
@given(turns=TURNS, window=st.integers(200, 4_000), at=PARTS, keep=PARTS)
def test_any_history_stays_paired_and_gets_smaller(
    turns: Turns, window: int, at: float, keep: float
) -> None:
    async def main() -> None:
        model = Summarising([*script(turns), Text("end")])
        async with (
            open_test_runtime(model=model, tools=[give]) as runtime,
            compaction(runtime, window_tokens=window, at=at, keep=keep),
        ):
            agent = await converse(runtime, len(turns) + 1)
            await agent.compact()
            shortest = nodes(agent)
            assert not await agent.compact()
            assert nodes(agent) == shortest
            check_log(agent)
        for request in model.steps:
            assert_paired(request.history)

    run(main)


@settings(max_examples=HISTORIES)
@given(names=st.lists(st.sampled_from(sorted(ANSWERS)), max_size=12), keep=PARTS)
def test_what_providers_sent_stays_paired(names: list[str], keep: float) -> None:
    async def main() -> None:
        model = PlayedModel(names)
        async with (
            open_test_runtime(model=model) as runtime,
            compaction(runtime, window_tokens=2_000, at=0.5, keep=keep),
        ):
            make_results_long(runtime)
            agent = await converse(runtime, 4)
            with suppress(SummaryError):  # some of them call tools whatever they are asked
                await agent.compact()
            check_log(agent)
        for request in model.requests:
            assert_paired(request.history)

    run(main)


class Narrow(Summarising):
    """A model whose window really ends somewhere."""

    def __init__(self, turns: Turns, window: int) -> None:
        super().__init__([*script(turns), Text("end")])
        self._window = window

    def _next(self, request: Request) -> Entry:
        if tokens(request) > self._window:
            return Fail("CONTEXT_WINDOW_EXCEEDED")
        return super()._next(request)


@settings(max_examples=HISTORIES)
@given(turns=TURNS, window=st.integers(50, 4_000), keep=PARTS, recoveries_max=st.integers(0, 3))
def test_each_overflow_has_one_attempt_at_most_and_none_without_progress(
    turns: Turns, window: int, keep: float, recoveries_max: int
) -> None:
    async def main() -> None:
        model = Narrow(turns, window)
        async with (
            open_test_runtime(model=model, tools=[give]) as runtime,
            compaction(runtime, keep=keep, recoveries_max=recoveries_max),
        ):
            agent = await converse(runtime, len(turns) + 1)
            check_log(agent)
            events = agent.session.events()
            for count in _recoveries(events):
                assert count <= 1
        for one, following in zip(model.steps, model.steps[1:], strict=False):
            assert_paired(following.history)
            if tokens(one) > window and _is_retry(one, following):
                assert tokens(following) < tokens(one)

    run(main)


def _recoveries(events: Sequence[Event]) -> list[int]:
    """How many compactions began behind each failed attempt, before the next event of its kind."""
    counts: list[int] = []
    for event in events:
        if isinstance(event.data, AssistantAttemptLogged):
            counts.append(0)
        elif isinstance(event.data, CompactionStarted):
            counts[-1] += 1
    return counts


def _is_retry(one: Request, following: Request) -> bool:
    """Whether a request was made in the same step as the one before: nothing was added."""
    return one.history[-1] == following.history[-1]
