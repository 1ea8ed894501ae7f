"""One compaction: from its bracket's start to its end, whatever happens in between."""

import math
from collections.abc import Sequence
from contextlib import suppress

import attrs
import trio

from trioloop import (
    AgentDisposedError,
    AgentHandle,
    SessionHandle,
    TokenEstimator,
    context_tokens,
    events,
    messages,
)
from trioloop.plugins.compaction.choosing import chosen_cut
from trioloop.plugins.compaction.events import (
    CompactionEnded,
    CompactionStarted,
    CompactionSummarised,
    Why,
)
from trioloop.plugins.compaction.summary import SummaryError, summary_message, summary_of

_READABLE = 0.9  # of a window: what one request may hold beside prompt, question and answer
_GAIN = 0.05  # of a window: for less, nobody is asked before a step


@attrs.frozen
class Policy:
    """The options of `compaction`, which has their meaning."""

    window_tokens: int | None
    at: float
    keep: float
    recoveries_max: int
    instructions: str
    estimator: TokenEstimator

    def window(self, session: SessionHandle) -> int | None:
        """Tokens of the window; None: nobody knows."""
        told = session.state.context
        return self.window_tokens or (None if told is None else told.context_window)

    def tokens(self, session: SessionHandle, joining: Sequence[messages.UserMessage] = ()) -> int:
        """Tokens of the next request."""
        return context_tokens(session, joining=joining, estimator=self.estimator)

    def is_pressed(
        self, session: SessionHandle, joining: Sequence[messages.UserMessage] = ()
    ) -> bool:
        """Whether the next request fills too much of the window."""
        window = self.window(session)
        return window is not None and self.tokens(session, joining) > self.at * window


async def compact(agent: AgentHandle, policy: Policy, why: Why, focus: str = "") -> bool:
    """Summarise what may be summarised; whether the history is shorter now.

    A checkpoint. However it ends, its bracket in the log is closed.

    Raises:
        SummaryError: the model wrote no summary, or the history changed meanwhile.
        ModelFailure: the model failed.
        StoreError: the store failed.
    """
    part = _part(agent.session, policy, why)
    size = policy.estimator.estimate([message for _, message in part])
    if size <= policy.estimator.estimate([summary_message(".")]):
        return False
    (started,) = agent.session.append(CompactionStarted(why, (part[0][0], part[-1][0]), size))
    instructions = policy.instructions + (f"\n\nAbove all, keep this: {focus}" if focus else "")
    try:
        text = await summary_of(agent, part, instructions)
        return _replace(agent.session, policy, started.seq, part, text)
    except Exception as error:
        _close(agent.session, CompactionEnded("failed", f"{type(error).__name__}: {error}"))
        raise
    except trio.Cancelled:
        _close(agent.session, CompactionEnded("cancelled"))
        raise


def _close(session: SessionHandle, end: CompactionEnded) -> None:
    with suppress(AgentDisposedError):  # the session may be given back by now
        session.append(end)


def _part(
    session: SessionHandle, policy: Policy, why: Why
) -> Sequence[tuple[int, messages.Message]]:
    """The nodes to summarise: the beginning of the history, or nothing."""
    nodes = list(session.state.surface.nodes)
    window = policy.window(session)
    keep = 0 if why == "asked" else policy.keep * (window or policy.tokens(session))
    cut = chosen_cut(
        [message for _, message in nodes],
        policy.estimator,
        keep_tokens=keep,
        most_tokens=math.inf if window is None else _READABLE * window,
        least_tokens=_GAIN * (window or 0) if why == "pressure" else 0,
    )
    return nodes[: cut or 0]


def _replace(
    session: SessionHandle,
    policy: Policy,
    start: int,
    part: Sequence[tuple[int, messages.Message]],
    text: str,
) -> bool:
    """Let the summary stand for the part, unless it isn't smaller."""
    seqs = [seq for seq, _ in session.state.surface.nodes][: len(part)]
    if seqs != [seq for seq, _ in part]:
        raise SummaryError("the history was changed by others while it was summarised")
    message = summary_message(text)
    size = policy.estimator.estimate([message])
    if size >= policy.estimator.estimate([one for _, one in part]):
        session.append(CompactionEnded("not smaller"))
        return False
    asides = [one.seq for one in session.events(start) if isinstance(one.data, events.AsideEnded)]
    session.append(
        CompactionSummarised(asides[-1], size),
        events.UserMessageLogged(message, replaces=(part[0][0], part[-1][0])),
        CompactionEnded("replaced"),
    )
    return True
