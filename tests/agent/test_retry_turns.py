"""Turns that repeat a turn whose attempt failed (R2)."""

import pytest
import trio
from trio.testing import MockClock

from tests.agent.listening import retrying
from tests.agent.reading import ends, facts, reasons, said, types
from trioloop.agent.notifications import Settled, TurnFailed
from trioloop.events import Event, StepEnded, TurnStarted
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import AttemptFailed, Decision, Enter, PreStep, Retry
from trioloop.limits import Limits
from trioloop.testing import Fail, ScriptedModel, Text, Wait, open_test_runtime


async def test_a_fresh_turn_repeats_the_turn_in_one_append(autojump_clock: MockClock) -> None:
    model = ScriptedModel([Fail("SERVER"), Text("hi")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        told: list[object] = []
        agent.on("status", told.append)
        agent.hooks.request_error.add(retrying(2, fresh_turn=True))
        settled = await agent.ask("one")
        assert (settled.turn, settled.turns, settled.reason) == (2, (1, 2), "completed")
        assert types(agent)[-8:] == [
            "assistant/attempt",
            "step/end",
            "turn/end",
            "turn/start",
            "step/start",
            "assistant/message",
            "step/end",
            "turn/end",
        ]
        assert [one.retry_of for one in facts(agent, TurnStarted)] == [None, 1]
        assert reasons(agent) == ["error", "completed"]
        assert said(model.requests[1]) == ["U one"]
        assert trio.current_time() == 2
        await agent.wait_idle()
        assert len(told) == 2


async def test_a_retry_turn_passes_the_whole_entry_again(autojump_clock: MockClock) -> None:
    seen: list[tuple[int, int, int]] = []

    async def look(step: PreStep, next: Next[Decision]) -> Decision:
        seen.append((step.turn, step.step, len(step.messages)))
        return await next()

    async with open_test_runtime(model=ScriptedModel([Fail("SERVER"), Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(look)
        agent.hooks.request_error.add(retrying(fresh_turn=True))
        await agent.ask("one")
    assert seen == [(1, 1, 1), (2, 1, 0)]


async def test_a_retry_turn_claims_next_step_and_leaves_the_queue(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([Fail("SERVER"), Text("hi"), Text("ho")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request_error.add(retrying(5, fresh_turn=True))
        agent.followup("one")
        agent.followup("two")
        await trio.sleep(1)
        agent.inject("context")
        await agent.wait_idle()
        assert said(model.requests[1]) == ["U one", "U context"]
        assert said(model.requests[2]) == ["U one", "U context", "A hi", "U two"]


async def test_retry_turns_keep_the_chains_failures_and_are_limited(
    autojump_clock: MockClock,
) -> None:
    seen: list[int] = []

    async def retry(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
        seen.append(len(failed.earlier))
        return Retry(fresh_turn=True)

    model = ScriptedModel(lambda _: Fail("SERVER", "down"))
    async with open_test_runtime(model=model, limits=Limits(retry_turns_max=2)) as runtime:
        agent = await runtime.create_agent("a")
        told: list[Settled] = []
        failed: list[TurnFailed] = []
        agent.on("settled", told.append)
        agent.on("error", failed.append)
        agent.hooks.request_error.add(retry)
        settled = await agent.ask("one")
        assert settled.turns == (1, 2, 3)
        assert (settled.reason, settled.code) == ("error", "SERVER")
        assert reasons(agent) == ["error"] * 3
        assert told == [settled]
        assert [one.turn for one in failed] == [1, 2, 3]
    assert seen == [0, 1, 2]


async def test_a_retry_turn_that_drops_its_input_still_owes_its_request(
    autojump_clock: MockClock,
) -> None:
    async def drop(step: PreStep, next: Next[Decision]) -> Decision:
        return Enter(()) if step.turn == 2 else await next()

    model = ScriptedModel([Fail("SERVER"), Text("hi")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(drop)
        agent.hooks.request_error.add(retrying(5, fresh_turn=True))
        agent.followup("one")
        await trio.sleep(1)
        agent.inject("context")
        await agent.wait_idle()
        assert said(model.requests[1]) == ["U one"]
        assert [one.list for one in ends(agent)[1].unadmitted] == ["next-step"]


@pytest.mark.parametrize("discards", [False, True])
async def test_a_cancel_before_the_fresh_turn_opens_ends_the_chain(
    discards: bool, autojump_clock: MockClock
) -> None:
    model = ScriptedModel([Fail("SERVER")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request_error.add(retrying(60, fresh_turn=True))
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel("why", discard_inbox=discards)
        await agent.wait_idle()
        assert trio.current_time() == 1
        assert [(end.reason, end.cause) for end in ends(agent)] == [("aborted", "why")]


async def test_a_cancel_in_a_retry_turn_settles_the_whole_chain(autojump_clock: MockClock) -> None:
    model = ScriptedModel([Fail("SERVER"), [Wait(5), Text("hi")]])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request_error.add(retrying(fresh_turn=True))
        async with trio.open_nursery() as nursery:
            got: list[Settled] = []

            async def ask() -> None:
                got.append(await agent.ask("one"))

            nursery.start_soon(ask)
            await trio.sleep(1)
            agent.cancel("why")
        assert [(one.turns, one.reason, one.cause) for one in got] == [((1, 2), "aborted", "why")]


async def test_a_fresh_turn_may_follow_retries_in_the_step(autojump_clock: MockClock) -> None:
    answers = [Retry(), Retry(fresh_turn=True), None]

    async def retry(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
        counts.append(len(failed.earlier))
        return answers.pop(0)

    counts: list[int] = []
    model = ScriptedModel([Fail("SERVER"), Fail("SERVER"), Fail("AUTH")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request_error.add(retry)
        settled = await agent.ask("one")
        assert settled.code == "AUTH"
    assert counts == [0, 1, 2]


async def test_a_cancel_as_the_step_ends_outranks_a_retry_turn(autojump_clock: MockClock) -> None:
    def observe(event: Event) -> None:
        if isinstance(event.data, StepEnded):
            agent.cancel("observer")

    model = ScriptedModel([Fail("SERVER")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request_error.add(retrying(fresh_turn=True))
        agent.session.observe(observe)
        settled = await agent.ask("one")
        assert (settled.reason, settled.cause, settled.turns) == ("aborted", "observer", (1,))
        assert len(model.requests) == 1
