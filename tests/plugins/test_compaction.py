"""Compaction before a step: a summary stands for an older part, or all stays as it was.

CMP-09, 10, 12 to 16, 22; B39, B42.
"""

import logging
from typing import Any

import pytest

from tests.agent.reading import facts, said, types
from tests.log.writing import Note
from tests.plugins.compacting import LONG, OVERFLOW, SUMMARY, opened, outcomes
from tests.plugins.conversing import (
    Summarising,
    assert_paired,
    converse,
    give,
    nodes,
    script,
)
from trioloop import Event, MemoryStore
from trioloop.errors import InvalidInputError
from trioloop.events import AsideEnded, UserMessageLogged
from trioloop.hooks import Next, PreStep, Reject
from trioloop.messages import text_of
from trioloop.models.scripted import Entry
from trioloop.plugins import compaction
from trioloop.plugins.compaction import (
    CompactionStarted,
    CompactionSummarised,
    SummaryError,
    compaction_state,
)
from trioloop.ports import Capabilities
from trioloop.testing import Answer, Fail, Text, ToolCall, open_test_runtime

# Pressure


async def test_the_older_part_is_summarised_once_the_window_fills() -> None:
    model = Summarising([*script([[LONG], [LONG]]), Text("end")])
    async with opened(model, window_tokens=3_900, keep=0.45) as runtime:
        agent = await converse(runtime, 2)
        assert outcomes(agent) == []
        await agent.ask("and now? " * 50)
        history = said(model.steps[-1])
        assert history[:4] == [SUMMARY, "A That was it.", "U question 1", "A I look."]
        assert history[-2] == "A That was it."
        assert_paired(model.steps[-1].history)
        assert outcomes(agent) == ["replaced"]


async def test_the_window_is_what_the_provider_says() -> None:
    capabilities = Capabilities(context_window=1_800)
    model = Summarising([*script([[LONG], []])], capabilities=capabilities)
    async with opened(model) as runtime:
        agent = await converse(runtime, 2)
        assert said(model.steps[-1]) == [SUMMARY, "A That was it.", "U question 1"]
        assert outcomes(agent) == ["replaced"]


async def test_without_a_known_window_nothing_presses() -> None:
    model = Summarising(script([[LONG], [LONG]]))
    async with opened(model) as runtime:
        agent = await converse(runtime, 2)
        assert (model.asides, outcomes(agent)) == ([], [])


async def test_early_steps_of_a_long_turn_are_summarised_while_it_goes_on() -> None:
    model = Summarising(script([[LONG, LONG, LONG]]))
    async with opened(model, window_tokens=3_000, keep=0.1) as runtime:
        agent = await converse(runtime, 1)
        assert outcomes(agent) == ["replaced"] * 2
        assert said(model.steps[2])[:2] == [SUMMARY, "A I look."]
        assert types(agent).count("turn/start") == 1
        for request in model.requests:
            if request not in model.asides:
                assert_paired(request.history)


async def test_the_model_is_shown_the_conversation_as_it_went_on() -> None:
    model = Summarising(script([[LONG], [LONG]]))
    async with opened(model, window_tokens=2_000, keep=0) as runtime:
        await converse(runtime, 2)
    (first, *_), step = model.asides, model.steps[2]
    assert first.tools == step.tools
    assert first.system == step.system
    assert list(first.history)[:-1] == list(step.history)
    assert said(first)[-1].startswith("U Summarise this conversation")


async def test_the_bracket_tells_what_was_summarised_and_by_which_answer() -> None:
    model = Summarising(script([[LONG], []]))
    async with opened(model, window_tokens=1_500) as runtime:
        agent = await converse(runtime, 1)
        before = nodes(agent)
        await agent.ask("question 1")
        (start,), (summary,) = facts(agent, CompactionStarted), facts(agent, CompactionSummarised)
        assert (start.why, start.history) == ("pressure", (before[0][0], before[-2][0]))
        assert 1_500 < start.tokens < 1_600
        assert summary.tokens < 20
        answered = agent.session.events()[summary.aside].data
        assert isinstance(answered, AsideEnded)
        told = types(agent)
        first = told.index("compaction/start")
        assert told[first : first + 6] == [
            "compaction/start",
            "aside/start",
            "aside/end",
            "compaction/summary",
            "user/message",
            "compaction/end",
        ]


async def test_a_summary_is_summarised_again_with_what_came_since() -> None:
    model = Summarising([*script([[LONG]] * 3), Text("end")], Text("one"), Text("two"))
    async with opened(model, window_tokens=2_000) as runtime:
        agent = await converse(runtime, 4)
        assert said(model.asides[1])[0].endswith("\n\none")
        assert outcomes(agent)[:2] == ["replaced"] * 2


