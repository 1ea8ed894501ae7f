"""When a history is compacted: before a step, after an overflow, when somebody asks."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from trioloop import (
    AgentHandle,
    ByteEstimator,
    Runtime,
    StoreError,
    TokenEstimator,
)
from trioloop.hooks import AttemptFailed, Compact, Decision, Enter, Next, PreStep, Retry
from trioloop.plugins.compaction.compacting import Policy, compact
from trioloop.plugins.compaction.events import Why, compaction_state
from trioloop.plugins.compaction.summary import INSTRUCTIONS
from trioloop.plugins.options import or_none, part_of_window, positive, text, whole

_log = logging.getLogger("trioloop.plugins")


@asynccontextmanager
async def compaction(
    runtime: Runtime,
    *,
    window_tokens: int | None = None,
    at: float = 0.8,
    keep: float = 0.2,
    recoveries_max: int = 1,
    instructions: str = INSTRUCTIONS,
    estimator: TokenEstimator = ByteEstimator(),  # noqa: B008 - frozen
) -> AsyncIterator[None]:
    """Summarise the older part of a history, so that the conversation can go on.

    While the block is open: before a step whose request would fill a part of the window; after a
    request that was too large for it, which is then tried again; and by hand, between turns, with
    `agent.compact()`. The agent's own model writes the summary. It never cuts a call from its
    result, may take the first steps of a long turn, and leaves what the model has yet to answer.

    What can't be summarised, or comes out no smaller, stays as it is: a step goes on as if nothing
    had been tried, and a failed request fails as it did. `compact()` raises what went wrong.

    Args:
        runtime: for all its agents.
        window_tokens: of prompt and answer; None: as the provider says. Where neither tells, it
            acts only after an overflow, and by hand.
        at: the part of the window from which on it acts, 0 to 1.
        keep: the part of the window, at the end of the history, that is left as it is; by hand,
            nothing is.
        recoveries_max: compactions because of overflows, until the model answers; 0: none.
        instructions: what the model is asked to do; it is shown the part before it.
        estimator: guesses the tokens of what no provider has counted.

    Raises:
        InvalidInputError: an option can't be used.
    """
    or_none(positive)("window_tokens", window_tokens)
    part_of_window("at", at)
    part_of_window("keep", keep)
    whole("recoveries_max", recoveries_max, least=0)
    text("instructions", instructions)
    policy = Policy(window_tokens, at, keep, recoveries_max, instructions, estimator)

    async def before_step(step: PreStep, next: Next[Decision]) -> Decision:
        decision = await next()
        await trio.lowlevel.checkpoint_if_cancelled()  # R8: what was cancelled changes nothing
        session = step.agent.session
        if not isinstance(decision, Enter) or session.folded(compaction_state).gave_up:
            return decision
        if policy.is_pressed(session, decision.messages):
            await _try(step.agent, policy, "pressure")
        return decision

    async def after_failure(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
        decided = await next()
        await trio.lowlevel.checkpoint_if_cancelled()
        if decided is not None or not _may_recover(failed, policy):
            return decided
        return Retry() if await _try(failed.agent, policy, "overflow") else None

    async def when_asked(asked: Compact, next: Next[bool]) -> bool:
        done = False
        while await compact(asked.agent, policy, "asked", asked.focus):
            done = True  # as much as a request holds at once; each time there is less
        return await next() or done

    with (
        runtime.hooks.pre_step.add(before_step),
        runtime.hooks.request_error.add(after_failure),
        runtime.hooks.compact.add(when_asked),
    ):
        yield


def _may_recover(failed: AttemptFailed, policy: Policy) -> bool:
    """Whether an overflow is ours to deal with: room that others have made is tried out first."""
    session = failed.agent.session
    if failed.failure.code != "CONTEXT_WINDOW_EXCEEDED":
        return False
    state = session.folded(compaction_state)
    if state.overflows >= policy.recoveries_max:
        return False
    return not state.made_room or policy.is_pressed(session)


async def _try(agent: AgentHandle, policy: Policy, why: Why) -> bool:
    """Compact; where that fails, say so and go on as if nothing had been tried."""
    try:
        return await compact(agent, policy, why)
    except StoreError:
        raise
    except Exception as error:
        _log.warning("the history of %r can't be compacted: %s", agent.name, error)
        return False
