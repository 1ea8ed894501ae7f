"""Which policies a run has, as data: a part of its script."""

from typing import Literal, TypeAlias

import attrs

from trioloop.plugins import Budget, Price
from trioloop.plugins.approval import Remember
from trioloop.ports import RetryPolicy

PolicyDeedKind: TypeAlias = Literal["plan", "work", "answer", "forget"]
"""`plan` and `work` select plan mode, and end it; `answer` closes a question; `forget` answers."""

HAND_OVER_S = 2
OF_MODELS = RetryPolicy(retries_max=2, first_delay_s=0.2)
PRICES = {"model": Price(input=1_000, output=1_000), "other": Price(input=2_000, output=2_000)}


@attrs.frozen
class LimitScript:
    """A plugin that limits spending.

    Attributes:
        turn: the budget of a turn.
        session: that of a session.
        tree: that of a tree, where it is over the runtime.
        hands_over: it grants a last step.
        agent: whose it is; None: the runtime's.
    """

    turn: Budget | None = None
    session: Budget | None = None
    tree: Budget | None = None
    hands_over: bool = False
    agent: int | None = None


@attrs.frozen
class AnswerScript:
    """What a person says to a question.

    Attributes:
        allow: yes or no.
        remember: how long it holds for calls that are alike.
        after_s: how long it takes; None: it never comes.
    """

    allow: bool = True
    remember: Remember | None = None
    after_s: float | None = 0


@attrs.frozen
class RuleScript:
    """A plugin that asks about calls, and the person who is asked.

    Attributes:
        effects: of the calls that are asked about.
        timeout_s: how long a question waits.
        answers: to the first question, to the second, and so on, and then from the first on again.
        agent: whose it is; None: the runtime's.
    """

    effects: tuple[str, ...] = ("once", "idempotent")
    timeout_s: float | None = 3
    answers: tuple[AnswerScript, ...] = (AnswerScript(),)
    agent: int | None = None


@attrs.frozen
class DelegateScript:
    """The plugin that lets agents delegate.

    Attributes:
        depth_max: how many delegations may lead to an agent.
        timeout_s: how long a task may take.
    """

    depth_max: int = 2
    timeout_s: float | None = None


@attrs.frozen
class RetryScript:
    """The plugin that retries, beside that of the settings.

    Attributes:
        policy: its own; None: it goes by those of the models.
    """

    policy: RetryPolicy | None = None


@attrs.frozen
class PolicyScript:
    """The policies of a run, beside those of its settings.

    Attributes:
        limits: as many plugins as there are of them.
        plans: for each plugin whose it is; None: the runtime's.
        rules: the plugin that asks about calls; None: there is none.
        delegates: the one that delegates; None: there is none.
        spills: oversized results are kept.
        retry: the plugin that retries, where the settings have none; None: there is none here.
        order: of the plugins, as the seed of a shuffle.
        closed_at_s: when all of them are closed, while agents work; None: at the end.
    """

    limits: tuple[LimitScript, ...] = ()
    plans: tuple[int | None, ...] = ()
    rules: RuleScript | None = None
    delegates: DelegateScript | None = None
    spills: bool = False
    retry: RetryScript | None = None
    order: int = 0
    closed_at_s: float | None = None


NO_POLICIES = PolicyScript()
