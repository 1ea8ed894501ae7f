"""The policies of a call: pre, guards, around, post (tools.md section 3)."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.tools.batches import Step, nap, naps, step_of
from trioloop.events import ToolCallStarted
from trioloop.handles import AgentHandle
from trioloop.hooks import Allow, Ask, CallRequest, Deny, Next, PostExecution, Replace, Withhold
from trioloop.hooks.points import PostPolicy, PrePolicy
from trioloop.ids import CallId
from trioloop.messages import text_of
from trioloop.ports import ToolOutcome
from trioloop.tools import tool


class Person:
    """Answers every question alike."""

    def __init__(self, answer: bool | str | Exception) -> None:
        self.answer = answer
        self.asked: list[tuple[CallId, str]] = []

    async def ask(self, agent: AgentHandle, call: CallId, question: str) -> bool | str:
        self.asked.append((call, question))
        await trio.sleep(3)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def asking(step: Step) -> None:
    @step.hooks.pre_execute
    async def ask(request: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
        return Ask("May it nap?")


async def test_stages_follow_each_other_from_the_outside_in_and_out() -> None:
    seen: list[str] = []

    async def work() -> str:
        """Work."""
        seen.append("body")
        return "done"

    step = step_of(work)
    step.tools.guard(lambda _: seen.append("guard"))
    for name, hooks in (("wide", step.hooks), ("narrow", step.agent_hooks)):

        @hooks.pre_execute
        async def before(
            request: CallRequest, next: Next[PrePolicy], name: str = name
        ) -> PrePolicy:
            seen.append(f"pre {name}")
            return await next()

        @hooks.execute
        async def around(
            request: CallRequest, next: Next[ToolOutcome], name: str = name
        ) -> ToolOutcome:
            seen.append(f"in {name}")
            outcome = await next()
            seen.append(f"out {name}")
            return outcome

        @hooks.post_execute
        async def after(
            done: PostExecution, next: Next[PostPolicy], name: str = name
        ) -> PostPolicy:
            seen.append(f"post {name}")
            return await next()

    await step.run(("work", {}))
    assert seen == [
        "pre wide", "pre narrow", "guard", "in wide", "in narrow", "body", "out narrow",
        "out wide", "post wide", "post narrow",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (True, None, "1.0"),
        (False, "TOOL_DENIED", "refused"),
        ("Not before noon.", "TOOL_DENIED", "Not before noon."),
        (OSError("gone"), "TOOL_DENIED", "failed"),
        (None, "TOOL_DENIED", "nobody is here to be asked: May it nap?"),
    ],
)
async def test_a_person_is_asked_and_answers(
    autojump_clock: MockClock, answer: Any, code: str | None, words: str
) -> None:
    person = None if answer is None else Person(answer)
    step = Step(approver=person)
    step.tools.register(tool(effects="read-only")(nap))
    asking(step)
    await step.run(*naps(1))
    assert step.codes == [code]
    assert words in step.texts[0]
    if person is not None:
        assert person.asked == [("call_1_1_0", "May it nap?")]


@pytest.mark.parametrize("policy", ["pre", "guard"])
async def test_a_denied_call_tells_the_reason_and_passes_post(policy: str) -> None:
    step = step_of(nap)
    seen: list[ToolOutcome] = []
    if policy == "guard":
        step.tools.guard(lambda _: Deny("not at night"))
    else:

        @step.hooks.pre_execute
        async def deny(request: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
            return Deny("not at night")

    @step.hooks.post_execute
    async def look(done: PostExecution, next: Next[PostPolicy]) -> PostPolicy:
        seen.append(done.outcome)
        return await next()

    await step.run(*naps(1))
    assert step.codes == ["TOOL_DENIED"] == [seen[0].code]
    assert "not at night" in step.texts[0]
    assert step.shape == ["call 0", "result 0"]
    (started,) = (fact for fact in step.facts if isinstance(fact, ToolCallStarted))
    assert not started.dispatched


@pytest.mark.parametrize("policy", ["pre", "wrong pre", "guard", "wrong guard", "invalid"])
async def test_a_policy_that_fails_lets_nothing_through(policy: str) -> None:
    ran: list[int] = []

    async def work(number: int) -> None:
        """Work."""
        ran.append(number)

    step = step_of(work)

    @step.hooks.pre_execute
    async def before(request: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
        if policy == "pre":
            raise ValueError("broken")
        if policy == "wrong pre":
            return None  # type: ignore[return-value]
        return Allow({"number": "x"}) if policy == "invalid" else await next()

    if policy == "guard":
        step.tools.guard(lambda _: 1 / 0)  # type: ignore[arg-type, return-value]
    if policy == "wrong guard":
        step.tools.guard(lambda _: False)  # type: ignore[arg-type, return-value]
    await step.run(("work", {"number": 1}))
    assert step.codes == ["INVALID_ARGUMENTS" if policy == "invalid" else "TOOL_DENIED"]
    assert not ran


@pytest.mark.parametrize("kind", ["raises", "wrong", "alone", "changes"])
async def test_what_wraps_a_body_decides_what_it_came_to(kind: str) -> None:
    ran: list[bool] = []

    async def work() -> str:
        """Work."""
        ran.append(True)
        raise ValueError("inner")

    step = step_of(work)

    @step.hooks.execute
    async def around(request: CallRequest, next: Next[ToolOutcome]) -> ToolOutcome:
        if kind == "alone":
            return ToolOutcome(content="from the cache")
        outcome = await next()
        assert outcome.code == "TOOL_FAILED"
        if kind == "raises":
            raise OSError("wrapper")
        return ToolOutcome(content="instead") if kind == "changes" else None  # type: ignore[return-value]

    await step.run(("work", {}))
    expected = {
        "raises": ("TOOL_FAILED", "OSError: wrapper"),
        "alone": (None, "from the cache"),
        "changes": (None, "instead"),
    }
    assert ran == ([] if kind == "alone" else [True])
    if kind in expected:
        assert (step.codes[0], step.texts[0]) == expected[kind]
    else:
        assert step.codes == ["TOOL_FAILED"]


async def test_a_body_is_skipped_where_its_wrapper_is_cancelled_first(
    autojump_clock: MockClock,
) -> None:
    ran: list[bool] = []

    async def work() -> None:
        """Work."""
        ran.append(True)

    step = step_of(work)

    @step.hooks.execute
    async def late(request: CallRequest, next: Next[ToolOutcome]) -> ToolOutcome:
        with trio.CancelScope(shield=True):
            await trio.sleep(5)
        return await next()

    with trio.move_on_after(1):
        await step.run(("work", {}))
    assert step.codes == ["TOOL_ABORTED_BEFORE_DISPATCH"]
    assert not ran


async def test_a_wrapper_cut_off_behind_its_body_lets_nothing_out(
    autojump_clock: MockClock,
) -> None:
    step = step_of(nap)

    @step.hooks.execute
    async def slow(request: CallRequest, next: Next[ToolOutcome]) -> ToolOutcome:
        outcome = await next()
        await trio.sleep(5)
        return outcome

    with trio.move_on_after(2):
        await step.run(*naps(1))
    assert step.codes == ["TOOL_RESULT_WITHHELD"]
    assert "1.0" not in step.texts[0]


@pytest.mark.parametrize("kind", ["raises", "wrong", "withholds", "replaces"])
async def test_the_post_policy_decides_what_gets_out(kind: str) -> None:
    async def secret() -> ToolOutcome:
        """Tell a secret."""
        return ToolOutcome(content="s3cret", meta={"also": "s3cret"})

    step = step_of(secret)

    @step.hooks.post_execute
    async def after(done: PostExecution, next: Next[PostPolicy]) -> PostPolicy:
        assert text_of(done.outcome.content) == "s3cret"
        if kind == "raises":
            raise ValueError("broken")
        if kind == "withholds":
            return Withhold("It holds a secret.")
        return Replace("***") if kind == "replaces" else None  # type: ignore[return-value]

    (result,) = await step.run(("secret", {}))
    assert result.code == (None if kind == "replaces" else "TOOL_RESULT_WITHHELD")
    assert "s3cret" not in step.texts[0]
    assert kind == "replaces" or "s3cret" not in repr(result)
    assert result.call == "call_1_1_0"
    if kind == "withholds":
        assert step.texts == ["It holds a secret."]


async def test_a_failure_stays_one_when_a_policy_replaces_its_words() -> None:
    async def fail() -> None:
        """Fail."""
        raise ValueError("s3cret")

    step = step_of(fail)

    @step.hooks.post_execute
    async def after(done: PostExecution, next: Next[PostPolicy]) -> PostPolicy:
        return Replace("It failed.")

    (result,) = await step.run(("fail", {}))
    assert (result.is_error, result.code) == (True, "TOOL_FAILED")
    assert step.texts == ["It failed."]


async def test_a_policy_cut_off_by_a_cancel_runs_again_from_its_start(
    autojump_clock: MockClock,
) -> None:
    begun: list[float] = []
    step = step_of(nap, post_s=5)

    @step.hooks.post_execute
    async def slow(done: PostExecution, next: Next[PostPolicy]) -> PostPolicy:
        begun.append(trio.current_time() - start)
        await trio.sleep(3)
        return Replace("checked")

    start = trio.current_time()
    with trio.move_on_after(2):
        await step.run(*naps(1, 1, 9))
    assert step.codes == [None, "TOOL_RESULT_WITHHELD", "TOOL_ABORTED"]
    assert step.texts[0] == "checked"
    assert begun == [1, 2, 5, 5]  # the second, at 5 s, is cancelled by nobody; then post_s is over
    assert trio.current_time() - start == 7


async def test_other_results_get_out_while_a_stubborn_body_keeps_the_turn(
    autojump_clock: MockClock,
) -> None:
    step = step_of(nap, grace_s=20)
    step.tools.register(tool(name="slow", effects="read-only", on_cancel="finish")(nap))

    @step.hooks.post_execute
    async def accept(done: PostExecution, next: Next[PostPolicy]) -> PostPolicy:
        await trio.sleep(1)
        return await next()

    start = trio.current_time()
    with trio.move_on_after(2):
        await step.run(*naps(1.5), ("slow", {"seconds": 15}))
    assert step.codes == [None, None]
    assert [at - start for at in step.recorded_at.values()] == [3, 16]


@pytest.mark.parametrize("stage", ["pre", "around", "post"])
async def test_a_stray_cancelled_of_a_policy_is_found(
    autojump_clock: MockClock, stage: str
) -> None:
    async def stray() -> None:
        with trio.CancelScope() as scope:
            scope.cancel()
            try:
                await trio.sleep_forever()
            except trio.Cancelled as error:  # noqa: ASYNC103 - a fault, on purpose
                kept = error
        raise kept

    step = step_of(nap)

    @step.hooks.pre_execute
    async def before(request: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
        if stage == "pre":
            await stray()
        return await next()

    @step.hooks.execute
    async def around(request: CallRequest, next: Next[ToolOutcome]) -> ToolOutcome:
        if stage == "around":
            await stray()
        return await next()

    @step.hooks.post_execute
    async def after(done: PostExecution, next: Next[PostPolicy]) -> PostPolicy:
        if stage == "post":
            await stray()
        return await next()

    await step.run(*naps(1, 1))
    code = "TOOL_RESULT_WITHHELD" if stage == "post" else "TOOL_LEAKED_CANCEL"
    assert step.codes == [code, code]
