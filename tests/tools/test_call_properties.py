"""Calls in the log: whatever the batch, and whenever it is cancelled (T1 to T9)."""

from collections.abc import Sequence
from typing import Any, cast

import attrs
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.batches import Step, under_virtual_time
from trioloop.events import ToolCallStarted, ToolResultLogged
from trioloop.hooks import CallRequest, Deny, Next, PostExecution
from trioloop.hooks.points import PostPolicy, PrePolicy
from trioloop.tools import tool


@attrs.frozen
class Work:
    """What a generated call does, and what its policies do."""

    mode: str
    seconds: int
    fails: bool
    denied: bool
    pre_seconds: int
    post_seconds: int
    removes: bool


def works(policies: bool) -> st.SearchStrategy[Work]:
    waits = st.integers(0, 3) if policies else st.just(0)
    return st.builds(
        Work,
        mode=st.sampled_from(["concurrent", "concurrent", "barrier"]),
        seconds=st.integers(0, 6),
        fails=st.booleans(),
        denied=st.booleans() if policies else st.just(False),
        pre_seconds=waits,
        post_seconds=waits,
        removes=st.integers(0, 9).map(lambda drawn: drawn == 0),
    )


class Generated:
    """A step whose calls do what was drawn for them, and which checks the rules as they run."""

    def __init__(self, batch: Sequence[Work], limit: int, policies: bool) -> None:
        self.batch = batch
        self.limit = limit
        self.step = Step(calls_max=limit)
        self.running: set[int] = set()
        self.started: list[int] = []
        self.asked: list[int] = []
        self.vetted: list[int] = []
        self.posting = 0
        self.policies = policies
        body = tool(
            name="work",
            description="Works.",
            effects="read-only",
            mode=lambda given: batch[given["index"]].mode,
        )(self._body)
        self.registration = self.step.tools.register(body)
        if policies:
            self.step.hooks.pre_execute.add(self._before)
            self.step.agent_hooks.post_execute.add(self._after)

    async def _body(self, index: int) -> int:
        work = self.batch[index]
        assert not any(self.batch[other].mode == "barrier" for other in self.running)
        assert work.mode != "barrier" or not self.running
        self.started.append(index)
        self.running.add(index)
        assert len(self.running) <= self.limit
        try:
            await trio.sleep(work.seconds)
        finally:
            self.running.discard(index)
        if work.removes:
            self.registration.close()
        if work.fails:
            raise ValueError(index)
        return index

    async def _before(self, request: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
        index = cast(int, request.arguments["index"])
        self.asked.append(index)
        assert len(self.running) < self.limit
        await trio.sleep(self.batch[index].pre_seconds)
        return Deny("drawn") if self.batch[index].denied else await next()

    async def _after(self, done: PostExecution, next: Next[PostPolicy]) -> PostPolicy:
        index = int(done.request.call.rpartition("_")[2])
        self.vetted.append(index)
        self.posting += 1
        assert self.posting == 1
        try:
            await trio.sleep(self.batch[index].post_seconds)
        finally:
            self.posting -= 1
        return await next()

    async def run(self) -> None:
        await self.step.run(*[("work", {"index": index}) for index in range(len(self.batch))])
        self.check()

    def check(self) -> None:
        count = len(self.batch)
        shape = self.step.shape
        starts = [int(part.split()[1]) for part in shape if part.startswith("call")]
        assert [part for part in shape if part.startswith("result")] == [
            f"result {index}" for index in range(count)
        ]
        assert starts == sorted(starts)
        assert self.started == sorted(self.started)
        assert self.asked == sorted(self.asked)
        assert self.vetted == sorted(self.vetted)
        by_seq = {event.seq: event.data for event in self.step.session.events()}
        for index, result in enumerate(self.step.results):
            self.check_result(index, result, by_seq, starts)

    def check_result(
        self, index: int, result: ToolResultLogged, by_seq: dict[int, Any], starts: list[int]
    ) -> None:
        work = self.batch[index]
        if index not in starts:
            assert result.call_seq is None
            assert result.code in (
                "UNKNOWN_TOOL", "TOOL_ABORTED_BEFORE_DISPATCH", "TOOL_RESULT_WITHHELD"
            )  # fmt: skip
            return
        call = by_seq[cast(int, result.call_seq)]
        assert isinstance(call, ToolCallStarted)
        assert call.call == result.call
        cut_off = ("TOOL_ABORTED_BEFORE_DISPATCH", "TOOL_ABORTED", "TOOL_RESULT_WITHHELD")
        if result.code == "UNKNOWN_TOOL":  # its tool was removed while its policy was asked
            assert self.policies
            assert index not in self.started
            assert any(self.batch[other].removes for other in self.started)
        elif result.code not in cut_off:
            failed = "TOOL_FAILED" if work.fails else None
            denied = work.denied and self.policies
            assert result.code == ("TOOL_DENIED" if denied else failed)
        if work.mode == "barrier" and index in self.started:
            shape = self.step.shape
            at = shape.index(f"call {index}")
            later = [part for part in shape[at + 1 :] if part != f"dispatch {index}"]
            assert later[0] == f"result {index}"


@given(st.lists(works(policies=False), max_size=10), st.integers(1, 4), st.random_module())
def test_any_batch_is_recorded_in_order(batch: list[Work], limit: int, random: object) -> None:
    async def main() -> None:
        await Generated(batch, limit, policies=False).run()

    under_virtual_time(main)


@given(st.lists(works(policies=True), max_size=8), st.integers(1, 4), st.random_module())
def test_any_batch_with_policies_is_recorded_in_order(
    batch: list[Work], limit: int, random: object
) -> None:
    async def main() -> None:
        await Generated(batch, limit, policies=True).run()

    under_virtual_time(main)


@given(
    st.lists(works(policies=True), max_size=8),
    st.integers(1, 4),
    st.booleans(),
    st.floats(0, 20),
    st.random_module(),
)
def test_any_batch_cancelled_at_any_time_is_recorded_whole_and_in_order(
    batch: list[Work], limit: int, policies: bool, at: float, random: object
) -> None:
    async def main() -> None:
        generated = Generated(batch, limit, policies)
        with trio.move_on_after(at) as scope:
            await generated.run()
        if scope.cancelled_caught:
            generated.check()
            # Nothing was still running, and the closing took at most what policies may take.
            assert not generated.running
            assert trio.current_time() <= scope.deadline + generated.step.limits.post_s
        assert not generated.step.running

    under_virtual_time(main)
