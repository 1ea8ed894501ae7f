"""When each call of a batch starts, runs, ends and is recorded, worked out from T1 to T5 alone.

A call depends on none behind it, so one pass in model order is enough. Times are exact: every wait
that is drawn has a fraction of its own, so that nothing happens at the same time by chance.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import attrs

Policy = Literal["allow", "deny", "ask yes", "ask no"]
Effect = Literal["none", "remove a", "remove b", "replace a", "flip"]


@attrs.frozen
class Work:
    """What a generated call does, what its policies do, and what its body does to the tools.

    Attributes:
        tool: `a`, which has no deadline, or `b`, whose deadline is `DEADLINE_S`.
        barrier: whether it is a barrier, as long as modes haven't been flipped.
        seconds: what its body takes.
        fails: whether it raises.
        policy: what the pre-policy says.
        pre_s: how long that takes.
        post_s: how long the post-policy takes.
        effect: what its body does to the tools as it ends.
    """

    tool: Literal["a", "b"]
    barrier: bool
    seconds: float
    fails: bool
    policy: Policy
    pre_s: float
    post_s: float
    effect: Effect


DEADLINE_S = 4.0


@attrs.define
class Timing:
    """What becomes of a call. Times are seconds from the batch's beginning; None: never."""

    started: float | None
    began: float | None
    ended: float
    recorded: float
    code: str | None


class Oracle:
    """The timings of a batch.

    Args:
        batch: its calls.
        limit: how many run at once.
        asks: whether there are policies at all.
    """

    def __init__(self, batch: Sequence[Work], limit: int, *, asks: bool) -> None:
        self._batch = batch
        self._limit = limit
        self._asks = asks
        self.timings: list[Timing] = []
        self._lane_free = 0.0
        self._barrier_until = 0.0
        for work in batch:
            self.timings.append(self._timing(work))

    @property
    def _all_recorded(self) -> float:
        return self.timings[-1].recorded if self.timings else 0.0

    def _timing(self, work: Work) -> Timing:
        start = self._first(self._lane_free, lambda at: self._may_start(work, at))
        barrier = self._mode(work, start) == "barrier"
        timing = self._from(work, start)
        if timing.began is not None:
            barrier = self._mode(work, timing.began) == "barrier"
        self._lane_free = timing.ended if timing.began is None else timing.began
        timing.recorded = max(timing.ended, self._all_recorded)
        if self._asks:
            timing.recorded += work.post_s
        if barrier:
            self._barrier_until = timing.recorded
        return timing

    def _from(self, work: Work, start: float) -> Timing:
        """A call from its start on."""
        if self._mode(work, start) is None:
            return Timing(None, None, start, start, "UNKNOWN_TOOL")
        admitted = start + work.pre_s if self._asks else start
        if self._asks and work.policy in ("deny", "ask no"):
            return Timing(start, None, admitted, admitted, "TOOL_DENIED")
        began = self._first(admitted, lambda at: self._fits(work, at))
        if self._mode(work, began) is None:
            return Timing(start, None, began, began, "UNKNOWN_TOOL")
        if work.tool == "b" and work.seconds > DEADLINE_S:
            return Timing(start, began, began + DEADLINE_S, 0, "TOOL_TIMEOUT")
        code = "TOOL_FAILED" if work.fails else None
        return Timing(start, began, began + work.seconds, 0, code)

    def _first(self, at: float, holds: Callable[[float], bool]) -> float:
        """The first moment from `at` on when something holds: now, or as something ends."""
        moments = {at, self._barrier_until}
        for timing in self.timings:
            moments |= {timing.ended, timing.recorded}
        return next(moment for moment in sorted(moments) if moment >= at and holds(moment))

    def _may_start(self, work: Work, at: float) -> bool:
        running = sum(one.began is not None and one.ended > at for one in self.timings)
        return running < self._limit and at >= self._barrier_until and self._fits(work, at)

    def _fits(self, work: Work, at: float) -> bool:
        return self._mode(work, at) != "barrier" or self._all_recorded <= at

    def _mode(self, work: Work, at: float) -> Literal["concurrent", "barrier"] | None:
        """What the tools say of a call at a time (T1)."""
        effects = [
            done.effect
            for done, timing in zip(self._batch, self.timings, strict=False)
            if timing.began is not None and timing.code != "TOOL_TIMEOUT" and timing.ended <= at
        ]
        gone = {"a": {"remove a", "replace a"}, "b": {"remove b"}}[work.tool]
        if gone.intersection(effects):
            return None
        flipped = effects.count("flip") % 2 == 1
        return "barrier" if work.barrier != flipped else "concurrent"
