"""What an agent has spent, folded from its log: steps, calls, tokens, money, seconds.

What follows from it is in `limits`; what trees of agents come to is in `trees`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

import attrs

from trioloop import Event, EventData, Fold, Usage, events
from trioloop.plugins.options import field, from_0, or_none, positive

Answered: TypeAlias = (
    events.AssistantMessageLogged | events.AssistantAttemptLogged | events.AsideEnded
)
What: TypeAlias = Literal["steps", "calls", "tokens", "money", "seconds"]
HAND_OVER = "limits/"
"""How the source of a message begins that grants a last step."""

_WHAT: tuple[What, ...] = ("steps", "calls", "tokens", "money", "seconds")


_is_limit = field(or_none(positive))
_is_price = field(from_0)


@attrs.frozen(kw_only=True)
class Budget:
    """How much may be spent. None: as much as it takes.

    Attributes:
        steps: model requests, retries not counted.
        calls: tool calls, those of programs included.
        tokens: of all attempts, prompt and answer, as far as providers tell.
        money: the price of those tokens.
        seconds: while turns are open.

    Raises:
        InvalidInputError: one of them isn't greater than 0.
    """

    steps: int | None = attrs.field(default=None, validator=_is_limit)
    calls: int | None = attrs.field(default=None, validator=_is_limit)
    tokens: int | None = attrs.field(default=None, validator=_is_limit)
    money: float | None = attrs.field(default=None, validator=_is_limit)
    seconds: float | None = attrs.field(default=None, validator=_is_limit)

    def reached(self, spent: "Spent") -> Iterator[tuple[What, float, float]]:
        """What has been spent as far as it may be: which, the limit, and how much it was."""
        for what in _WHAT:
            limit, used = getattr(self, what), getattr(spent, what)
            if limit is not None and used >= limit:
                yield what, limit, used


@attrs.frozen(kw_only=True)
class Price:
    """What a model's tokens cost, in the application's currency, per million.

    Attributes:
        input: of the prompt.
        output: of the answer, reasoning included.
        cached_input: of what the provider had cached of the prompt; None: as `input`.

    Raises:
        InvalidInputError: one of them is no price.
    """

    input: float = attrs.field(validator=_is_price)
    output: float = attrs.field(validator=_is_price)
    cached_input: float | None = attrs.field(default=None, validator=field(or_none(from_0)))

    def of(self, usage: Usage) -> float:
        """The price of some tokens; what the provider didn't tell costs nothing."""
        cached = usage.cached_input_tokens or 0
        fresh = (usage.input_tokens or 0) - cached
        cached_price = self.input if self.cached_input is None else self.cached_input
        output = (usage.output_tokens or 0) * self.output
        return (fresh * self.input + cached * cached_price + output) / 1_000_000


Prices: TypeAlias = Mapping[str, Price]
"""By the model's name, or `provider/model`, which goes before it."""


def price_of(prices: Prices, provider: str, model: str) -> Price | None:
    """The price of a model; None: nobody gave one."""
    return prices.get(f"{provider}/{model}") or prices.get(model)


@attrs.frozen(kw_only=True)
class Spent:
    """How much was spent, in the units of a `Budget`."""

    steps: int = 0
    calls: int = 0
    tokens: int = 0
    money: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: "Spent") -> "Spent":
        """The sum of both."""
        return Spent(**{what: getattr(self, what) + getattr(other, what) for what in _WHAT})

    def __sub__(self, other: "Spent") -> "Spent":
        """What is left without the other."""
        return Spent(**{what: getattr(self, what) - getattr(other, what) for what in _WHAT})


NOTHING = Spent()


@attrs.frozen
class Account:
    """What a session has spent so far.

    Attributes:
        session: all of it.
        turn: since the chain of turns began that is open, or was the last.
        since: Unix milliseconds at which the open turn began; None: none is open.
        until: Unix milliseconds of the last event that tells of work.
        model: provider and model that are asked.
        granted: the sources of the messages that granted a last step.
        last_step: the step that such a message joined last, as turn and number.
        step: the open, or the last, step of all, as turn and number.
    """

    session: Spent = NOTHING
    turn: Spent = NOTHING
    since: int | None = None
    until: int = 0
    model: tuple[str, str] = ("", "")
    granted: frozenset[str] = frozenset()
    last_step: tuple[int, int] = (0, 0)
    step: tuple[int, int] = (0, 0)

    def at(self, time: int) -> "Account":
        """The account at a time, with what the open turn has taken of it."""
        if self.since is None:
            return self
        return self.spending(seconds=max(time - self.since, 0) / 1000)

    def spending(
        self,
        *,
        steps: int = 0,
        calls: int = 0,
        tokens: int = 0,
        money: float = 0,
        seconds: float = 0,
    ) -> "Account":
        """The account behind some more spending."""
        more = Spent(steps=steps, calls=calls, tokens=tokens, money=money, seconds=seconds)
        return attrs.evolve(self, session=self.session + more, turn=self.turn + more)


def accounts(prices: Prices) -> Fold[Account]:
    """The fold that gives a session's account."""

    def step(account: Account, event: Event) -> Account:
        change = _CHANGES.get(type(event.data))
        return account if change is None else change(account, event.data, event.time, prices)

    return Fold(Account, step)


Change: TypeAlias = Callable[[Account, Any, int, Prices], Account]  # of its own class of events


def _begun(account: Account, data: events.TurnStarted, time: int, _: Prices) -> Account:
    account = attrs.evolve(account, since=time, until=time)
    if data.retry_of is not None:
        return account
    kept = frozenset(one for one in account.granted if not one.startswith(f"{HAND_OVER}turn/"))
    return attrs.evolve(account, turn=Spent(), granted=kept)


def _ended(account: Account, data: events.TurnEnded, time: int, _: Prices) -> Account:
    """The account behind a turn. How long a dead process lay still is nobody's time."""
    until = account.until if data.reason == "interrupted" else time
    return attrs.evolve(account.at(until), since=None)


def _stepped(account: Account, data: events.StepStarted, time: int, _: Prices) -> Account:
    return attrs.evolve(account, step=(data.turn, data.step), until=time).spending(steps=1)


def _called(account: Account, data: EventData, time: int, _: Prices) -> Account:
    return attrs.evolve(account, until=time).spending(calls=1)


def _asks(account: Account, data: events.RequestContextLogged, time: int, _: Prices) -> Account:
    return attrs.evolve(account, model=(data.provider, data.model))


def _used(account: Account, data: Answered, time: int, prices: Prices) -> Account:
    account, usage = attrs.evolve(account, until=time), data.usage
    if usage is None:
        return account
    price = price_of(prices, *account.model)
    return account.spending(
        tokens=(usage.input_tokens or 0) + (usage.output_tokens or 0),
        money=0 if price is None else price.of(usage),
    )


def _joined(account: Account, data: events.UserMessageLogged, time: int, _: Prices) -> Account:
    source = data.message.source
    if not source.startswith(HAND_OVER):
        return account
    return attrs.evolve(account, granted=account.granted | {source}, last_step=account.step)


_CHANGES: Mapping[type[EventData], Change] = {
    events.TurnStarted: _begun,
    events.TurnEnded: _ended,
    events.StepStarted: _stepped,
    events.ToolCallStarted: _called,
    events.NestedCallStarted: _called,
    events.RequestContextLogged: _asks,
    events.AssistantMessageLogged: _used,
    events.AssistantAttemptLogged: _used,
    events.AsideEnded: _used,
    events.UserMessageLogged: _joined,
}
