"""Limits of what agents may spend: in a turn, in a session, in a tree of agents.

A limit is looked at before each step. Where it has been reached, the step is rejected with its
code, such as `TURN_STEPS_LIMIT`, or is the last one, to hand over. What counts is in `spending`.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from typing import Literal, TypeAlias

import attrs
import trio

from trioloop import (
    Agent,
    AgentHandle,
    CallConfig,
    EventData,
    InvalidInputError,
    Runtime,
    SessionId,
    Settled,
    TrioloopError,
    event,
    user_message,
)
from trioloop.hooks import (
    CallRequest,
    Decision,
    Deny,
    Enter,
    Next,
    PreStep,
    Reject,
    RequestProposal,
)
from trioloop.plugins.options import from_0, instance
from trioloop.plugins.spending import (
    HAND_OVER,
    Account,
    Budget,
    Price,
    Prices,
    Spent,
    What,
    accounts,
    price_of,
)
from trioloop.plugins.trees import Tree

__all__ = ["Budget", "LimitReached", "Price", "Spending", "Spent", "UnpricedModelError", "limits"]

Scope: TypeAlias = Literal["turn", "session", "tree"]

LAST_STEP = (
    "You have used up what you may spend ({limit}). This is your last step, and you can call no "
    "tool in it: say what is done, what is left, and how to go on."
)


@event("limits/reached", ignorable=True)
class LimitReached(EventData):
    """A limit was reached: the turn ends with its code, or has one last step.

    Attributes:
        scope: of what it is the limit.
        what: what it limits.
        limit: how much was allowed.
        spent: how much it was.
        turn: the turn that was to have a further step.
        last_step: it has one, to hand over.
    """

    scope: Scope
    what: What
    limit: float
    spent: float
    turn: int
    last_step: bool = False

    @property
    def code(self) -> str:
        """The code of a turn that it ends."""
        return f"{self.scope}_{self.what}_LIMIT".upper()

    @property
    def words(self) -> str:
        """The same for people and models."""
        unit = "of money" if self.what == "money" else self.what
        return f"{self.spent:g} {unit} of at most {self.limit:g} in the {self.scope}"

    @property
    def granting(self) -> "LimitReached":
        """The same where it grants a last step."""
        return LimitReached(
            self.scope, self.what, self.limit, self.spent, self.turn, last_step=True
        )

    @property
    def source(self) -> str:
        """The source of the message that grants a last step."""
        return f"{HAND_OVER}{self.scope}/{self.what}/{self.limit:g}"


class UnpricedModelError(TrioloopError):
    """Money is limited, and nobody gave the price of a model. Ends the turn; nothing is sent."""

    code = "UNPRICED_MODEL"


class LimitReachedError(TrioloopError):
    """A limit was reached by failed attempts. Ends the turn, with the limit's code."""

    def __init__(self, reached: LimitReached) -> None:
        super().__init__(f"no further attempt is made: {reached.words}")
        self.code = reached.code


