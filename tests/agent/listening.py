"""Listeners that several tests of the loop register."""

from typing import TypeAlias

from tests.agent.reading import pass_waits
from trioloop.hooks.dispatch import Next, WaterfallListener
from trioloop.hooks.points import AttemptFailed, Retry

FailureListener: TypeAlias = WaterfallListener[AttemptFailed, Retry | None]


def retrying(delay: float = 0, *, fresh_turn: bool = False, times: int = 100) -> FailureListener:
    """A listener of `agent.request_error` that retries so often, whatever fails."""
    left = [times]

    async def retry(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
        await pass_waits()
        left[0] -= 1
        return Retry(delay, fresh_turn=fresh_turn) if left[0] >= 0 else await next()

    return retry
