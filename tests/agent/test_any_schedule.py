"""Sends, cancels, wakes and waits in any order: the four dimensions of state hold (S1 to S4)."""

from collections.abc import Sequence
from typing import TypeAlias

import attrs
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from tests.agent.listening import retrying
from tests.agent.reading import ends, facts
from tests.agent.sweeping import Fates, check_fates
from trioloop.agent.agent import Agent
from trioloop.agent.notifications import Settled
from trioloop.errors import TrioloopError
from trioloop.events import InboxSpliced, TurnEnded, TurnStarted, UserMessageLogged
from trioloop.models.scripted import Entry
from trioloop.testing import (
    Answer,
    Fail,
    ScriptedModel,
    Text,
    ToolCall,
    Wait,
    open_test_runtime,
)
from trioloop.tools.tool import tool

Op: TypeAlias = tuple[str, float]

ENTRIES: dict[str, Entry] = {
    "text": Text("x"),
    "slow": [Text("a"), Wait(1), Text("b")],
    "fail": [Wait(0.5), Fail("SERVER")],
    "call": ToolCall("work"),
    "cut": Answer((Text("half"), ToolCall("work")), finish="length"),
    "pause": Answer((Wait(0.5), Text("a")), finish="pause"),
}
OPS = [
    "followup",
    "steer",
    "inject",
    "later",
    "ask",
    "cancel",
    "discard",
    "wake",
    "remove",
    "clear",
    "restore",
    "idle",
]
ops = st.lists(
    st.tuples(st.sampled_from(OPS), st.sampled_from([0, 0, 0.25, 0.5, 1, 3])), max_size=14
)
answers = st.lists(st.sampled_from(sorted(ENTRIES)), max_size=12)


@tool(effects="read-only")
async def work() -> str:
    """Work for some time."""
    await trio.sleep(0.75)
    return "done"


@attrs.define
class Run:
    """One run, and what was done and told in it."""

    agent: Agent
    nursery: trio.Nursery
    sent: list[str] = attrs.field(factory=list)
    wakes: list[int] = attrs.field(factory=list)
    statuses: list[str] = attrs.field(factory=list)
    settled: list[Settled] = attrs.field(factory=list)
    restored: bool = False

    def listen(self) -> None:
        """Take notes from here on."""
        self.agent.on("status", lambda told: self.statuses.append(told.status))
        self.agent.on("settled", self.settled.append)

    async def do(self, op: str) -> None:
        """Do one thing."""
        agent, inbox = self.agent, self.agent.session.state.inbox
        if op == "followup":
            self.sent.append(agent.followup("f"))
        elif op == "steer":
            agent.steer("s")
        elif op == "inject":
            agent.inject("i")
        elif op == "later":
            self.sent.append(agent.send("l", wakeup=False))
        elif op == "ask":
            self.nursery.start_soon(self.ask)
        elif op in ("cancel", "discard"):
            agent.cancel("why", discard_inbox=op == "discard")
        elif op == "wake":
            self.wakes.append(agent.session.seq)
            agent.wake()
        elif op == "remove" and len(inbox):
            agent.inbox.remove(next(iter(inbox)).message.id)
        elif op == "clear":
            agent.inbox.clear()
        elif op == "restore" and agent.session.state.turns:
            self.restored |= agent.inbox.restore(agent.session.state.turns) > 0
        elif op == "idle":
            await agent.wait_idle()

    async def ask(self) -> None:
        """Ask, and lose patience after a while."""
        with trio.move_on_after(0.6):
            try:
                await self.agent.ask("a")
            except TrioloopError:
                return


async def run(ops: Sequence[Op], names: Sequence[str], retries: int) -> None:
    """Run a schedule and check what must hold."""
    script = iter(names)
    model = ScriptedModel(lambda _: ENTRIES[next(script, "text")])
    async with (
        open_test_runtime(model=model, tools=[work]) as runtime,
        trio.open_nursery() as nursery,
    ):
        agent = await runtime.create_agent("a")
        agent.hooks.request_error.add(retrying(0.25, fresh_turn=retries > 1, times=retries))
        fates, run = Fates(agent), Run(agent, nursery)
        run.listen()
        for op, wait_s in ops:
            await run.do(op)
            if wait_s:
                await trio.sleep(wait_s)
        await trio.sleep(1)  # by then every ask has begun, and has been answered or given up
        await agent.wait_idle()
    check_fates(agent, fates)
    check_run(run)


def check_run(run: Run) -> None:
    """What must hold of any run that has come to rest."""
    turns = [start.turn for start in facts(run.agent, TurnStarted)]
    assert [turn for told in run.settled for turn in told.turns] == turns, "one settled per chain"
    assert run.statuses == ["running", "idle"] * (len(run.statuses) // 2)
    causes = {end.cause for end in ends(run.agent) if end.reason == "aborted"}
    assert causes <= {"why", "asker-cancelled"}
    admitted = [fact.message.id for fact in facts(run.agent, UserMessageLogged)]
    if not run.restored:
        in_order = [id for id in run.sent if id in admitted]
        assert [id for id in admitted if id in run.sent] == in_order
    check_going_on(run)


def check_going_on(run: Run) -> None:
    """After an error or an abort nothing opens but for a wake that came since (R4, I4)."""
    opened, ended = -1, None
    for event in run.agent.session.events():
        if isinstance(event.data, TurnStarted):
            parked = ended is not None and ended.reason in ("error", "aborted")
            if parked and event.data.retry_of is None:
                assert _woken(run, opened, event.seq), f"turn {event.data.turn} opened by itself"
            opened = event.seq
        elif isinstance(event.data, TurnEnded):
            ended = event.data


def _woken(run: Run, opened: int, before: int) -> bool:
    """Whether somebody woke the agent since a turn opened, and before another did."""
    if any(opened <= seq < before for seq in run.wakes):
        return True
    ended = False
    for event in run.agent.session.events(opened):
        if event.seq >= before:
            return False
        ended = ended or isinstance(event.data, TurnEnded)
        if isinstance(event.data, InboxSpliced) and any(
            one.wakeup and not one.restored and (ended or one.after_cancel)
            for one in event.data.inserted
        ):
            return True
    return False


@settings(max_examples=100)
@given(st.random_module(), ops, answers, st.integers(0, 2))
def test_any_schedule_keeps_the_four_dimensions(
    random: object, ops: Sequence[Op], names: Sequence[str], retries: int
) -> None:
    trio.run(run, ops, names, retries, clock=MockClock(autojump_threshold=0))
