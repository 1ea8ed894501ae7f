"""Calls that a running call makes: pipeline, limit, order, log, cancellation (T14; PTC)."""

import logging
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.tools.batches import Step, nap, naps, step_of
from trioloop.errors import InvalidInputError
from trioloop.events import (
    NestedCallStarted,
    NestedResultLogged,
    ToolDispatched,
    ToolResultLogged,
)
from trioloop.hooks import Accept, Allow, CallRequest, Deny, Next, PostExecution, Replace
from trioloop.hooks.points import PostPolicy, PrePolicy
from trioloop.ids import CallId, call_id
from trioloop.messages import text_of, user_message
from trioloop.tools import NestedCall, ToolContext, ToolOutcome, tool
from trioloop.tools.places import Places


@tool(mode="concurrent")
async def both(calls: list[Any], context: ToolContext, groups: int = 1) -> list[Any]:
    """Make calls, given as names and arguments, and tell how each ended."""
    outcomes: list[ToolOutcome] = []
    for _ in range(groups):
        outcomes += await context.call_tools([NestedCall(*call) for call in calls])
    return [one.code or one.value for one in outcomes]


def nesting(*functions: Any, **limits: Any) -> Step:
    """A step with some read-only tools and one that calls them."""
    step = step_of(*functions, **limits)
    step.tools.register(both)
    return step


def nested(step: Step) -> list[str]:
    """The nested facts, as `call 0`, `dispatch 0`, `result 0`."""
    by_seq = {
        event.seq: event.data.call
        for event in step.session.events()
        if isinstance(event.data, NestedCallStarted)
    }
    told = []
    for fact in step.facts:
        match fact:
            case NestedCallStarted(call=call):
                told.append(f"call {call.rpartition('_')[2]}")
            case NestedResultLogged(call=call):
                told.append(f"result {call.rpartition('_')[2]}")
            case ToolDispatched(call_seq=seq) if seq in by_seq:
                told.append(f"dispatch {by_seq[seq].rpartition('_')[2]}")
    return told


async def test_nested_calls_overlap_and_are_logged_under_their_parent(
    autojump_clock: MockClock,
) -> None:
    step = nesting(nap)
    began = trio.current_time()
    await step.run(("both", {"calls": naps(3, 1, 2)}))
    assert step.texts == ["[3.0,1.0,2.0]"]
    assert trio.current_time() - began == 3
    assert nested(step) == [f"call {i}" for i in range(3)] + [f"result {i}" for i in range(3)]
    first = next(fact for fact in step.facts if isinstance(fact, NestedCallStarted))
    assert (first.call, first.parent, first.name) == ("call_1_1_0_0", "call_1_1_0", "nap")
    assert (first.arguments, first.dispatched) == ('{"seconds":3}', True)
    assert isinstance(step.facts[-1], ToolResultLogged)
    assert not step.running


async def test_what_people_are_shown_of_a_nested_call_is_not_logged(
    autojump_clock: MockClock,
) -> None:
    async def shown() -> ToolOutcome:
        """Give something to show."""
        return ToolOutcome(content="x", meta={"secret": 1})

    step = nesting(shown)
    (result,) = await step.run(("both", {"calls": [("shown", {})]}))
    assert result.meta is None
    assert "secret" not in repr(step.facts)


async def test_a_second_group_goes_on_with_the_numbers(autojump_clock: MockClock) -> None:
    step = nesting(nap)
    await step.run(("both", {"calls": naps(1), "groups": 2}))
    assert nested(step) == ["call 0", "result 0", "call 1", "result 1"]


@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize("wider", [None, 1, 2])
async def test_bodies_and_nested_bodies_stay_within_the_limit_together(
    autojump_clock: MockClock, limit: int, wider: int | None
) -> None:
    working = 0
    most = 0

    async def work(seconds: float) -> None:
        """Work."""
        nonlocal working, most
        working += 1
        most = max(most, working)
        await trio.sleep(seconds)
        working -= 1

    step = nesting(work, calls_max=limit)
    step.places = None if wider is None else Places(wider)
    calls = [("work", {"seconds": 1})] * 4
    with trio.fail_after(60):
        await step.run(("both", {"calls": calls}), *calls, ("both", {"calls": calls}))
    assert most == min(limit, wider or limit)
    assert step.codes == [None] * 6
    if isinstance(step.places, Places):
        assert step.places.free == wider


async def test_nested_calls_within_nested_calls_do_not_deadlock_under_a_limit_of_one(
    autojump_clock: MockClock,
) -> None:
    step = nesting(nap, calls_max=1)
    inner = ("both", {"calls": naps(1, 2)})
    with trio.fail_after(60):
        await step.run(("both", {"calls": [inner, inner, *naps(1)]}))
    assert step.texts == ["[[1.0,2.0],[1.0,2.0],1.0]"]
    parents = {fact.parent for fact in step.facts if isinstance(fact, NestedCallStarted)}
    assert parents == {"call_1_1_0"}


