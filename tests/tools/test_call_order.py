"""Calls in the log: order of starts and results, barriers, policies (T1 to T8)."""

import attrs
import pytest
import trio
import trio.testing

from tests.tools.batches import Step, nap, naps, step_of
from trioloop.events import ToolCallStarted, ToolDispatched, ToolResultLogged
from trioloop.hooks import Accept, Allow, CallRequest, Deny, Next, PostExecution
from trioloop.hooks.points import PostPolicy, PrePolicy
from trioloop.ids import CallId
from trioloop.messages import text_of, user_message
from trioloop.tools import ToolContext, ToolOutcome, tool


async def test_a_result_is_in_the_log_as_soon_as_all_before_it_are(
    autojump_clock: trio.testing.MockClock,
) -> None:
    step = step_of(nap, calls_max=2)
    starts: dict[str, float] = {}
    step.session.observe(
        lambda event: (
            starts.update({event.data.call: trio.current_time()})
            if isinstance(event.data, ToolCallStarted)
            else None
        )
    )
    began = trio.current_time()
    await step.run(*naps(1, 9, 1, 1))
    assert [at - began for at in starts.values()] == [0, 0, 1, 2]
    assert {index: at - began for index, at in step.recorded_at.items()} == {0: 1, 1: 9, 2: 9, 3: 9}


