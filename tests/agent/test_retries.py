"""Attempts after a failed one: in the same step, or in a turn that repeats it (P11, R1 to R6)."""

import pytest
import trio
from trio.testing import MockClock

from tests.agent.listening import retrying
from tests.agent.reading import ends, facts, pending, said, types
from trioloop.errors import InvalidInputError
from trioloop.events import (
    AssistantAttemptLogged,
    CallConfig,
    Event,
    RequestHeaderLogged,
    UserMessageLogged,
)
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import AttemptFailed, Decision, Enter, PreStep, RequestProposal, Retry
from trioloop.ports import RetryPolicy
from trioloop.testing import Fail, ScriptedModel, Text, ToolCall, open_test_runtime
from trioloop.tools.tool import tool


async def test_a_retry_is_a_new_attempt_in_the_open_step(autojump_clock: MockClock) -> None:
    model = ScriptedModel([Fail("RATE_LIMIT"), [Text("ha"), Fail("SERVER")], Text("hi")])
    async with open_test_runtime(model=model, system="S") as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request_error.add(retrying(3))
        settled = await agent.ask("one")
        assert types(agent) == [
            "turn/start",
            "step/start",
            "system/message",
            "user/message",
            "request/header",
            "request/context",
            "assistant/attempt",
            "assistant/attempt",
            "assistant/message",
            "step/end",
            "turn/end",
        ]
        assert settled.reason == "completed"
        assert [said(request) for request in model.requests] == [["S S", "U one"]] * 3
        assert trio.current_time() == 6