async def test_a_nested_barrier_is_alone_among_the_calls_of_its_group(
    autojump_clock: MockClock,
) -> None:
    step = nesting(nap)
    step.tools.register(tool(name="write", description="Write.")(nap))
    await step.run(("both", {"calls": [*naps(2), ("write", {"seconds": 1}), *naps(1)]}))
    assert nested(step) == [part for i in range(3) for part in (f"call {i}", f"result {i}")]


async def test_groups_asked_for_at_once_run_one_after_the_other(
    autojump_clock: MockClock,
) -> None:
    step = step_of(nap)

    @tool
    async def two_tasks(context: ToolContext) -> str:
        """Make two groups of calls in two tasks."""
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(context.call_tools, [NestedCall("nap", {"seconds": 1})] * 2)
        return "done"

    step.tools.register(two_tasks)
    await step.run(("two_tasks", {}))
    assert nested(step) == [
        "call 0", "call 1", "result 0", "result 1", "call 2", "call 3", "result 2", "result 3"
    ]  # fmt: skip


async def test_what_never_starts_is_told_and_leaves_no_trace(autojump_clock: MockClock) -> None:
    step = nesting(nap)
    codes: list[str | None] = []
    texts: list[str] = []

    @tool
    async def wrong(context: ToolContext) -> None:
        """Make calls that can't start."""
        outcomes = await context.call_tools([
            NestedCall("nip", {}),
            NestedCall("nap", {"seconds": "x"}),
            NestedCall("nap", {"seconds": {1}}),
            NestedCall("nap", "{"),
        ])  # fmt: skip
        codes.extend(one.code for one in outcomes)
        texts.extend(text_of(one.content) for one in outcomes)

    step.tools.register(wrong)
    await step.run(("wrong", {}))
    assert codes == ["UNKNOWN_TOOL", *["INVALID_ARGUMENTS"] * 3]
    assert "$.seconds: expected a JSON value, but set has no JSON form" in texts[2]
    assert nested(step) == []


