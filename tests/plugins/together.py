"""All policies on one runtime, and what a turn under them costs: calls of functions, bytes.

Costs are counted, not timed.
"""

import gc
import sys
import tracemalloc
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import attrs

import trioloop
from trioloop.codec import decode_event, encode_event
from trioloop.log.fold import fold
from trioloop.plugins import (
    Approvals,
    Budget,
    Delegate,
    Rule,
    approval,
    compaction,
    limits,
    plan_mode,
    pruning,
    retry,
    spill,
    subagents,
)
from trioloop.plugins.plan_mode import PlanMode
from trioloop.testing import open_test_runtime

KINDS = {
    "approval/answer",
    "assistant/attempt",
    "compaction/summary",
    "plan/mode",
    "pruning/pruned",
    "subagents/settled",
}
"""Events of which each tells that a policy did its work."""

PACKAGE = str(Path(trioloop.__file__).parent)


@trioloop.tool(effects="read-only")
async def page(number: int) -> str:
    """A page of text."""
    return f"Page {number}. " + "All work and no play. " * 100


@trioloop.tool(effects="idempotent")
async def save(note: str) -> str:
    """Save a note."""
    return "saved"


@attrs.frozen(eq=False)
class Together:
    """A runtime with all policies open.

    Attributes:
        runtime: the runtime.
        mode: its plan mode.
    """

    runtime: trioloop.Runtime
    mode: PlanMode


@asynccontextmanager
async def furnished(
    window: int, *, result_chars_max: int = 1_000, **options: Any
) -> AsyncIterator[Together]:
    """A runtime, opened with some options, with all policies open; a person allows everything.

    Args:
        window: tokens that a request may have.
        result_chars_max: of a result that is pruned.
        options: of the test runtime.
    """
    approvals = Approvals(timeout_s=5)
    async with AsyncExitStack() as stack:
        opened = open_test_runtime(approver=approvals, **options)
        runtime = await stack.enter_async_context(opened)
        for policy in (
            retry(runtime),
            spill(runtime),
            pruning(runtime, window_tokens=window, result_chars_max=result_chars_max),
            compaction(runtime, window_tokens=window),
            limits(
                runtime,
                turn=Budget(steps=20, calls=20),
                session=Budget(steps=10_000),
                tree=Budget(steps=20_000),
            ),
            approval(runtime, Rule(effects=("idempotent",)), approvals=approvals),
            subagents(runtime, Delegate(name="research")),
        ):
            await stack.enter_async_context(policy)
        mode = await stack.enter_async_context(plan_mode(runtime))

        def allow() -> None:
            for one in approvals.open:
                approvals.answer(one.asked.approval, allow=True)

        stack.enter_context(approvals.observe(allow))
        yield Together(runtime, mode)


@contextmanager
def counted(within: str = "") -> Iterator[list[int]]:
    """How many Python functions are called meanwhile.

    Args:
        within: how the path begins of those that count.
    """
    calls = [0]

    def profile(frame: FrameType, what: str, argument: object) -> None:
        calls[0] += what == "call" and frame.f_code.co_filename.startswith(within)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield calls
    finally:
        sys.setprofile(before)


@contextmanager
def traced() -> Iterator[None]:
    """Python's memory is traced meanwhile."""
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()


def taken() -> int:
    """Bytes of all that Python holds that came while its memory was traced."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def held_by(events: Sequence[trioloop.Event]) -> int:
    """Bytes that a log takes: its events, read anew, and the state that they add up to."""
    rows = [encode_event(event) for event in events]
    before = taken()
    state = fold(read := [decode_event(row) for row in rows])
    held = taken() - before
    assert state.seq == read[-1].seq  # both lived until here
    return held


def growth(costs: Sequence[float]) -> float:
    """How much more the last fifth of some costs is, on average, than the second: 1.0 is none."""
    part = len(costs) // 5
    early, late = costs[part : 2 * part], costs[-part:]
    return sum(late) / sum(early)