@pytest.mark.parametrize("bad", [Fail("RATE_LIMIT"), Text("x" * 9_000), Text("  ")])
async def test_a_step_goes_on_where_its_history_cannot_be_compacted(
    bad: Entry, caplog: pytest.LogCaptureFixture
) -> None:
    model = Summarising(script([[LONG], [[10], [10]]]), bad, bad)
    async with opened(model, window_tokens=1_000) as runtime:
        with caplog.at_level(logging.WARNING, "trioloop.plugins"):
            agent = await converse(runtime, 2)
        assert said(model.steps[-1])[:2] == ["U question 0", "A I look."]
        assert outcomes(agent) == ["not smaller" if bad == Text("x" * 9_000) else "failed"]
        assert ("can't be compacted" in caplog.text) == (bad != Text("x" * 9_000))


async def test_a_rejected_step_is_not_compacted_for() -> None:
    model = Summarising(script([[LONG]]))
    async with opened(model, window_tokens=1_000) as runtime:
        agent = await converse(runtime, 1)

        @agent.hooks.pre_step
        async def reject(step: PreStep, next: Next[Any]) -> Reject:
            return Reject("no")

        await agent.ask("more?")
        assert model.asides == []


async def test_facts_that_others_log_meanwhile_disturb_nothing() -> None:
    model = Summarising(script([[LONG], []]))
    async with opened(model, window_tokens=1_500) as runtime:
        agent = await converse(runtime, 1)

        def note(event: Event) -> None:
            if isinstance(event.data, CompactionStarted | AsideEnded):
                agent.session.append(Note("meanwhile"))

        with agent.session.observe(note):
            await agent.ask("question 1")
        assert outcomes(agent) == ["replaced"]
        assert len(facts(agent, Note)) == 2


# What a model answers


@pytest.mark.parametrize("instead", [[ToolCall("give", chars=1)], Fail("MALFORMED_RESPONSE")])
async def test_a_model_that_calls_tools_instead_is_asked_again_without_them(instead: Entry) -> None:
    """Also where its provider can't read the call, and says that it failed."""
    model = Summarising(script([[[3_000]], []]), instead, Text("short"))
    async with opened(model, window_tokens=800) as runtime:
        agent = await converse(runtime, 2)
        first, second = model.asides
        assert first.tools
        assert second.tools == ()
        assert len(second.history) == 1
        (question,) = said(second)
        assert question.startswith("U User: question 0\n\nAssistant: I look.\n\nCall of give: {")
        assert "\n\nResult: abcdef" in question
        assert outcomes(agent) == ["replaced"]
        assert types(agent).count("tool/call") == 1


@pytest.mark.parametrize(
    "bad",
    [
        [Text("I look."), ToolCall("give", chars=1)],
        Answer([Text("I can't.")], "refusal"),
        Answer([Text("I")], "content_filter"),
    ],
)
async def test_two_useless_answers_are_a_failure_and_change_nothing(bad: Entry) -> None:
    model = Summarising(script([[LONG]]), bad, bad)
    async with opened(model) as runtime:
        agent = await converse(runtime, 1)
        before = nodes(agent)
        with pytest.raises(SummaryError):
            await agent.compact()
        assert nodes(agent) == before
        assert outcomes(agent) == ["failed"]


async def test_a_summary_that_was_cut_short_is_still_one() -> None:
    model = Summarising(script([[LONG]]), Answer([Text("As far as I came")], "length"))
    async with opened(model) as runtime:
        agent = await converse(runtime, 1)
        assert await agent.compact()


# The log


async def test_a_bracket_that_a_crash_left_open_concerns_nobody() -> None:
    store = MemoryStore()
    model = Summarising([*script([[LONG]]), OVERFLOW, Text("it fits")])
    async with open_test_runtime(model=model, tools=[give], store=store) as runtime:
        agent = await converse(runtime, 1)
        (first, _), *_, (last, _) = nodes(agent)
        agent.session.append(CompactionStarted("overflow", (first, last), 1))
    async with open_test_runtime(
        model=model, tools=[give], store=store, plugins=[compaction]
    ) as runtime:
        agent = await runtime.resume_agent("a")
        assert (await agent.ask("more?")).text == "it fits"
        assert outcomes(agent) == ["replaced"]


async def test_the_original_messages_stay_in_the_log() -> None:
    model = Summarising(script([[LONG], []]))
    async with opened(model, window_tokens=1_000) as runtime:
        agent = await converse(runtime, 2)
        told = [text_of(fact.message.content) for fact in facts(agent, UserMessageLogged)]
        assert told[0] == "question 0"
        assert len(facts(agent, UserMessageLogged)) == 3


async def test_the_state_is_a_fold_of_the_log() -> None:
    model = Summarising([*script([[LONG]]), OVERFLOW, OVERFLOW])
    async with opened(model) as runtime:
        agent = await converse(runtime, 2)
        state = agent.session.folded(compaction_state)
        assert (state.replaced, state.overflows, state.gave_up) == (1, 1, False)
        assert compaction_state(agent.session.events()) == state


@pytest.mark.parametrize("options", [{"at": 2}, {"keep": -0.1}, {"recoveries_max": -1}])
async def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    async with open_test_runtime(model=Summarising([])) as runtime:
        with pytest.raises(InvalidInputError, match=f"{next(iter(options))} must be"):
            async with compaction(runtime, **options):
                pass
