"""A turn's calls, cancelled before each task step: the log is whole whatever the moment (T9)."""

import pytest
import trio

from tests.tools.batches import Asked, Step
from tests.tools.test_pool_cancel import CancelBeforeStep
from trioloop.events import ToolCallStarted
from trioloop.hooks import CallRequest, Next, PostExecution
from trioloop.hooks.points import PostPolicy, PrePolicy
from trioloop.tools import ToolContext, tool

CODES = (None, "TOOL_ABORTED", "TOOL_ABORTED_BEFORE_DISPATCH", "TOOL_RESULT_WITHHELD")
BATCHES: dict[str, list[Asked]] = {
    "one": [("look", {"checkpoints": 2})],
    "side by side": [("look", {"checkpoints": index}) for index in range(3)],
    "a barrier": [("look", {"checkpoints": 1}), ("write", {}), ("look", {"checkpoints": 0})],
    "finishing": [("finish", {}), ("finish", {})],
}


class Effects:
    """A step with tools that keep a ledger of what they did."""

    def __init__(self, *, policies: bool) -> None:
        self.step = Step(calls_max=2)
        self.began: list[str] = []
        self.ended: list[str] = []
        self.step.tools.register(tool(effects="read-only")(self.look))
        self.step.tools.register(tool(self.write))
        self.step.tools.register(tool(effects="read-only", on_cancel="finish")(self.finish))
        if policies:
            self.step.hooks.pre_execute.add(self._before)
            self.step.hooks.post_execute.add(self._after)

    async def look(self, checkpoints: int, context: ToolContext) -> None:
        """Look."""
        await self._work(context, checkpoints)

    async def write(self, context: ToolContext) -> None:
        """Write."""
        await self._work(context, 1)

    async def finish(self, context: ToolContext) -> None:
        """Finish, even when cancelled."""
        await self._work(context, 3)

    async def _work(self, context: ToolContext, checkpoints: int) -> None:
        self.began.append(context.call)
        for _ in range(checkpoints):
            await trio.lowlevel.checkpoint()
        self.ended.append(context.call)

    async def _before(self, request: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
        await trio.lowlevel.checkpoint()
        return await next()

    async def _after(self, done: PostExecution, next: Next[PostPolicy]) -> PostPolicy:
        await trio.lowlevel.checkpoint()
        return await next()

    async def cancelled_before(self, asked: list[Asked], task_step: int) -> bool:
        """Run a batch and cancel it; tells whether there was such a task step."""
        with trio.CancelScope() as scope:
            instrument = CancelBeforeStep(scope, task_step)
            trio.lowlevel.add_instrument(instrument)
            try:
                await self.step.run(*asked)
            finally:
                trio.lowlevel.remove_instrument(instrument)
        return instrument.reached

    def check(self, count: int) -> None:
        """The log is whole, in order and true."""
        shape = self.step.shape
        if not shape:
            return  # cancelled before the batch began: nothing of it is there
        assert [part for part in shape if part.startswith("result")] == [
            f"result {index}" for index in range(count)
        ]
        logged = {fact.call for fact in self.step.facts if isinstance(fact, ToolCallStarted)}
        assert set(self.began) <= logged
        for result in self.step.results:
            assert result.code in CODES
            if result.code is None:
                assert result.call in self.ended
            if result.code == "TOOL_ABORTED":
                assert result.call in self.began
            if result.code == "TOOL_ABORTED_BEFORE_DISPATCH":
                assert result.call not in self.began


async def _sweep_point(asked: list[Asked], task_step: int, policies: bool) -> tuple[Effects, bool]:
    effects = Effects(policies=policies)
    return effects, await effects.cancelled_before(asked, task_step)


@pytest.mark.parametrize("policies", [False, True])
@pytest.mark.parametrize("name", BATCHES)
def test_cancelled_before_any_task_step_the_log_is_whole(name: str, policies: bool) -> None:
    asked = BATCHES[name]
    for _ in range(5):  # Trio shuffles its tasks
        task_step = 0
        reached = True
        while reached:
            effects, reached = trio.run(_sweep_point, asked, task_step, policies)
            effects.check(len(asked))
            task_step += 1
        assert set(effects.step.codes) == {None}
        assert task_step > len(asked)