async def test_nested_calls_pass_policies_and_guards(autojump_clock: MockClock) -> None:
    step = nesting(nap)
    seen: list[tuple[CallId, CallId | None]] = []

    @step.hooks.pre_execute
    async def before(request: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
        seen.append((request.call, request.parent))
        if request.arguments.get("seconds") == 7:
            return Deny("too long")
        if request.arguments.get("seconds") == 5:
            return Allow({"seconds": 1})
        return await next()

    @step.hooks.post_execute
    async def after(done: PostExecution, next: Next[PostPolicy]) -> PostPolicy:
        if done.request.parent is not None and done.request.arguments["seconds"] == 2:
            return Replace("hidden")
        return await next()

    step.tools.guard(lambda request: Deny() if request.arguments.get("seconds") == 9 else None)
    began = trio.current_time()
    await step.run(("both", {"calls": naps(7, 9, 5, 2)}))
    assert trio.current_time() - began == 2
    assert step.texts == ['["TOOL_DENIED","TOOL_DENIED",1.0,null]']
    assert seen == [("call_1_1_0", None)] + [(f"call_1_1_0_{i}", "call_1_1_0") for i in range(4)]
    dispatches = [fact for fact in step.facts if isinstance(fact, ToolDispatched)]
    assert [fact.arguments for fact in dispatches] == [None, '{"seconds":1}', None]
    shown = [text_of(f.content) for f in step.facts if isinstance(f, NestedResultLogged)]
    assert shown[2:] == ["1.0", "hidden"]


async def test_contexts_of_nested_calls_come_in_order_behind_the_batch(
    autojump_clock: MockClock,
) -> None:
    step = Step()

    @tool(effects="read-only")
    async def say(word: str, seconds: float, context: ToolContext) -> None:
        """Say."""
        await trio.sleep(seconds)
        context.add_context(f"{word} 1")

    @step.hooks.post_execute
    async def add(done: PostExecution, next: Next[PostPolicy]) -> PostPolicy:
        if done.request.name != "say":
            return await next()
        return Accept([user_message(f"{done.request.arguments['word']} 2")])

    step.tools.register(say)
    step.tools.register(both)
    asked = [("say", {"word": word, "seconds": wait}) for word, wait in (("a", 3), ("b", 1))]
    await step.run(("both", {"calls": asked}))
    assert [text_of(one.content) for one in step.contexts] == ["a 1", "a 2", "b 1", "b 2"]


async def test_a_nested_once_call_is_durable_before_its_body(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Step()
    order: list[str] = []

    async def gate(session: Any) -> None:
        last = [event.data for event in session.events()][-1]
        order.append(f"gate behind {type(last).__name__}")
        await trio.lowlevel.checkpoint()

    monkeypatch.setattr(type(step.session), "gate", gate)

    @tool
    async def write() -> None:
        """Write."""
        order.append("body")

    step.tools.register(write)
    step.tools.register(both)
    await step.run(("both", {"calls": [("write", {})]}))
    assert order == ["gate behind ToolCallStarted", "gate behind NestedCallStarted", "body"]


@pytest.mark.parametrize("how", ["turn", "by id", "deadline"])
async def test_a_cancelled_call_takes_its_nested_calls_with_it(
    autojump_clock: MockClock, how: str
) -> None:
    step = step_of(nap, calls_max=2)
    step.tools.register(tool(timeout_s=3 if how == "deadline" else None)(both.function))

    async def by_id() -> None:
        await trio.sleep(3)
        step.running[call_id(1, 1, 0)].cancel()

    with trio.move_on_after(3 if how == "turn" else 99):
        async with trio.open_nursery() as nursery:
            if how == "by id":
                nursery.start_soon(by_id)
            await step.run(("both", {"calls": naps(1, 9, 9, 1)}))
    own = {"turn": "TOOL_ABORTED", "by id": "TOOL_CANCELLED", "deadline": "TOOL_TIMEOUT"}[how]
    assert step.codes == [own]
    inner = [fact.code for fact in step.facts if isinstance(fact, NestedResultLogged)]
    cancelled = "TOOL_ABORTED" if how == "turn" else "TOOL_CANCELLED"
    assert inner == [None, cancelled, cancelled]
    assert nested(step)[-2:] == ["result 1", "result 2"]
    assert not step.running


async def test_a_nested_call_is_cancelled_alone(autojump_clock: MockClock) -> None:
    step = nesting(nap)

    async def by_id() -> None:
        await trio.sleep(1)
        step.running[CallId("call_1_1_0_1")].cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(by_id)
        await step.run(("both", {"calls": naps(2, 9, 3)}))
    assert step.texts == ['[2.0,"TOOL_CANCELLED",3.0]']


async def test_a_nested_body_that_may_finish_is_cancelled_when_its_grace_is_over(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    step = nesting(grace_s=2)
    step.tools.register(tool(effects="read-only", on_cancel="finish")(nap))
    with caplog.at_level(logging.ERROR), trio.move_on_after(1) as scope:
        await step.run(("both", {"calls": naps(2, 9)}))
    assert trio.current_time() - scope.deadline == 2
    inner = [fact.code for fact in step.facts if isinstance(fact, NestedResultLogged)]
    assert inner == [None, "TOOL_ABORTED"]
    assert step.codes == ["TOOL_ABORTED"]


async def test_a_nested_body_outlives_no_grace_though_its_parent_is_shielded_by_then(
    autojump_clock: MockClock,
) -> None:
    step = Step(grace_s=2)
    step.tools.register(tool(effects="read-only", on_cancel="finish")(nap))

    @tool(effects="read-only", on_cancel="finish")
    async def parent(context: ToolContext) -> None:
        """Make a call."""
        await context.call_tools([NestedCall("nap", {"seconds": 60})])

    step.tools.register(parent)
    with trio.move_on_after(1) as scope:
        await step.run(("parent", {}))
    assert trio.current_time() - scope.deadline == 4  # the parent's grace, then the nested call's
    assert [fact.code for fact in step.facts if isinstance(fact, NestedResultLogged)] == [
        "TOOL_ABORTED"
    ]


async def test_calls_of_a_body_that_swallowed_its_cancel_do_not_run(
    autojump_clock: MockClock,
) -> None:
    step = step_of(nap)

    @tool
    async def stubborn(context: ToolContext) -> list[str | None]:
        """Go on after a cancel."""
        with trio.CancelScope(shield=True):
            await trio.sleep(3)
            outcomes = await context.call_tools([NestedCall("nap", {"seconds": 1})])
        return [one.code for one in outcomes]

    step.tools.register(stubborn)
    with trio.move_on_after(1):
        await step.run(("stubborn", {}))
    assert step.texts == ['["TOOL_ABORTED_BEFORE_DISPATCH"]']
    assert nested(step) == []


async def test_a_fault_of_the_nested_pool_is_a_fault_of_the_scheduler(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = nesting(nap)
    append = step.session.append

    def failing(*facts: Any) -> Any:
        if isinstance(facts[0], NestedCallStarted) and facts[0].call.endswith("_1"):
            raise RuntimeError("broken")
        return append(*facts)

    monkeypatch.setattr(type(step.session), "append", lambda _, *facts: failing(*facts))
    with pytest.raises(RuntimeError, match="broken"):
        await step.run(("both", {"calls": naps(1, 1)}), *naps(9))
    assert step.codes == ["TOOL_INTERNAL", "TOOL_INTERNAL"]


async def test_only_a_running_async_body_can_make_calls() -> None:
    kept: list[ToolContext] = []

    @tool(effects="read-only")
    async def keep(context: ToolContext) -> list[str]:
        """Keep the context."""
        kept.append(context)
        return [one.name for one in context.tools]

    @tool(effects="read-only")
    def in_thread(context: ToolContext) -> None:
        """Try from a thread."""
        context.call_tools([]).send(None)

    step = step_of(nap)
    step.tools.register(keep)
    step.tools.register(in_thread)
    await step.run(("keep", {}), ("in_thread", {}))
    assert step.texts[0] == '["nap","keep","in_thread"]'
    assert "make it an async def" in step.texts[1]
    with pytest.raises(InvalidInputError, match="has ended"):
        await kept[0].call_tools([])
