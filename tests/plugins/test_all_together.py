"""All policies on one agent, for many turns: each does its work, and a turn costs what it cost.

Costs are counted, not timed: the events of a turn, the messages of a request, the calls of
functions that a turn makes.
"""

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from types import FrameType
from typing import Any

from trio.testing import MockClock

import trioloop
from tests.agent.reading import facts
from trioloop.events import ToolResultLogged
from trioloop.messages import UserMessage
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
from trioloop.plugins.compaction import CompactionEnded
from trioloop.testing import (
    Answer,
    Fail,
    ScriptedModel,
    Text,
    ToolCall,
    check_session,
    open_test_runtime,
)

TURNS = 200
CYCLE = 10  # turns after which the script begins anew
WINDOW = 2_000


@trioloop.tool(effects="read-only")
async def page(number: int) -> str:
    """A page of text."""
    return f"Page {number}. " + "All work and no play. " * 100


@trioloop.tool(effects="idempotent")
async def save(note: str) -> str:
    """Save a note."""
    return "saved"


def answer(request: trioloop.Request) -> object:
    """What the model says: by the last question, and by how often it has answered that."""
    questions = [at for at, one in enumerate(request.history) if _is_question(one)]
    if not questions:
        return Text("A summary of it all.")  # an aside about a part
    last = request.history[len(request.history) - 1]
    if isinstance(last, UserMessage) and last.source == "compaction":
        return Text("A summary of it all.")
    if request.session != "a":
        return Answer([Text("a fact")], usage=None)
    asked = request.history[questions[-1]]
    assert isinstance(asked, UserMessage)
    steps = len(request.history) - 1 - questions[-1]
    return _of_turn(int(str(asked.content[0].text).split()[-1]), steps)  # type: ignore[union-attr]


def _is_question(message: Any) -> bool:
    return isinstance(message, UserMessage) and message.source not in ("compaction", "subagents")


def _of_turn(number: int, steps: int) -> object:
    first: dict[int, list[ToolCall]] = {
        1: [ToolCall("page", number=number), ToolCall("page", number=number + 1)],
        3: [ToolCall("save", note="one")],
        5: [ToolCall("research", task="find a fact")],
        7: [ToolCall("exit_plan_mode", plan="look, then save")],
    }
    calls = first.get(number % CYCLE)
    if steps == 0 and calls is not None:
        return Answer(calls, usage=None)
    return Answer([Text(f"done {number}")], usage=None)


class Flaky(ScriptedModel):
    """It fails now and then, and goes on when it is asked again."""

    def __init__(self) -> None:
        self.asked = 0
        super().__init__(self._answer)

    def _answer(self, request: trioloop.Request) -> Any:
        self.asked += 1
        return Fail("SERVER") if self.asked % 17 == 0 else answer(request)


@asynccontextmanager
async def furnished() -> AsyncIterator[tuple[trioloop.Runtime, Any]]:
    """A runtime with all policies open, and its plan mode."""
    approvals = Approvals(timeout_s=5)
    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(
            open_test_runtime(model=Flaky(), tools=[page, save], approver=approvals)
        )
        for policy in (
            retry(runtime),
            spill(runtime),
            pruning(runtime, window_tokens=WINDOW),
            compaction(runtime, window_tokens=WINDOW),
            limits(runtime, turn=Budget(steps=20, calls=20), session=Budget(steps=10_000)),
            approval(runtime, Rule(effects=("idempotent", "once")), approvals=approvals),
            subagents(runtime, Delegate(name="research")),
        ):
            await stack.enter_async_context(policy)
        mode = await stack.enter_async_context(plan_mode(runtime))

        def allow() -> None:
            for one in approvals.open:
                approvals.answer(one.asked.approval, allow=True)

        stack.enter_context(approvals.observe(allow))
        yield runtime, mode


@contextmanager
def counted() -> Iterator[list[int]]:
    """How many Python functions are called meanwhile."""
    calls = [0]

    def profile(frame: FrameType, what: str, argument: object) -> None:
        calls[0] += what == "call"

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield calls
    finally:
        sys.setprofile(before)


async def test_two_hundred_turns_under_all_policies_stay_flat(autojump_clock: MockClock) -> None:
    costs: list[tuple[int, int, int]] = []  # of each cycle: events, messages, function calls
    async with furnished() as (runtime, mode):
        agent = await runtime.create_agent("a")
        for cycle in range(TURNS // CYCLE):
            before = agent.session.seq
            with counted() as calls:
                for turn in range(CYCLE):
                    if turn == 7:
                        mode.select(agent, active=True)
                    settled = await agent.ask(f"turn {cycle * CYCLE + turn}")
                    assert (turn, settled.reason) == (turn, "completed")
            messages = len(list(agent.session.state.surface.nodes))
            costs.append((agent.session.seq - before, messages, calls[0]))
        check_session(agent.session)
        results = facts(agent, ToolResultLogged)
        ended = facts(agent, CompactionEnded)
        kinds = {event.type for event in agent.session.events()}
    assert kinds >= {
        "approval/answer",
        "assistant/attempt",
        "compaction/summary",
        "plan/mode",
        "pruning/pruned",
        "subagents/settled",
    }
    assert {one.code for one in results} == {None}
    assert "replaced" in {one.outcome for one in ended}
    for kind in range(3):
        early, late = costs[4:8], costs[-4:]
        assert sum(one[kind] for one in late) <= 1.1 * sum(one[kind] for one in early), costs
