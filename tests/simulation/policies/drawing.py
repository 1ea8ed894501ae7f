"""How policies join a script that was drawn: their options, calls of their tools, and deeds.

They are drawn by a chance of their own, so that scripts without any are what they were.
"""

import random
from collections.abc import Sequence
from typing import TypeVar

import attrs

from tests.simulation.policies.script import (
    AnswerScript,
    DelegateScript,
    LimitScript,
    PolicyScript,
    RetryScript,
    RuleScript,
)
from tests.simulation.script import AgentScript, Deed, Ending, Script, UserAct, UserScript
from trioloop.errors import MODEL_FAILURE_CODES, RETRYABLE_CODES
from trioloop.plugins import Budget
from trioloop.ports import RetryPolicy
from trioloop.testing import Answer, Fail, Text, ToolCall

ItemT = TypeVar("ItemT")

SECONDS = (0, 0, 0.1, 0.5, 1, 2.5)
PASSING = sorted(RETRYABLE_CODES)
LASTING = sorted(MODEL_FAILURE_CODES - RETRYABLE_CODES)


def with_policies(script: Script, seed: int) -> Script:
    """A script with the policies of a seed, or as it was."""
    chance = random.Random(f"more policies {seed}")
    return _Drawing(chance, script).drawn() if chance.random() < 0.5 else script