@asynccontextmanager
async def limits(
    over: Runtime | Agent,
    *,
    turn: Budget | None = None,
    session: Budget | None = None,
    tree: Budget | None = None,
    prices: Prices | None = None,
    hand_over: bool | str = False,
    hand_over_s: float = 60,
) -> AsyncIterator["Spending"]:
    """Hold agents to budgets while the block is open.

    Before each step, what was spent is compared with what may be: a step may go beyond a limit,
    the next one is not made. The turn is blocked, with a code such as `SESSION_TOKENS_LIMIT`. At a
    limit of the turn, messages that came meanwhile go back to the inbox, for the next turn; at the
    others they are unadmitted, and `inbox.restore(turn)` puts them back.

    Besides, calls beyond a limit of the turn or the session are denied; a failed attempt is not
    tried again at a limit, but ends the turn with its code; and time is cut: a turn is aborted,
    with the code as its cause, when its seconds are over.

    Args:
        over: a runtime, for all its agents, or one agent.
        turn: of a turn, together with its retry turns.
        session: of a session, over all its turns, also those of earlier processes.
        tree: of an agent without a parent together with all that is delegated from it; its seconds
            are those of that agent.
        prices: of models, by name.
        hand_over: grant one last step, without calls: True, or what the model is told in it, with
            `{limit}` in the place of the limit's words. Where a limit has granted one, the turn is
            blocked; a session's or tree's limit grants one in all.
        hand_over_s: seconds that it has where it is time that is over.

    Raises:
        InvalidInputError: money is limited without prices, or a tree over one agent, or an option
            can't be used.
    """
    given: dict[Scope, Budget | None] = {"turn": turn, "session": session, "tree": tree}
    chosen: dict[Scope, Budget] = {
        scope: budget for scope, budget in given.items() if budget is not None
    }
    for scope, budget in chosen.items():
        instance(scope, budget, of=Budget)
    _check_prices(prices)
    from_0("hand_over_s", hand_over_s)
    limited = any(budget.money is not None for budget in chosen.values())
    if limited and not prices:
        raise InvalidInputError("money is limited: give prices= for the models that are asked")
    if tree is not None and not isinstance(over, Runtime):
        raise InvalidInputError(f"a tree can only be limited over a runtime, not over {over!r}")
    words = LAST_STEP if hand_over is True else hand_over or None
    spending = Spending(over, prices or {})
    policy = _Policy(
        spending,
        chosen,
        words,
        hand_over_s if words else 0,
        prices if limited else None,
    )
    with ExitStack() as stack:
        stack.enter_context(over.hooks.pre_step.add(policy.before_step))
        stack.enter_context(over.hooks.request.add(policy.before_request))
        stack.enter_context(over.tools.guard(policy.before_call))
        stack.enter_context(over.on("settled", policy.give_back_once_settled))
        stack.enter_context(over.on("created", lambda one: spending.watch(one.agent)))
        stack.enter_context(over.on("created", lambda one: policy.give_back(one.agent)))
        stack.enter_context(over.on("disposed", lambda one: spending.forget(one.agent)))
        stack.callback(spending.close)
        yield spending


def _check_prices(prices: Prices | None) -> None:
    if prices is None:
        return
    if not isinstance(prices, Mapping):
        raise InvalidInputError(f"prices must be a dict of names and Price(...), not {prices!r}")
    for model, price in prices.items():
        instance(f"the price of {model!r}", price, of=Price)


class Spending:
    """What agents have spent, read from their logs."""

    def __init__(self, over: Runtime | Agent, prices: Prices) -> None:
        self._over = over
        self._fold = accounts(prices)
        self._tree: Tree | None = None  # from the first time on that somebody asks

    def account(self, agent: AgentHandle) -> Account:
        """What an agent has spent, up to its last event."""
        return agent.session.folded(self._fold).at(agent.session.state.time)

    def turn(self, agent: AgentHandle) -> Spent:
        """What its open or last chain of turns has spent."""
        return self.account(agent).turn

    def session(self, agent: AgentHandle) -> Spent:
        """What its session has spent."""
        return self.account(agent).session

    async def tree(self, agent: AgentHandle) -> Spent:
        """What it has spent together with its parents, their children and its own.

        A checkpoint where the log of a child that doesn't work any more is read.

        Raises:
            InvalidInputError: the plugin is over one agent.
            StoreError: the log can't be read.
        """
        if not isinstance(self._over, Runtime):
            raise InvalidInputError("trees are known over a runtime only")
        if self._tree is None:
            self._tree = Tree(self._over, self._fold)
        return await self._tree.spent(agent)

    def live(self, name: str) -> Agent | None:
        """A live agent that is limited."""
        if isinstance(self._over, Agent):
            return self._over
        return self._over.agents.get(SessionId(name))

    def watch(self, name: str) -> None:
        """An agent works from now on."""
        if self._tree is not None:
            self._tree.watch(name)

    def forget(self, name: str) -> None:
        """An agent works no more."""
        if self._tree is not None:
            self._tree.forget(name)

    def close(self) -> None:
        """Follow nobody any more."""
        if self._tree is not None:
            self._tree.close()


