"""Retrying failed attempts as the model's provider wants it (R1, R3).

The loop has no retry policy of its own: without this plugin a failed attempt ends its turn.
"""

import random as chance
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from trioloop import Runtime
from trioloop.hooks import AttemptFailed, Next, Retry, RetryPolicy
from trioloop.plugins.options import function, instance


@asynccontextmanager
async def retry(
    runtime: Runtime,
    *,
    policy: RetryPolicy | None = None,
    random: Callable[[], float] = chance.random,
) -> AsyncIterator[None]:
    """Retry attempts whose failure may pass, in the open step, while the block is open.

    Listeners of `agent.request_error` that were registered after it are asked first; what they
    answer stands.

    Args:
        runtime: for all its agents.
        policy: how often and how patiently; None: as the failed model's own policy says.
        random: draws the jitter, from 0 to 1; a seeded one makes runs repeatable.

    Raises:
        InvalidInputError: `policy` is none, or `random` is no function.
    """
    function("random", random)
    if policy is not None:
        instance("policy", policy, of=RetryPolicy)

    async def answer(attempt: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
        decided = await next()
        if decided is not None or not attempt.failure.retryable:
            return decided
        chosen = policy or attempt.retry_policy
        delay = chosen.delay_s(len(attempt.earlier) + 1, attempt.failure.retry_after_s, random())
        return None if delay is None else Retry(delay)

    with runtime.hooks.request_error.add(answer):
        yield
