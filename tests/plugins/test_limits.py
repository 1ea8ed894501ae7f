"""Budgets of turns, sessions and trees: a code, a last step, and nothing lost (B29, B85)."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import trio
import trio.lowlevel
from trio.testing import MockClock

from tests.agent.listening import retrying
from tests.agent.reading import admitted, ends, facts, pending, types
from trioloop import Agent, Event, InvalidInputError, MemoryStore, Request, Usage, tool
from trioloop.events import ToolResultLogged, TurnEnded
from trioloop.hooks import CallRequest, Next, PrePolicy
from trioloop.log.repair import repair
from trioloop.messages import text_of
from trioloop.models.scripted import Entry
from trioloop.plugins import Budget, Price, limits, retry
from trioloop.plugins.limits import LimitReached
from trioloop.plugins.spending import accounts
from trioloop.runtime.open import Plugin
from trioloop.testing import (
    Answer,
    Fail,
    ScriptedModel,
    Stall,
    Text,
    ToolCall,
    Wait,
    open_test_runtime,
)

PRICES = {"scripted": Price(input=2, output=10, cached_input=1)}


@tool(effects="read-only")
async def look() -> str:
    """Look."""
    return "seen"


def one(scope: str, budget: Budget) -> dict[str, Any]:
    """The argument that gives a scope a budget."""
    return {scope: budget}


def looking(request: Request) -> Entry:
    """A model that looks and looks."""
    return ToolCall("look")


async def letting_through(call: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
    """A policy that takes a while."""
    await trio.lowlevel.checkpoint()
    return await next()


def reached(agent: Agent) -> list[tuple[str, bool]]:
    """The limits that a log tells of, and whether each granted a last step."""
    return [(one.code, one.last_step) for one in facts(agent, LimitReached)]


@pytest.mark.parametrize(
    ("budget", "steps"),
    [
        (Budget(steps=3), 3),
        (Budget(calls=2), 2),
        (Budget(tokens=31), 3),
        (Budget(money=0.0002), 3),
    ],
)
@pytest.mark.parametrize("scope", ["turn", "session", "tree"])
async def test_a_step_is_rejected_once_a_limit_is_reached(
    scope: str, budget: Budget, steps: int
) -> None:
    (what,) = [name for name in ("steps", "calls", "tokens", "money") if getattr(budget, name)]
    code = f"{scope}_{what}_limit".upper()
    plugin = partial(limits, prices=PRICES, **one(scope, budget))
    model = ScriptedModel(looking)
    async with open_test_runtime(model=model, tools=[look], plugins=[plugin]) as runtime:
        agent = await runtime.create_agent("a")
        settled = await agent.ask("go")
        assert (settled.reason, settled.code) == ("blocked", code)
        assert len(model.requests) == steps
        assert reached(agent) == [(code, False)]
        again = await agent.ask("again")
        assert again.code == code
        assert len(model.requests) == (2 * steps if scope == "turn" else steps)


async def test_what_the_providers_count_is_what_is_spent() -> None:
    usage = Usage(input_tokens=1000, cached_input_tokens=600, output_tokens=100)
    model = ScriptedModel(
        [Answer([ToolCall("look")], usage=usage), Answer([Text("hi")], None, None)]
    )
    async with (
        open_test_runtime(model=model, tools=[look]) as runtime,
        limits(runtime, prices=PRICES) as spending,
    ):
        agent = await runtime.create_agent("a")
        await agent.ask("go")
        spent = spending.session(agent)
        assert (spent.steps, spent.calls, spent.tokens) == (2, 1, 1100)
        assert spent.money == pytest.approx((400 * 2 + 600 * 1 + 100 * 10) / 1_000_000)
        assert spent == spending.turn(agent) == await spending.tree(agent)


async def test_what_is_asked_aside_is_spent_too() -> None:
    usage = Usage(input_tokens=1000, output_tokens=100)
    model = ScriptedModel([Text("hi"), Answer([Text("aside")], usage=usage)])
    async with (
        open_test_runtime(model=model) as runtime,
        limits(runtime, prices=PRICES) as spending,
    ):
        agent = await runtime.create_agent("a")
        await agent.ask("go")
        before = spending.session(agent)
        await agent.aside("What was said?")
        more = spending.session(agent) - before
        assert (more.tokens, more.steps) == (1100, 0)
        assert more.money == pytest.approx((1000 * 2 + 100 * 10) / 1_000_000)


async def test_a_turn_and_its_retry_turns_have_one_budget(autojump_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: Fail("SERVER"))
    plugin = partial(limits, turn=Budget(steps=3))
    async with open_test_runtime(model=model, plugins=[plugin]) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request_error.add(retrying(fresh_turn=True))
        settled = await agent.ask("go")
        assert (settled.turns, settled.code) == ((1, 2, 3, 4), "TURN_STEPS_LIMIT")
        assert len(model.requests) == 3
        await agent.ask("again")
        assert len(model.requests) == 6, "the next turn has a budget of its own"


async def test_how_long_a_dead_process_lay_still_is_nobodys_time(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([[Wait(2), ToolCall("look")], Text("done")])
    async with open_test_runtime(model=model, tools=[look]) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("go")
    log = agent.session.events()
    cut = next(at for at, one in enumerate(log) if one.type == "tool/result") + 1
    behind = repair(log[:cut])
    resumed = [Event(cut + at, log[-1].time + 10**9, fact) for at, fact in enumerate(behind)]
    assert isinstance(behind[-1], TurnEnded)
    assert accounts({})((*log[:cut], *resumed)).session.seconds == 2


async def test_a_steer_at_the_limit_of_the_turn_has_a_turn_of_its_own() -> None:
    model = ScriptedModel([[Text("1"), Wait(1)], Text("2")])
    plugin = partial(limits, turn=Budget(steps=1))
    async with open_test_runtime(model=model, plugins=[plugin]) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.testing.wait_all_tasks_blocked()
        agent.steer("two")
        await agent.wait_idle()
        assert [(end.reason, end.code) for end in ends(agent)] == [
            ("blocked", "TURN_STEPS_LIMIT"),
            ("completed", None),
        ]
        assert admitted(agent) == ["one", "two"]


async def test_an_injected_message_at_the_limit_of_the_turn_waits() -> None:
    model = ScriptedModel([[Text("1"), Wait(1)]])
    plugin = partial(limits, turn=Budget(steps=1))
    async with open_test_runtime(model=model, plugins=[plugin]) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.testing.wait_all_tasks_blocked()
        agent.inject("two")
        await agent.wait_idle()
        assert [end.code for end in ends(agent)] == ["TURN_STEPS_LIMIT"]
        assert pending(agent) == ["two"]


async def test_a_limit_of_the_session_leaves_messages_to_be_put_back() -> None:
    model = ScriptedModel([Text("1"), Text("2")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        async with limits(runtime, session=Budget(steps=1)):
            await agent.ask("one")
            assert (await agent.ask("two")).code == "SESSION_STEPS_LIMIT"
        assert agent.inbox.restore(2) == 1
        agent.wake()
        await agent.wait_idle()
        assert admitted(agent) == ["one", "two"]


@pytest.mark.parametrize("scope", ["turn", "session", "tree"])
async def test_a_last_step_hands_over_without_calls(scope: str) -> None:
    model = ScriptedModel([ToolCall("look"), ToolCall("look"), Text("more")])
    plugin = partial(limits, hand_over='Stop: {limit} {"done": 1}', **one(scope, Budget(steps=1)))
    async with open_test_runtime(model=model, tools=[look], plugins=[plugin]) as runtime:
        agent = await runtime.create_agent("a")
        code = f"{scope}_steps_limit".upper()
        assert (await agent.ask("go")).code == code
        assert admitted(agent) == ["go", f'Stop: 1 steps of at most 1 in the {scope} {{"done": 1}}']
        assert [result.code for result in facts(agent, ToolResultLogged)] == [None, "TOOL_DENIED"]
        assert reached(agent) == [(code, True), (code, False)]
        again = await agent.ask("again")
        assert again.code == (None if scope == "turn" else code)


async def test_a_turn_that_hands_over_is_completed() -> None:
    model = ScriptedModel([ToolCall("look"), Text("this is left")])
    plugin = partial(limits, hand_over=True, turn=Budget(calls=1))
    async with open_test_runtime(model=model, tools=[look], plugins=[plugin]) as runtime:
        agent = await runtime.create_agent("a")
        settled = await agent.ask("go")
        assert (settled.reason, settled.text) == ("completed", "this is left")


@pytest.mark.parametrize("scope", ["turn", "session", "tree"])
async def test_a_turn_is_aborted_when_its_time_is_over(
    scope: str, autojump_clock: MockClock
) -> None:
    model = ScriptedModel([[Wait(2), ToolCall("look")], Stall()])
    plugin = partial(limits, **one(scope, Budget(seconds=5)))
    async with open_test_runtime(model=model, tools=[look], plugins=[plugin]) as runtime:
        settled = await (await runtime.create_agent("a")).ask("go")
        assert (settled.reason, settled.cause) == ("aborted", f"{scope}_seconds_limit".upper())
        assert trio.current_time() == 5


async def test_only_time_in_turns_counts(autojump_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: [Wait(2), Text("hi")])
    async with (
        open_test_runtime(model=model) as runtime,
        limits(runtime, session=Budget(seconds=5)) as spending,
    ):
        agent = await runtime.create_agent("a")
        for _ in range(2):
            assert (await agent.ask("go")).reason == "completed"
            await trio.sleep(100)
        assert spending.session(agent).seconds == 4
        assert (await agent.ask("go")).cause == "SESSION_SECONDS_LIMIT"
        assert spending.session(agent).seconds == 5


async def test_a_last_step_has_time_of_its_own(autojump_clock: MockClock) -> None:
    model = ScriptedModel([[Wait(6), ToolCall("look")], [Wait(5), Text("left")]])
    plugin = partial(limits, hand_over=True, hand_over_s=10, turn=Budget(seconds=5))
    async with open_test_runtime(model=model, tools=[look], plugins=[plugin]) as runtime:
        assert (await (await runtime.create_agent("a")).ask("go")).text == "left"


@pytest.mark.parametrize("judged", [False, True])
async def test_calls_beyond_the_limit_are_denied_within_a_batch(judged: bool) -> None:
    """Also where a policy judges each call behind its `tool/call`, which has been counted then."""
    model = ScriptedModel([[ToolCall("look")] * 5])
    plugin = partial(limits, turn=Budget(calls=3))
    async with open_test_runtime(model=model, tools=[look], plugins=[plugin]) as runtime:
        agent = await runtime.create_agent("a")
        if judged:
            agent.hooks.pre_execute.add(letting_through)
        await agent.ask("go")
        codes = [result.code for result in facts(agent, ToolResultLogged)]
        assert codes == [None, None, None, "TOOL_DENIED", "TOOL_DENIED"]


@pytest.mark.parametrize("retries_first", [True, False])
async def test_nothing_is_retried_at_a_limit(
    retries_first: bool, autojump_clock: MockClock
) -> None:
    model = ScriptedModel(lambda _: [Wait(1), Fail("SERVER")])
    limited: Plugin = partial(limits, turn=Budget(seconds=3), hand_over=True)
    plugins: list[Plugin] = [retry, limited] if retries_first else [limited, retry]
    async with open_test_runtime(model=model, plugins=plugins) as runtime:
        agent = await runtime.create_agent("a")
        settled = await agent.ask("go")
        assert (settled.reason, settled.code) == ("error", "TURN_SECONDS_LIMIT")
        assert len(model.requests) == 3


async def test_a_model_without_a_price_is_not_asked_where_money_is_limited() -> None:
    model = ScriptedModel([Text("hi")], name="dear")
    plugin = partial(limits, turn=Budget(money=1), prices=PRICES)
    async with open_test_runtime(model=model, plugins=[plugin]) as runtime:
        agent = await runtime.create_agent("a")
        settled = await agent.ask("go")
        assert (settled.reason, settled.code) == ("error", "UNPRICED_MODEL")
        assert "step/start" not in types(agent)


async def test_what_was_spent_is_read_from_the_log_of_an_earlier_life() -> None:
    store = MemoryStore()
    plugin = partial(limits, session=Budget(steps=2))
    for steps in (1, 1, 0):
        model = ScriptedModel(lambda _: Text("hi"))
        async with open_test_runtime(model=model, store=store, plugins=[plugin]) as runtime:
            is_new = not await runtime.stored_sessions()
            opened = runtime.create_agent if is_new else runtime.resume_agent
            await (await opened("a")).ask("go")
            assert len(model.requests) == steps


async def test_an_agent_may_have_limits_of_its_own() -> None:
    model = ScriptedModel(looking)
    async with open_test_runtime(model=model, tools=[look]) as runtime:
        strict, other = await runtime.create_agent("a"), await runtime.create_agent("b")
        async with limits(strict, turn=Budget(steps=1)), limits(other, turn=Budget(steps=4)):
            await strict.ask("go")
            await other.ask("go")
        requests = [str(request.session) for request in model.requests]
        assert (requests.count("a"), requests.count("b")) == (1, 4)


async def test_options_that_can_not_be_kept_are_refused() -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        wrong: list[Callable[[], object]] = [
            lambda: Budget(steps=0),
            lambda: Budget(money=-1),
            lambda: Budget(steps="3"),  # type: ignore[arg-type]
            lambda: limits(runtime, turn=Budget(money=1)).__aenter__(),
            lambda: limits(agent, tree=Budget(steps=1)).__aenter__(),
        ]
        for make in wrong:
            with pytest.raises(InvalidInputError):
                await make()  # type: ignore[misc]


async def test_left_the_block_nothing_is_limited() -> None:
    model = ScriptedModel([Text("1"), Text("2")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        async with limits(runtime, session=Budget(steps=1)):
            await agent.ask("one")
        assert (await agent.ask("two")).reason == "completed"


async def test_a_log_tells_why_in_words() -> None:
    model = ScriptedModel(looking)
    plugin = partial(limits, turn=Budget(steps=2))
    async with open_test_runtime(model=model, tools=[look], plugins=[plugin]) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("go")
        (end,) = ends(agent)
        assert end.message == "a limit is reached: 2 steps of at most 2 in the turn"
        assert end.by is not None
        assert "limits" in end.by
        assert text_of(facts(agent, ToolResultLogged)[0].content) == "seen"
