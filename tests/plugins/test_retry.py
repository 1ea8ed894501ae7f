"""The retry plugin follows the failed model's policy, in the open step (R1, R3, P11; RTY)."""

import random
from functools import partial

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import ends, facts, said, types
from trioloop.agent.agent import Agent
from trioloop.errors import ModelFailure
from trioloop.events import AssistantAttemptLogged, CallConfig
from trioloop.hooks import AttemptFailed, Next, RequestProposal, Retry
from trioloop.models.scripted import Entry
from trioloop.plugins import retry
from trioloop.ports import RetryPolicy
from trioloop.testing import Fail, ScriptedModel, Stall, Text, Wait, open_test_runtime

BUSY = Fail("OVERLOADED")
STEADY = RetryPolicy(jitter=0)
PLAIN = partial(retry, random=lambda: 0.0)


def _times(agent: Agent) -> list[float]:
    """When each attempt was recorded, in seconds."""
    kinds = ("assistant/attempt", "assistant/message")
    return [event.time / 1000 for event in agent.session.events() if event.type in kinds]


async def test_a_failure_that_may_pass_is_retried_within_its_step(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([Fail("TRANSPORT"), Text("up again")])
    async with open_test_runtime(model=model, plugins=[PLAIN]) as runtime:
        agent = await runtime.create_agent("a")
        settled = await agent.ask("one")
        assert (settled.reason, settled.text) == ("completed", "up again")
        assert types(agent).count("step/start") == 1
        assert [said(request) for request in model.requests] == [["U one"]] * 2
        assert _times(agent) == [0, 0.5]


async def test_the_second_request_comes_only_after_the_wait(autojump_clock: MockClock) -> None:
    model = ScriptedModel([Fail("RATE_LIMIT", retry_after=7), Text("hi")])
    async with open_test_runtime(model=model, plugins=[PLAIN]) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(6.9)
        assert len(model.requests) == 1
        assert len(facts(agent, AssistantAttemptLogged)) == 1
        await agent.wait_idle()
        assert trio.current_time() == 7
        assert len(model.requests) == 2


async def test_a_wait_longer_than_is_followed_ends_the_turn(autojump_clock: MockClock) -> None:
    model = ScriptedModel([Fail("RATE_LIMIT", retry_after=99_999)])
    async with open_test_runtime(model=model, plugins=[PLAIN]) as runtime:
        settled = await (await runtime.create_agent("a")).ask("one")
        assert (settled.reason, settled.code) == ("error", "RATE_LIMIT")
        assert trio.current_time() == 0


async def test_an_endless_failure_is_retried_as_often_as_the_policy_says(
    autojump_clock: MockClock,
) -> None:
    policy = RetryPolicy(retries_max=4, first_delay_s=1, delay_max_s=3, jitter=0)
    model = ScriptedModel(lambda _: BUSY, retry_policy=policy)
    async with open_test_runtime(model=model, plugins=[PLAIN]) as runtime:
        agent = await runtime.create_agent("a")
        settled = await agent.ask("one")
        assert (settled.reason, settled.code) == ("error", "OVERLOADED")
        assert _times(agent) == [0, 1, 3, 6, 9]


@pytest.mark.parametrize("code", ["AUTH", "QUOTA", "INVALID_REQUEST", "CONTENT_FILTER", "UNKNOWN"])
async def test_a_failure_that_does_not_pass_is_not_retried(
    code: str, autojump_clock: MockClock
) -> None:
    model = ScriptedModel([Fail(code)])
    async with open_test_runtime(model=model, plugins=[PLAIN]) as runtime:
        settled = await (await runtime.create_agent("a")).ask("one")
        assert (settled.reason, settled.code) == ("error", code)
        assert len(model.requests) == 1


async def test_each_models_failures_follow_its_own_policy(autojump_clock: MockClock) -> None:
    patient = ScriptedModel(
        [BUSY, Text("hi")], provider="patient", retry_policy=RetryPolicy(first_delay_s=9, jitter=0)
    )
    never = ScriptedModel([BUSY], provider="never", retry_policy=RetryPolicy(retries_max=0))
    config = CallConfig(provider="never", model="scripted")
    async with open_test_runtime(model=patient, models=[never], plugins=[PLAIN]) as runtime:
        agent, other = (
            await runtime.create_agent("a"),
            await runtime.create_agent("b", config=config),
        )
        assert (await other.ask("one")).code == "OVERLOADED"
        assert (await agent.ask("one")).text == "hi"
        assert trio.current_time() == 9


async def test_a_policy_of_the_runtime_stands_for_every_model(autojump_clock: MockClock) -> None:
    model = ScriptedModel([BUSY, Text("hi")])
    mine = partial(retry, policy=RetryPolicy(first_delay_s=3, jitter=0))
    async with open_test_runtime(model=model, plugins=[mine]) as runtime:
        await (await runtime.create_agent("a")).ask("one")
        assert trio.current_time() == 3


async def test_equal_seeds_wait_equally_long(autojump_clock: MockClock) -> None:
    async def waits(seed: int) -> list[float]:
        model = ScriptedModel([BUSY] * 3 + [Text("hi")])
        plugin = partial(retry, random=random.Random(seed).random)
        began = trio.current_time()
        async with open_test_runtime(model=model, plugins=[plugin]) as runtime:
            agent = await runtime.create_agent("a")
            await agent.ask("one")
            return [time - began for time in _times(agent)]

    first, again, other = [await waits(seed) for seed in (1, 1, 2)]
    assert first == pytest.approx(again, abs=0.002)
    assert first != pytest.approx(other, abs=0.002)


async def test_a_success_lets_the_next_failure_begin_anew(autojump_clock: MockClock) -> None:
    model = ScriptedModel([BUSY, BUSY, Text("1"), BUSY, Text("2")], retry_policy=STEADY)
    async with open_test_runtime(model=model, plugins=[PLAIN]) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        await agent.ask("two")
        assert _times(agent) == [0, 0.5, 1.5, 1.5, 2]


async def test_a_listener_inside_decides_first(autojump_clock: MockClock) -> None:
    async def at_once(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
        return Retry(0)

    model = ScriptedModel([Fail("AUTH"), Text("hi")])
    async with open_test_runtime(model=model, plugins=[PLAIN]) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request_error.add(at_once)
        assert (await agent.ask("one")).text == "hi"
        assert trio.current_time() == 0


@pytest.mark.parametrize("how", ["cancel", "dispose"])
async def test_a_cancel_ends_the_wait_at_once(how: str, autojump_clock: MockClock) -> None:
    model = ScriptedModel([Fail("RATE_LIMIT", retry_after=60)])
    async with open_test_runtime(model=model, plugins=[PLAIN]) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        if how == "cancel":
            agent.cancel()
            await agent.wait_idle()
        else:
            await agent.dispose()
        assert trio.current_time() == 1
        assert [end.reason for end in ends(agent)] == ["aborted"]
        assert len(model.requests) == 1


async def test_what_never_reached_a_model_is_not_retried(autojump_clock: MockClock) -> None:
    async def unready(proposal: RequestProposal, next: Next[CallConfig]) -> CallConfig:
        raise ModelFailure("TRANSPORT", "not even asked")

    model = ScriptedModel([])
    async with open_test_runtime(model=model, plugins=[PLAIN]) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request.add(unready)
        settled = await agent.ask("one")
        assert (settled.reason, settled.code) == ("error", "TRANSPORT")
        assert types(agent) == ["turn/start", "turn/end"]


async def test_three_models_are_tried_and_the_prompt_is_there_once(
    autojump_clock: MockClock,
) -> None:
    names = ["one", "two", "three"]
    answers: list[Entry] = [Fail("RATE_LIMIT"), Fail("RATE_LIMIT"), Text("at last")]
    models = [
        ScriptedModel([answer], name=name) for name, answer in zip(names, answers, strict=True)
    ]

    async def fall_back(proposal: RequestProposal, next: Next[CallConfig]) -> CallConfig:
        config = await next()
        return CallConfig(provider=config.provider, model=names[proposal.attempt - 1])

    async with open_test_runtime(model=models[0], models=models[1:], plugins=[PLAIN]) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request.add(fall_back)
        settled = await agent.ask("hello")
        assert (settled.reason, settled.text) == ("completed", "at last")
        kinds = types(agent)
        assert kinds.count("user/message") == 1
        assert kinds.count("assistant/attempt") == 2
        assert kinds.count("assistant/message") == 1
        assert [said(model.requests[0]) for model in models] == [["U hello"]] * 3


async def test_a_stalled_attempt_that_was_cancelled_is_not_retried(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([[Wait(1), Stall()]])
    async with open_test_runtime(model=model, plugins=[PLAIN]) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(2)
        agent.cancel()
        await agent.wait_idle()
        assert len(model.requests) == 1


async def test_leaving_the_plugin_ends_its_retries(autojump_clock: MockClock) -> None:
    model = ScriptedModel([BUSY, BUSY])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        async with retry(runtime):
            pass
        assert (await agent.ask("one")).code == "OVERLOADED"
        assert len(model.requests) == 1