@attrs.frozen(eq=False)
class _Policy:
    """The listeners of `limits`, whose options have their meaning there."""

    spending: Spending
    budgets: dict[Scope, Budget]
    hand_over: str | None
    hand_over_s: float
    priced: Prices | None

    async def before_step(self, step: PreStep, next: Next[Decision]) -> Decision:
        """Reject a step for which nothing is left, or let it be the last."""
        await self._limit_time(step.agent)
        reached = await self._reached(step.agent)
        if not reached:
            return await next()
        first = reached[0]
        granted = self.spending.account(step.agent).granted
        if self.hand_over is None or any(one.source in granted for one in reached):
            await trio.lowlevel.checkpoint_if_cancelled()  # R8: what was cancelled writes nothing
            step.agent.session.append(first)
            return Reject(f"a limit is reached: {first.words}", first.code)
        decision = await next()
        if not isinstance(decision, Enter):
            return decision
        await trio.lowlevel.checkpoint_if_cancelled()
        step.agent.session.append(first.granting)
        told = user_message(self.hand_over.replace("{limit}", first.words), source=first.source)
        return attrs.evolve(decision, messages=(*decision.messages, told))

    async def before_request(self, proposal: RequestProposal, next: Next[CallConfig]) -> CallConfig:
        """Refuse a retry at a limit, and a model whose price isn't known where money is limited."""
        config = await next()
        if self.priced is not None and not price_of(self.priced, config.provider, config.model):
            raise UnpricedModelError(
                f"money is limited, and {config.model!r} of {config.provider!r} has no price: give "
                "it in prices="
            )
        if proposal.attempt > 1:
            for one in await self._reached(proposal.agent):
                if one.what not in ("steps", "calls"):  # which attempts don't use up
                    raise LimitReachedError(one)
        return config

    def before_call(self, call: CallRequest) -> Deny | None:
        """Deny calls in a last step, and those beyond a limit of calls."""
        account = self.spending.account(call.agent)
        if account.step == account.last_step:
            return Deny("this is the last step: no tool can be called any more")
        started = _is_started(call)
        had: dict[Scope, Spent] = {"turn": account.turn, "session": account.session}
        for scope, spent in had.items():
            budget = self.budgets.get(scope)
            limit = None if budget is None else budget.calls
            if limit is not None and spent.calls - started >= limit:
                return Deny(f"a {scope} may have at most {limit} calls, and it has had them")
        return None

    def give_back_once_settled(self, settled: Settled) -> None:
        """Messages that a limit of the turn kept from a step wait for the next turn."""
        if settled.reason == "blocked":
            self.give_back(settled.agent)

    def give_back(self, name: str) -> None:
        """The same, also for an agent that has just been resumed."""
        agent = self.spending.live(name)
        end = None if agent is None else agent.session.state.last_turn
        if agent is None or end is None or end.code not in _TURN_CODES:
            return
        if self.spending.turn(agent).steps:  # else the next turn would be blocked like this one
            agent.inbox.restore(end.turn)

    async def _reached(self, agent: AgentHandle) -> list[LimitReached]:
        turn = agent.session.state.turns
        return [
            LimitReached(scope, what, limit, used, turn)
            for scope, budget in self.budgets.items()
            for what, limit, used in budget.reached(await self._spent(agent, scope))
        ]

    async def _spent(self, agent: AgentHandle, scope: Scope) -> Spent:
        if scope == "tree":
            return await self.spending.tree(agent)
        account = self.spending.account(agent)
        return account.turn if scope == "turn" else account.session

    async def _limit_time(self, agent: AgentHandle) -> None:
        """Let Trio cancel the turn when its time is over."""
        for scope, budget in self.budgets.items():
            if budget.seconds is not None and agent.turn is not None:
                left = budget.seconds - (await self._spent(agent, scope)).seconds
                deadline = trio.current_time() + left + self.hand_over_s
                agent.turn.cancel_at(deadline, f"{scope}_seconds_limit".upper())


_TURN_CODES = {f"TURN_{what}_LIMIT".upper() for what in attrs.fields_dict(Budget)}


def _is_started(call: CallRequest) -> bool:
    """Whether a call that is asked about is in the log already, so that it has been counted."""
    step = call.agent.session.state.step
    if step is None:
        return False
    if call.parent is None:
        found = step.calls.get(call.call)
        return found is not None and found.call_seq is not None
    parent = step.calls.get(call.parent)
    return parent is not None and call.call in (parent.nested or {})
