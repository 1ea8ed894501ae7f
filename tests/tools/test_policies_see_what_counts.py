"""Each policy is asked about what counts: final arguments, the body's outcome, the last cancel."""

import trio
from trio.testing import MockClock

from tests.tools.batches import Step, nap, naps, step_of
from tests.tools.test_pool_order import stray_cancelled
from trioloop.hooks import Allow, CallRequest, Deny, Next, PostExecution, Withhold
from trioloop.hooks.points import PostPolicy, PrePolicy
from trioloop.messages import text_of, user_message
from trioloop.ports import ToolOutcome
from trioloop.tools import ToolContext, tool


async def test_guards_see_the_arguments_as_a_policy_changed_them(autojump_clock: MockClock) -> None:
    step = step_of(nap)
    seen: list[object] = []

    @step.hooks.pre_execute
    async def longer(request: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
        return Allow({"seconds": 7})

    @step.tools.guard
    def short_only(request: CallRequest) -> Deny | None:
        seen.append(request.arguments["seconds"])
        return Deny("too long") if request.arguments["seconds"] == 7 else None

    await step.run(*naps(1))
    assert seen == [7]
    assert step.codes == ["TOOL_DENIED"]


async def test_a_withheld_result_adds_none_of_its_body_s_contexts() -> None:
    step = Step()

    @tool(effects="read-only")
    async def secret(context: ToolContext) -> ToolOutcome:
        """Tell a secret, in every way there is."""
        context.add_context("s3cret")
        return ToolOutcome(content="s3cret", additional_contexts=(user_message("s3cret"),))

    @step.hooks.post_execute
    async def withhold(done: PostExecution, next: Next[PostPolicy]) -> PostPolicy:
        return Withhold("It holds a secret.", [user_message("Ask for another.")])

    step.tools.register(secret)
    await step.run(("secret", {}))
    assert [text_of(one.content) for one in step.contexts] == ["Ask for another."]


async def test_a_call_whose_policy_came_through_a_cancel_is_not_dispatched(
    autojump_clock: MockClock,
) -> None:
    step = step_of(nap)

    @step.hooks.pre_execute
    async def late(request: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
        with trio.CancelScope(shield=True):
            await trio.sleep(5)
        return await next()

    with trio.move_on_after(1):
        await step.run(*naps(1))
    assert step.codes == ["TOOL_ABORTED_BEFORE_DISPATCH"]
    assert step.shape == ["call 0", "result 0"]


async def test_a_wrapper_is_given_the_outcome_of_a_body_that_raised_a_stray_cancelled(
    autojump_clock: MockClock,
) -> None:
    given: list[str | None] = []

    async def stray() -> None:
        """Stray."""
        await stray_cancelled()

    step = step_of(stray)

    @step.hooks.execute
    async def around(request: CallRequest, next: Next[ToolOutcome]) -> ToolOutcome:
        outcome = await next()
        given.append(outcome.code)
        return outcome

    await step.run(("stray", {}))
    assert given == step.codes == ["TOOL_LEAKED_CANCEL"]
