"""The policies of a run: opened as its script says, and the person who answers questions."""

import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import attrs
import trio

from tests.simulation.policies.script import HAND_OVER_S, PRICES, AnswerScript, LimitScript
from trioloop import Agent, Runtime
from trioloop.plugins import (
    Approvals,
    Delegate,
    Rule,
    approval,
    limits,
    plan_mode,
    retry,
    spill,
    subagents,
)
from trioloop.plugins.approval import OpenApproval, UnknownApprovalError
from trioloop.plugins.limits import Spending
from trioloop.plugins.plan_mode import PlanMode

if TYPE_CHECKING:
    from tests.simulation.lives import Life
    from tests.simulation.world import World

ValueT = TypeVar("ValueT")
Opening: TypeAlias = Callable[[Runtime | Agent], AbstractAsyncContextManager[Any]]


@attrs.frozen
class Given:
    """An answer that a person has given.

    Attributes:
        approval: the question's id.
        allow: yes or no.
        at_s: when.
    """

    approval: str
    allow: bool
    at_s: float


@attrs.frozen
class Policy:
    """A plugin of the script: whose it is, and how it is opened."""

    agent: int | None
    opening: Opening


class Policies:
    """What is open of them.

    Attributes:
        approvals: the questions that wait; None: nobody is asked.
        modes: of each plan mode, by whose it is.
        spendings: of each plugin that limits, by whose it is.
        given: the answers of the person.
        closed: they are closed.
        closed_early: they were while agents worked.
    """

    def __init__(self, world: "World") -> None:
        self._world = world
        script = world.script.policies
        rules = script.rules
        self.approvals = (
            None
            if rules is None
            else Approvals(
                timeout_s=rules.timeout_s, clock=lambda: round(trio.current_time() * 1000)
            )
        )
        self.modes: list[tuple[int | None, PlanMode]] = []
        self.spendings: list[tuple[LimitScript, Spending]] = []
        self.given: list[Given] = []
        self.closed = False
        self.closed_early = False
        self._stack = AsyncExitStack()
        self._asked, self._to_answer = trio.open_memory_channel[OpenApproval](1000)
        self._seen: set[str] = set()
        self._questions = 0

    # Opening and closing

    async def open(self, runtime: Runtime) -> None:
        """Open those of the runtime."""
        if self.approvals is not None:
            self.approvals.observe(self._hand_over_questions)
        for policy in self._all():
            if policy.agent is None:
                await self._stack.enter_async_context(policy.opening(runtime))

    async def take_up(self, agent: Agent, number: int) -> None:
        """Open those of one agent."""
        for policy in self._all():
            if policy.agent == number and not self.closed:
                await self._stack.enter_async_context(policy.opening(agent))

    async def close(self) -> None:
        """Close all of them."""
        self.closed = True
        await self._stack.aclose()

    def _all(self) -> list[Policy]:
        script = self._world.script.policies
        found = [Policy(one.agent, partial(self._limits, one)) for one in script.limits]
        found += [Policy(whose, partial(self._plan_mode, whose)) for whose in script.plans[:1]]
        found += [
            Policy(whose, partial(self._plan_mode, whose, name="other_exit"))
            for whose in script.plans[1:]
        ]
        if script.rules is not None:
            found.append(Policy(script.rules.agent, self._approval))
        if script.delegates is not None:
            found.append(Policy(None, self._subagents))
        if script.retry is not None:
            found.append(Policy(None, self._retry))
        if script.spills:
            found.append(Policy(None, spill))  # type: ignore[arg-type]  # over runtimes only
        random.Random(script.order).shuffle(found)
        return found

    def _limits(
        self, script: LimitScript, over: Runtime | Agent
    ) -> AbstractAsyncContextManager[Any]:
        opened = limits(
            over,
            turn=script.turn,
            session=script.session,
            tree=script.tree,
            prices=PRICES,
            hand_over=script.hands_over,
            hand_over_s=HAND_OVER_S,
        )
        return _noted(opened, lambda spending: self.spendings.append((script, spending)))

    def _plan_mode(
        self, whose: int | None, over: Runtime | Agent, *, name: str = "exit_plan_mode"
    ) -> AbstractAsyncContextManager[Any]:
        opened = plan_mode(over, tool_name=name)
        return _noted(opened, lambda mode: self.modes.append((whose, mode)))

    def _approval(self, over: Runtime | Agent) -> AbstractAsyncContextManager[Any]:
        rules = self._world.script.policies.rules
        assert rules is not None
        return approval(over, Rule(effects=rules.effects), approvals=self.approvals)

    def _retry(self, over: Runtime | Agent) -> AbstractAsyncContextManager[Any]:
        script = self._world.script
        assert script.policies.retry is not None
        assert isinstance(over, Runtime)
        jitter = random.Random(script.seed).random
        return retry(over, policy=script.policies.retry.policy, random=jitter)

    def _subagents(self, over: Runtime | Agent) -> AbstractAsyncContextManager[Any]:
        delegates = self._world.script.policies.delegates
        assert delegates is not None
        assert isinstance(over, Runtime)
        kind = Delegate(timeout_s=delegates.timeout_s)
        return subagents(over, kind, depth_max=delegates.depth_max)

    async def compare_trees(self, life: "Life") -> None:
        """Count what a tree has spent a second time, where nothing is written meanwhile."""
        if life.disposing or self.closed or self._world.store.failed:  # what was lost isn't read
            return
        for script, spending in self.spendings:
            if script.agent is None:
                written = len(self._world.chronicle)
                told = await spending.tree(life.agent)
                mine = self._world.children.spent_by_tree(life)
                same = (told.steps, told.calls, told.tokens) == (
                    mine.steps,
                    mine.calls,
                    mine.tokens,
                )
                if written == len(self._world.chronicle) and not same:
                    name = life.agent.name
                    self._world.violations.append(f"{name} has spent {mine}, and is told {told}")

    # The person

    def _hand_over_questions(self) -> None:
        assert self.approvals is not None
        for one in self.approvals.open:
            if one.asked.approval not in self._seen:
                self._seen.add(one.asked.approval)
                self._asked.send_nowait(one)

    async def answer_questions(self) -> None:
        """Be the person who is asked; ends by being cancelled."""
        rules = self._world.script.policies.rules
        if rules is None:
            return
        async with trio.open_nursery() as nursery:
            async for one in self._to_answer:
                if rules.answers:
                    answer = rules.answers[self._questions % len(rules.answers)]
                    self._questions += 1
                    nursery.start_soon(self._answer_later, one, answer)

    async def _answer_later(self, asked: OpenApproval, answer: AnswerScript) -> None:
        if answer.after_s is None:
            return
        await trio.sleep(answer.after_s)
        self.answer(asked, answer)

    def answer(self, asked: OpenApproval, answer: AnswerScript) -> None:
        """Answer a question, if it is still open."""
        assert self.approvals is not None
        id = asked.asked.approval
        remember = answer.remember if asked.asked.about else None
        try:
            self.approvals.answer(id, allow=answer.allow, by="a person", remember=remember)
        except UnknownApprovalError:
            self._world.tell(f"the answer to {id} came too late")
        else:
            self.given.append(Given(id, answer.allow, trio.current_time()))


@asynccontextmanager
async def _noted(
    opened: AbstractAsyncContextManager[ValueT], tell: Callable[[ValueT], None]
) -> AsyncIterator[None]:
    """Tell the value of a context manager once it is open."""
    async with opened as value:
        tell(value)
        yield