class _Drawing:
    def __init__(self, chance: random.Random, script: Script) -> None:
        self._chance = chance
        self._script = script

    def drawn(self) -> Script:
        policies = self._policies()
        script = self._calm() if self._likely(0.6) else self._script
        script = attrs.evolve(
            script,
            policies=policies,
            agents=tuple(self._calling(one, policies) for one in script.agents),
            users=(*script.users, self._user(policies)),
        )
        return self._retrying(script) if self._likely(0.25) else script

    def _calm(self) -> Script:
        """The script without what ends most turns before a policy has its say."""
        sends = UserAct(0.1, Deed("followup", self._agent()))
        waits = UserAct(0.1, "idle", self._agent(), patience_s=60)
        return attrs.evolve(
            self._script,
            users=(UserScript((sends, waits) * self._one((2, 3, 5))),),
            hooks=(),
            faults=(),
            ending=Ending(self._one(("idle", "idle", "idle", "leave"))),
        )

    # Chance

    def _likely(self, likely: float) -> bool:
        return self._chance.random() < likely

    def _one(self, items: Sequence[ItemT]) -> ItemT:
        return self._chance.choice(items)

    def _whose(self) -> int | None:
        """One agent's, now and then."""
        return self._agent() if self._likely(0.2) else None

    def _agent(self) -> int:
        return self._chance.randrange(len(self._script.agents))

    # Options

    def _policies(self) -> PolicyScript:
        return PolicyScript(
            limits=tuple(self._limits() for _ in range(self._one((0, 1, 1, 2)))),
            plans=self._one(((), (), (None,), (None,), (self._agent(),), (None, self._agent()))),
            rules=self._rules() if self._likely(0.5) else None,
            delegates=self._delegates() if self._likely(0.5) else None,
            spills=self._likely(0.3),
            order=self._chance.randrange(1000),
            closed_at_s=self._one((0.5, 1, 2, 4)) if self._likely(0.1) else None,
        )

    def _limits(self) -> LimitScript:
        agent = self._whose()
        return LimitScript(
            turn=self._budget((1, 2, 3, 5)) if self._likely(0.6) else None,
            session=self._budget((2, 4, 7, 12)) if self._likely(0.4) else None,
            tree=self._budget((3, 6, 10)) if agent is None and self._likely(0.4) else None,
            hands_over=self._likely(0.4),
            agent=agent,
        )

    def _budget(self, numbers: Sequence[int]) -> Budget:
        return Budget(
            steps=self._one(numbers) if self._likely(0.5) else None,
            calls=self._one(numbers) if self._likely(0.4) else None,
            tokens=15 * self._one(numbers) if self._likely(0.2) else None,
            money=0.015 * self._one(numbers) if self._likely(0.2) else None,
            seconds=self._one(numbers) if self._likely(0.25) else None,
        )

    def _rules(self) -> RuleScript:
        return RuleScript(
            effects=self._one((("once",), ("once", "idempotent"), ("read-only", "once"))),
            timeout_s=self._one((None, 0.5, 3, 3)),
            answers=tuple(self._answer() for _ in range(self._chance.randint(1, 5))),
            agent=self._whose(),
        )

    def _answer(self) -> AnswerScript:
        return AnswerScript(
            allow=self._likely(0.7),
            remember=self._one((None, None, "turn", "session")),
            after_s=self._one((0, 0.1, 0.5, 0.5, 2.9, 3, None)),
        )

    def _delegates(self) -> DelegateScript:
        return DelegateScript(self._one((1, 2, 2)), self._one((None, None, 0.5, 3)))

    # Failures

    def _retrying(self, script: Script) -> Script:
        """The script with the plugin that retries, and more for it to do."""
        policy = RetryPolicy(
            retries_max=self._one((0, 1, 3)),
            first_delay_s=self._one((0, 0.3, 2)),
            delay_max_s=self._one((0.5, 10)),
            jitter=self._one((0, 0.5)),
            asked_delay_max_s=self._one((0, 1, 120)),
        )
        chosen = RetryScript(policy if self._likely(0.6) else None)
        return attrs.evolve(
            script,
            policies=attrs.evolve(script.policies, retry=chosen),
            settings=attrs.evolve(script.settings, retries=False),
            agents=tuple(self._failing(one) for one in script.agents),
        )

    def _failing(self, agent: AgentScript) -> AgentScript:
        answers: list[Answer] = []
        for answer in agent.answers:
            if self._likely(0.4):
                answers += [self._failure() for _ in range(self._chance.randint(1, 4))]
            answers.append(answer)
        return AgentScript(tuple(answers))

    def _failure(self) -> Answer:
        passing = self._likely(0.85)
        code = self._one(PASSING if passing else LASTING)
        asks = self._one((None, None, None, 0, 0.7, 1.5, 500))
        said = (Text("some words"),) if self._likely(0.3) else ()
        return Answer((*said, Fail(code, retry_after=asks)))

    # What models call

    def _calling(self, agent: AgentScript, policies: PolicyScript) -> AgentScript:
        answers = [self._with_calls(one, policies) for one in agent.answers]
        return AgentScript(tuple(answers))

    def _with_calls(self, answer: Answer, policies: PolicyScript) -> Answer:
        calls: list[ToolCall] = []
        if policies.delegates is not None and self._likely(0.5):
            calls += [self._delegation() for _ in range(self._one((1, 1, 2)))]
        if policies.plans and self._likely(0.3):
            calls.append(ToolCall("exit_plan_mode", plan="look, then act"))
        if policies.spills and self._likely(0.1):
            calls.append(ToolCall("read_result", locator="0" * 64))
        at = self._chance.randint(0, len(answer.pieces))
        return attrs.evolve(answer, pieces=(*answer.pieces[:at], *calls, *answer.pieces[at:]))

    def _delegation(self) -> ToolCall:
        if self._likely(0.3):
            return ToolCall("delegate", task="go on", agent="the last one")
        return ToolCall("delegate", task=self._one(("look", "think")))

    # What users do

    def _user(self, policies: PolicyScript) -> UserScript:
        kinds = ["forget", "answer"] if policies.rules is not None else []
        kinds += ["plan", "plan", "work"] if policies.plans else []
        acts = [self._policy_act(kinds) for _ in range(self._chance.randint(2, 8))]
        return UserScript(tuple(acts))

    def _policy_act(self, kinds: Sequence[str]) -> UserAct:
        if self._likely(0.3):
            return UserAct(self._one(SECONDS), "spent", self._agent())
        after_steps = self._chance.randint(1, 150) if self._likely(0.3) else 0
        after_s = 0 if after_steps else self._one(SECONDS)
        return UserAct(after_s, self._deed(kinds), after_steps=after_steps)

    def _deed(self, kinds: Sequence[str]) -> Deed:
        pick = self._chance.randrange(8)
        if kinds and self._likely(0.6):
            return Deed(self._one(kinds), self._agent(), pick)  # type: ignore[arg-type]
        kind = self._one(("cancel", "cancel-call", "steer", "steer", "inject", "followup"))
        return Deed(kind, self._agent(), pick, of_child=True)  # type: ignore[arg-type]
