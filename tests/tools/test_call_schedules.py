"""Whatever the batch, each call starts, runs and is recorded when the rules say (T1 to T8, G7).

Modes, durations, deadlines, failures, approvals, and tools that are removed, replaced or
reclassified in the middle are drawn; an oracle works out the times from the rules alone.
"""

from collections.abc import Sequence
from typing import Any, get_args

import attrs
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.batches import Step, under_virtual_time
from tests.tools.oracle import DEADLINE_S, Effect, Oracle, Policy, Timing, Work
from trioloop.events import ToolCallStarted, ToolDispatched
from trioloop.handles import AgentHandle
from trioloop.hooks import Ask, CallRequest, Deny, Next, PostExecution, PostPolicy, PrePolicy
from trioloop.ids import CallId
from trioloop.messages import text_of
from trioloop.tools import ToolContext, ToolOutcome, tool

WORK = st.builds(
    Work,
    tool=st.sampled_from(["a", "a", "b"]),
    barrier=st.sampled_from([False, False, False, True]),
    seconds=st.integers(0, 8).map(float),
    fails=st.sampled_from([False, False, True]),
    policy=st.sampled_from(["allow", "allow", *get_args(Policy)]),
    pre_s=st.integers(0, 4).map(float),
    post_s=st.integers(0, 3).map(float),
    effect=st.sampled_from(["none"] * 8 + [*get_args(Effect)]),
)
BATCHES = st.lists(WORK, max_size=8)


def apart(batch: Sequence[Work]) -> list[Work]:
    """The same works, each wait with a fraction of its own: no sum of some equals another's."""
    return [
        attrs.evolve(
            work,
            seconds=work.seconds + 2.0 ** -(3 * index + 2),
            pre_s=work.pre_s + 2.0 ** -(3 * index + 3),
            post_s=work.post_s + 2.0 ** -(3 * index + 4),
        )
        for index, work in enumerate(batch)
    ]


class Drawn:
    """A step whose calls do what was drawn for them, and which notes when."""

    def __init__(self, batch: Sequence[Work], limit: int, *, asks: bool, lends: bool) -> None:
        self.batch = batch
        self.step = Step(calls_max=limit, approver=self)
        self.flipped = False
        self.running: set[int] = set()
        self.most = 0
        self.began: dict[int, float] = {}
        self.started: dict[int, float] = {}
        self.beginning = trio.current_time()
        self.step.session.observe(self._note)
        body = self._body_that_may_lend if lends else self._body
        self.registered = {
            name: self._register(name, body, None if name == "a" else DEADLINE_S)
            for name in ("a", "b")
        }
        if asks:
            self.step.hooks.pre_execute.add(self._before)
            self.step.agent_hooks.post_execute.add(self._after)

    def _register(self, name: str, body: Any, timeout_s: float | None) -> Any:
        made = tool(name=name, effects="read-only", mode=self._mode, timeout_s=timeout_s)(body)
        return self.step.tools.register(made)

    def _mode(self, given: dict[str, Any]) -> str:
        return "barrier" if self.batch[given["index"]].barrier != self.flipped else "concurrent"

    def _now(self) -> float:
        return trio.current_time() - self.beginning

    def _note(self, event: Any) -> None:
        if isinstance(event.data, ToolCallStarted):
            self.started[int(event.data.call.rpartition("_")[2])] = self._now()

    async def _body(self, index: int) -> ToolOutcome:
        """Work."""
        work = self.batch[index]
        self.began[index] = self._now()
        self.running.add(index)
        self.most = max(self.most, len(self.running))
        try:
            await trio.sleep(work.seconds)
        finally:
            self.running.discard(index)
        self._act(work.effect)
        if work.fails:
            raise ValueError(index)
        return ToolOutcome(content=f"{index}", concludes_turn=index % 2 == 0)

    async def _body_that_may_lend(self, index: int, context: ToolContext) -> ToolOutcome:
        """Work, and add a context; its place is one that it could lend."""
        outcome = await self._body(index)
        context.add_context(f"of {index}")
        return outcome

    def _act(self, effect: Effect) -> None:
        if effect == "flip":
            self.flipped = not self.flipped
        elif effect != "none":
            self.registered[effect[-1]].close()
            if effect == "replace a":
                self.registered["a"] = self._register("a", self._body, None)

    async def _before(self, request: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
        work = self.batch[int(str(request.arguments["index"]))]
        if work.policy.startswith("ask"):
            return Ask("may it?")
        await trio.sleep(work.pre_s)
        return Deny("drawn") if work.policy == "deny" else await next()

    async def ask(self, agent: AgentHandle, call: CallId, question: str) -> bool:
        """Answer an approval's question, as was drawn."""
        work = self.batch[int(call.rpartition("_")[2])]
        await trio.sleep(work.pre_s)
        return work.policy == "ask yes"

    async def _after(self, done: PostExecution, next: Next[PostPolicy]) -> PostPolicy:
        await trio.sleep(self.batch[int(done.request.call.rpartition("_")[2])].post_s)
        return await next()

    async def timings(self) -> list[Timing]:
        """Run the batch, and tell when what happened."""
        asked = [(work.tool, {"index": index}) for index, work in enumerate(self.batch)]
        results = await self.step.run(*asked)
        assert [result.call for result in results] == [
            f"call_1_1_{index}" for index in range(len(self.batch))
        ]
        return [
            Timing(
                self.started.get(index),
                self.began.get(index),
                0,
                self.step.recorded_at[index] - self.beginning,
                result.code,
            )
            for index, result in enumerate(results)
        ]


@given(BATCHES, st.integers(1, 4), st.booleans(), st.booleans(), st.random_module())
def test_any_batch_keeps_the_times_that_the_rules_give(
    batch: list[Work], limit: int, asks: bool, lends: bool, random: object
) -> None:
    works = apart(batch)
    expected = Oracle(works, limit, asks=asks).timings

    async def main() -> None:
        drawn = Drawn(works, limit, asks=asks, lends=lends)
        for got, told in zip(await drawn.timings(), expected, strict=True):
            assert got.code == told.code
            assert (got.started is None, got.began is None) == (
                told.started is None,
                told.began is None,
            )
            assert got.started == pytest.approx(told.started)
            assert got.began == pytest.approx(told.began)
            assert got.recorded == pytest.approx(told.recorded)
        assert drawn.most <= limit
        check_log(drawn.step, lends=lends)

    under_virtual_time(main)


def check_log(step: Step, *, lends: bool) -> None:
    """What the log says beside the times."""
    dispatched = {fact.call_seq for fact in step.facts if isinstance(fact, ToolDispatched)}
    started = {
        event.seq: event.data
        for event in step.session.events()
        if isinstance(event.data, ToolCallStarted)
    }
    for index, result in enumerate(step.results):
        call = None if result.call_seq is None else started[result.call_seq]
        assert call is None or call.call == result.call
        if result.code in (None, "TOOL_FAILED", "TOOL_TIMEOUT"):
            assert call is not None
            assert call.dispatched or result.call_seq in dispatched
        assert result.concludes_turn == (result.code is None and index % 2 == 0)
    good = [index for index, code in enumerate(step.codes) if code is None]
    assert [text_of(one.content) for one in step.contexts] == [
        f"of {index}" for index in good
    ] * lends