async def test_a_retry_asks_only_the_request_again(autojump_clock: MockClock) -> None:
    asked: list[str] = []

    async def pre_step(step: PreStep, next: Next[Decision]) -> Decision:
        asked.append("pre_step")
        return await next()

    async def request(proposal: RequestProposal, next: Next[CallConfig]) -> CallConfig:
        asked.append(f"request {proposal.step}.{proposal.attempt}")
        return await next()

    async with open_test_runtime(model=ScriptedModel([Fail("SERVER"), Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(pre_step)
        agent.hooks.request.add(request)
        agent.hooks.request_error.add(retrying())
        agent.inject("context")
        await agent.ask("one")
        assert len(facts(agent, UserMessageLogged)) == 2
    assert asked == ["pre_step", "request 1.1", "request 1.2"]


async def test_a_steer_during_a_retry_waits_for_the_next_step(autojump_clock: MockClock) -> None:
    model = ScriptedModel([Fail("SERVER"), Text("hi"), Text("ho")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request_error.add(retrying(5))
        agent.followup("one")
        await trio.sleep(1)
        agent.steer("steer")
        await agent.wait_idle()
        assert said(model.requests[1]) == ["U one"]
        assert said(model.requests[2]) == ["U one", "A hi", "U steer"]


async def test_a_retry_commits_again_only_what_changed(autojump_clock: MockClock) -> None:
    async def cheaper(proposal: RequestProposal, next: Next[CallConfig]) -> CallConfig:
        config = await next()
        name = "scripted" if proposal.attempt == 1 else "small"
        return CallConfig(provider=config.provider, model=name)

    model = ScriptedModel([Fail("SERVER"), Text("hi")])
    small = ScriptedModel([Text("small")], name="small")
    async with open_test_runtime(model=model, models=[small], system="S") as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request.add(cheaper)
        agent.hooks.request_error.add(retrying())
        settled = await agent.ask("one")
        assert settled.text == "small"
        start = types(agent).index("assistant/attempt")
        assert types(agent)[start:] == [
            "assistant/attempt",
            "request/header",
            "request/context",
            "assistant/message",
            "step/end",
            "turn/end",
        ]
        assert [one.why for one in facts(agent, RequestHeaderLogged)] == ["initial", "change"]


async def test_a_retry_of_a_step_that_started_a_series_starts_no_second_one(
    autojump_clock: MockClock,
) -> None:
    async def series(step: PreStep, next: Next[Decision]) -> Decision:
        return Enter(step.messages, starts_request_series=step.turn == 2)

    model = ScriptedModel([Text("1"), Fail("SERVER"), Text("2")])
    async with open_test_runtime(model=model, system="S") as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(series)
        agent.hooks.request_error.add(retrying())
        await agent.ask("one")
        await agent.ask("two")
        assert [one.why for one in facts(agent, RequestHeaderLogged)] == ["initial", "series"]


async def test_the_hook_gets_the_failures_so_far_and_success_clears_them(
    autojump_clock: MockClock,
) -> None:
    seen: list[tuple[str, list[str]]] = []

    async def retry(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
        seen.append((failed.failure.code, [one.code for one in failed.earlier]))
        assert failed.retry_policy == policy
        return Retry()

    policy = RetryPolicy(retries_max=7)
    model = ScriptedModel(
        [
            Fail("SERVER"),
            Fail("TIMEOUT"),
            ToolCall("answer"),
            Fail("OVERLOADED"),
            Text("hi"),
        ],
        retry_policy=policy,
    )

    @tool
    async def answer() -> int:
        return 42

    async with open_test_runtime(model=model, tools=[answer]) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request_error.add(retry)
        assert (await agent.ask("one")).reason == "completed"
    assert seen == [("SERVER", []), ("TIMEOUT", ["SERVER"]), ("OVERLOADED", [])]


async def test_an_attempt_is_in_the_log_before_anybody_is_asked_about_it(
    autojump_clock: MockClock,
) -> None:
    async def look(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
        logged = facts(agent, AssistantAttemptLogged)
        assert [one.failure for one in logged] == [failed.failure]
        return None

    async with open_test_runtime(model=ScriptedModel([Fail("AUTH")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request_error.add(look)
        assert (await agent.ask("one")).code == "AUTH"


async def test_a_listener_that_answers_nothing_leaves_the_failure_final(
    autojump_clock: MockClock,
) -> None:
    async def nothing(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
        return None

    model = ScriptedModel([Fail("SERVER", "down")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request_error.add(nothing)
        settled = await agent.ask("one")
        assert (settled.reason, settled.code, settled.message) == ("error", "SERVER", "down")
        assert len(model.requests) == 1


async def test_a_listener_that_raises_ends_the_turn_behind_the_attempt(
    autojump_clock: MockClock,
) -> None:
    async def broken(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
        raise ValueError("broken")

    model = ScriptedModel([Fail("SERVER")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request_error.add(broken)
        settled = await agent.ask("one")
        assert (settled.reason, settled.message) == ("error", "broken")
        assert types(agent)[-3:] == ["assistant/attempt", "step/end", "turn/end"]
        assert ends(agent)[0].by is not None


@pytest.mark.parametrize("delay", [-1.0, float("inf"), float("nan")])
def test_a_delay_that_is_no_time_is_refused(delay: float) -> None:
    with pytest.raises(InvalidInputError):
        Retry(delay)


# While a retry waits or is prepared (P12)


async def test_a_cancel_while_a_retry_waits_ends_the_step(autojump_clock: MockClock) -> None:
    model = ScriptedModel([Fail("SERVER")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request_error.add(retrying(60))
        agent.followup("one")
        await trio.sleep(1)
        agent.cancel("why")
        await agent.wait_idle()
        assert trio.current_time() == 1
        assert types(agent)[-3:] == ["assistant/attempt", "step/end", "turn/end"]
        assert [(end.reason, end.cause) for end in ends(agent)] == [("aborted", "why")]
        assert pending(agent) == []


async def test_a_cancel_by_the_listener_outranks_its_answer(autojump_clock: MockClock) -> None:
    async def retry(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
        agent.cancel("why")
        return Retry()

    model = ScriptedModel([Fail("SERVER")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request_error.add(retry)
        settled = await agent.ask("one")
        assert (settled.reason, settled.cause) == ("aborted", "why")
        assert len(model.requests) == 1


async def test_a_failing_preparation_of_a_retry_ends_the_step(autojump_clock: MockClock) -> None:
    async def broken(proposal: RequestProposal, next: Next[CallConfig]) -> CallConfig:
        if proposal.attempt == 2:
            raise ValueError("second")
        return await next()

    async with open_test_runtime(model=ScriptedModel([Fail("SERVER")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request.add(broken)
        agent.hooks.request_error.add(retrying())
        settled = await agent.ask("one")
        assert (settled.reason, settled.message) == ("error", "second")
        assert types(agent)[-3:] == ["assistant/attempt", "step/end", "turn/end"]


async def test_a_cancel_behind_a_retrys_admission_leaves_an_attempt_that_was_not_sent(
    autojump_clock: MockClock,
) -> None:
    def observe(event: Event) -> None:
        if isinstance(event.data, RequestHeaderLogged) and event.data.why == "change":
            agent.cancel("observer")

    async def cheaper(proposal: RequestProposal, next: Next[CallConfig]) -> CallConfig:
        config = await next()
        return CallConfig(provider=config.provider, model=config.model, max_tokens=proposal.attempt)

    async with open_test_runtime(model=ScriptedModel([Fail("SERVER")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.session.observe(observe)
        agent.hooks.request.add(cheaper)
        agent.hooks.request_error.add(retrying())
        settled = await agent.ask("one")
        assert (settled.reason, settled.cause) == ("aborted", "observer")
        assert [one.sent for one in facts(agent, AssistantAttemptLogged)] == [True, False]
