"""What `retry` promises: as many attempts as a policy grants, each in its time, and no fewer."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from tests.simulation.policies.script import OF_MODELS
from trioloop import Event
from trioloop.events import (
    AssistantAttemptLogged,
    AssistantMessageLogged,
    Failure,
    StepStarted,
    TurnEnded,
)
from trioloop.ports import RetryPolicy

if TYPE_CHECKING:
    from tests.simulation.lives import Life
    from tests.simulation.world import World

CLOCK_MS = 2  # times in the log are rounded


@attrs.define
class Failures:
    """The failures of a step so far.

    Attributes:
        policy: how often and how patiently it is retried.
        count: how many there were.
        last: the last one; None: there was none, or an attempt has come behind it.
        at: when that was, in Unix milliseconds.
    """

    policy: RetryPolicy
    count: int = 0
    last: Failure | None = None
    at: int = 0

    def take(self, event: Event, failure: Failure | None) -> None:
        """Count an attempt that has ended."""
        self.count += failure is not None
        self.last, self.at = failure, event.time

    @property
    def may_pass(self) -> bool:
        """Whether a further attempt is granted."""
        assert self.last is not None
        asked = self.last.retry_after_s
        patient = asked is None or asked <= self.policy.asked_delay_max_s
        return self.last.retryable and self.count <= self.policy.retries_max and patient

    @property
    def least_wait_ms(self) -> float:
        """How long it is waited at least, whatever chance takes off."""
        assert self.last is not None
        if self.last.retry_after_s is not None:
            return 1000 * self.last.retry_after_s
        longest: float = self.policy.first_delay_s * 2 ** (self.count - 1)
        return 1000 * min(longest, self.policy.delay_max_s) * (1 - self.policy.jitter)


def of_retries(world: "World", life: "Life") -> Iterator[str]:
    """Where nobody else retries."""
    policy = policy_of(world)
    if policy is not None:
        yield from faults_in(life.agent.session.events(), policy)


def policy_of(world: "World") -> RetryPolicy | None:
    """The policy by which a run retries; None: nobody does, or others do, too."""
    settings, script = world.script.settings, world.script.policies.retry
    others = any(hook.place == "request_error" for hook in world.script.hooks)
    if others or settings.compacts or settings.prunes:
        return None
    if script is not None:
        return script.policy or OF_MODELS
    return OF_MODELS if settings.retries else None


def faults_in(events: Sequence[Event], policy: RetryPolicy) -> Iterator[str]:
    """Retries that a log has and shouldn't, or should have and hasn't."""
    failures = Failures(policy)
    for event in events:
        data = event.data
        if isinstance(data, StepStarted):
            failures = Failures(policy)
        elif isinstance(data, AssistantAttemptLogged | AssistantMessageLogged):
            if failures.last is not None and getattr(data, "sent", True):
                yield from _of_attempt(event, failures)
            failures.take(event, getattr(data, "failure", None))
        elif isinstance(data, TurnEnded) and failures.last is not None:
            gave_up = data.reason == "error" and data.code == failures.last.code
            if gave_up and failures.may_pass:
                yield f"the turn ends at {event.seq}, and a further attempt is granted"


def _of_attempt(event: Event, failures: Failures) -> Iterator[str]:
    """What is wrong with an attempt behind a failure."""
    if not failures.may_pass:
        yield f"{event.seq} is an attempt behind a failure that is to last"
    waited = event.time - failures.at
    if waited < failures.least_wait_ms - CLOCK_MS:
        yield f"{event.seq} comes {waited} ms behind a failure, not {failures.least_wait_ms}"