async def test_an_approval_that_waits_holds_up_no_recording(
    autojump_clock: trio.testing.MockClock,
) -> None:
    step = step_of(nap, calls_max=2)

    @step.hooks.pre_execute
    async def slow(request: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
        if request.call.endswith("_3"):
            await trio.sleep_until(began + 20)
        return await next()

    began = trio.current_time()
    await step.run(*naps(1, 9, 1, 1))
    assert {index: at - began for index, at in step.recorded_at.items()} == {
        0: 1, 1: 9, 2: 9, 3: 21
    }  # fmt: skip


async def test_a_slow_post_policy_holds_up_no_start(
    autojump_clock: trio.testing.MockClock,
) -> None:
    step = step_of(nap, calls_max=1)

    @step.hooks.post_execute
    async def slow(done: PostExecution, next: Next[PostPolicy]) -> PostPolicy:
        await trio.sleep(10)
        return await next()

    began = trio.current_time()
    await step.run(*naps(1, 1, 1))
    assert step.shape == ["call 0", "call 1", "call 2", "result 0", "result 1", "result 2"]
    assert [at - began for at in step.recorded_at.values()] == [11, 21, 31]


async def test_a_blocked_call_never_overtakes_a_slow_one(
    autojump_clock: trio.testing.MockClock,
) -> None:
    step = step_of(nap)

    @step.hooks.pre_execute
    async def block_second(request: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
        return Deny("no") if request.call.endswith("_1") else await next()

    await step.run(*naps(2, 0))
    assert step.codes == [None, "TOOL_DENIED"]
    assert step.shape == ["call 0", "dispatch 0", "call 1", "result 0", "result 1"]


async def test_three_concurrent_calls_start_before_any_ends(
    autojump_clock: trio.testing.MockClock,
) -> None:
    step = step_of(nap)
    await step.run(*naps(1, 1, 1))
    assert step.shape == [f"call {i}" for i in range(3)] + [f"result {i}" for i in range(3)]


async def test_the_third_call_starts_when_one_of_two_ends(
    autojump_clock: trio.testing.MockClock,
) -> None:
    step = step_of(nap, calls_max=2)
    await step.run(*naps(3, 2, 2))
    assert step.shape == ["call 0", "call 1", "call 2", "result 0", "result 1", "result 2"]


async def test_with_a_limit_of_one_calls_run_one_by_one(
    autojump_clock: trio.testing.MockClock,
) -> None:
    step = step_of(nap, calls_max=1)
    await step.run(*naps(1, 1))
    assert step.shape == ["call 0", "result 0", "call 1", "result 1"]


async def test_a_tool_that_an_earlier_call_removes_does_not_run(
    autojump_clock: trio.testing.MockClock,
) -> None:
    step = Step()
    registration = step.tools.register(tool(effects="read-only")(nap))

    @tool(mode="barrier")
    async def remove() -> None:
        """Remove."""
        registration.close()

    step.tools.register(remove)
    await step.run(("remove", {}), *naps(1))
    assert step.codes == [None, "UNKNOWN_TOOL"]
    assert step.shape == ["call 0", "result 0", "result 1"]


async def test_a_tool_that_is_removed_while_its_call_waits_for_a_policy_does_not_run(
    autojump_clock: trio.testing.MockClock,
) -> None:
    step = Step()
    registration = step.tools.register(tool(effects="read-only")(nap))

    @step.hooks.pre_execute
    async def slow(request: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
        await trio.sleep(1)
        registration.close()
        return await next()

    await step.run(*naps(9))
    assert step.codes == ["UNKNOWN_TOOL"]
    assert step.recorded_at[0] == trio.current_time()
    assert step.shape == ["call 0", "dispatch 0", "result 0"]


async def test_a_mode_is_read_when_the_call_is_about_to_start(
    autojump_clock: trio.testing.MockClock,
) -> None:
    step = Step()
    modes = {"shared": "barrier"}

    @tool(mode=lambda _: modes["shared"])
    async def shared(seconds: float) -> None:
        """Sleep; the first to end lets the others overlap."""
        await trio.sleep(seconds)
        modes["shared"] = "concurrent"

    step.tools.register(shared)
    await step.run(*[("shared", {"seconds": 1})] * 3)
    assert step.shape == ["call 0", "result 0", "call 1", "call 2", "result 1", "result 2"]


async def test_changed_arguments_that_make_a_call_a_barrier_let_it_wait(
    autojump_clock: trio.testing.MockClock,
) -> None:
    step = Step()

    @tool(mode=lambda given: "barrier" if given["alone"] else "concurrent")
    async def work(seconds: float, alone: bool = False) -> str:
        """Work."""
        await trio.sleep(seconds)
        return f"{alone}"

    @step.hooks.pre_execute
    async def make_alone(request: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
        if request.call.endswith("_1"):
            return Allow({"seconds": 1, "alone": True})
        return await next()

    step.tools.register(work)
    began = trio.current_time()
    await step.run(*[("work", {"seconds": 2})] * 3)
    assert step.texts == ["False", "True", "False"]
    assert [at - began for at in step.recorded_at.values()] == [2, 3, 5]


async def test_contexts_join_after_the_batch_in_model_order(
    autojump_clock: trio.testing.MockClock,
) -> None:
    step = Step()

    @tool(effects="read-only")
    async def say(word: str, seconds: float, context: ToolContext) -> str:
        """Say."""
        context.add_context(f"{word} 1")
        await trio.sleep(seconds)
        context.add_context(f"{word} 2")
        return word

    @step.hooks.post_execute
    async def add(done: PostExecution, next: Next[PostPolicy]) -> PostPolicy:
        assert not step.contexts
        return Accept([user_message(f"{done.request.arguments['word']} 3")])

    step.tools.register(say)
    await step.run(("say", {"word": "a", "seconds": 2}), ("say", {"word": "b", "seconds": 1}))
    texts = [message.content[0].text for message in step.contexts]  # type: ignore[union-attr]
    assert texts == ["a 1", "a 2", "a 3", "b 1", "b 2", "b 3"]


async def test_contexts_of_body_wrapper_and_policy_come_in_that_order(
    autojump_clock: trio.testing.MockClock,
) -> None:
    step = Step()

    @tool(effects="read-only")
    async def say(context: ToolContext) -> ToolOutcome:
        """Say."""
        context.add_context("body")
        return ToolOutcome(content="x", additional_contexts=(user_message("outcome"),))

    @step.hooks.execute
    async def around(request: CallRequest, next: Next[ToolOutcome]) -> ToolOutcome:
        outcome = await next()
        more = (*outcome.additional_contexts, user_message("wrapper"))
        return attrs.evolve(outcome, additional_contexts=more)

    @step.hooks.post_execute
    async def after(done: PostExecution, next: Next[PostPolicy]) -> PostPolicy:
        return Accept([user_message("policy")])

    step.tools.register(say)
    await step.run(("say", {}))
    assert [text_of(one.content) for one in step.contexts] == [
        "body", "outcome", "wrapper", "policy"
    ]  # fmt: skip


async def test_calls_wait_for_the_gate_in_their_own_places(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Step()
    waiting: list[CallId] = []

    async def slow_gate() -> None:
        waiting.append(CallId("gate"))
        await trio.sleep(1)

    @tool(effects="idempotent", mode="concurrent")
    async def put(value: int) -> int:
        """Put."""
        return value

    step.tools.register(put)
    monkeypatch.setattr(type(step.session), "gate", lambda _: slow_gate())
    began = trio.current_time()
    await step.run(*[("put", {"value": index}) for index in range(10)])
    assert trio.current_time() - began == 1
    assert len(waiting) == 10


async def test_a_dispatch_tells_what_policy_changed_and_who(
    autojump_clock: trio.testing.MockClock,
) -> None:
    step = step_of(nap)

    async def shorter(request: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
        return Allow({"seconds": 0.5})

    step.hooks.pre_execute.add(shorter)
    await step.run(*naps(5))
    (call, dispatch, result) = step.facts
    assert isinstance(call, ToolCallStarted)
    assert not call.dispatched
    assert call.arguments == '{"seconds":5}'
    assert isinstance(dispatch, ToolDispatched)
    assert dispatch.arguments == '{"seconds":0.5}'
    assert dispatch.by is not None
    assert dispatch.by.endswith("shorter")
    assert isinstance(result, ToolResultLogged)
    assert step.texts == ["0.5"]


async def test_a_call_that_only_reads_waits_for_no_gate(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = step_of(nap)

    async def slow_gate(_: object) -> None:
        await trio.sleep(5)

    monkeypatch.setattr(type(step.session), "gate", slow_gate)
    began = trio.current_time()
    await step.run(*naps(1))
    assert trio.current_time() - began == 1
