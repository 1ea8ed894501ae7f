"""Shortening old tool results when the context window fills: head and tail stay.

The cheapest way to make room, since it asks nobody. What is recent is left alone, and what the
model has not seen yet. The whole result stays in the log.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Literal, TypeAlias

import attrs
import trio

from trioloop import (
    ByteEstimator,
    EventData,
    Runtime,
    SessionHandle,
    TextBlock,
    TokenEstimator,
    context_tokens,
    event,
    events,
    messages,
)
from trioloop.hooks import AttemptFailed, Compact, Decision, Next, PreStep, Retry
from trioloop.plugins.options import or_none, part_of_window, positive, whole

CHARS_LEAST = 100

Why: TypeAlias = Literal["pressure", "overflow", "asked"]


@event("pruning/pruned", ignorable=True)
class ResultsPruned(EventData):
    """Old results were shortened; their new contents follow in the same append.

    Attributes:
        why: the window was filling, a request was too large for it, or somebody asked for it.
        results: how many.
        tokens_before: what they took, by the estimator.
        tokens_after: what they take now.
    """

    why: Why
    results: int
    tokens_before: int
    tokens_after: int


@attrs.frozen
class _Policy:
    """The options of `pruning`, which has their meaning."""

    window_tokens: int | None
    at: float
    keep: float
    gain: float
    result_chars_max: int
    estimator: TokenEstimator


@asynccontextmanager
async def pruning(
    runtime: Runtime,
    *,
    window_tokens: int | None = None,
    at: float = 0.6,
    keep: float = 0.2,
    gain: float = 0.05,
    result_chars_max: int = 2_000,
    estimator: TokenEstimator = ByteEstimator(),  # noqa: B008 - frozen
) -> AsyncIterator[None]:
    """Shorten old tool results while the block is open.

    Before a step, once the next request fills a part of the window; and after a request that was
    too large for it, which is then tried again if that made it smaller; and by hand, with
    `agent.compact()`. It acts before `compaction` does, in whichever order the two were opened.

    Args:
        runtime: for all its agents.
        window_tokens: of prompt and answer; None: as the provider says. Where neither tells,
            results are shortened after an overflow only.
        at: the part of the window from which on it acts, 0 to 1.
        keep: the part of the window, at the end of the history, that is left alone.
        gain: the least part of the window that must come free: each change of the history costs
            the provider's cache of it.
        result_chars_max: characters that a shortened result has at most, half of them from its
            head and half from its tail. Images in it are named, not shown.
        estimator: guesses the tokens of what no provider has counted.

    Raises:
        InvalidInputError: an option can't be used.
    """
    or_none(positive)("window_tokens", window_tokens)
    for name, part in (("at", at), ("keep", keep), ("gain", gain)):
        part_of_window(name, part)
    whole("result_chars_max", result_chars_max, least=CHARS_LEAST)
    policy = _Policy(window_tokens, at, keep, gain, result_chars_max, estimator)

    async def before_step(step: PreStep, next: Next[Decision]) -> Decision:
        await trio.lowlevel.checkpoint_if_cancelled()  # R8: what was cancelled changes nothing
        _relieve(step.agent.session, policy, step.messages)
        return await next()

    async def after_failure(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
        await trio.lowlevel.checkpoint_if_cancelled()
        overflow = failed.failure.code == "CONTEXT_WINDOW_EXCEEDED"
        shorter = overflow and _make_room(failed.agent.session, policy, "overflow")
        decided = await next()
        return Retry() if decided is None and shorter else decided

    async def when_asked(asked: Compact, next: Next[bool]) -> bool:
        shorter = _make_room(asked.agent.session, policy, "asked")
        return await next() or shorter

    with (
        runtime.hooks.pre_step.add(before_step),
        runtime.hooks.request_error.add(after_failure),
        runtime.hooks.compact.add(when_asked),
    ):
        yield


def _window(session: SessionHandle, policy: _Policy) -> int | None:
    told = session.state.context
    return policy.window_tokens or (None if told is None else told.context_window)


def _tokens(
    session: SessionHandle, policy: _Policy, joining: Sequence[messages.UserMessage] = ()
) -> int:
    return context_tokens(session, joining=joining, estimator=policy.estimator)


def _relieve(
    session: SessionHandle, policy: _Policy, joining: Sequence[messages.UserMessage]
) -> None:
    """Shorten old results if the window is filling."""
    window = _window(session, policy)
    if window is not None and _tokens(session, policy, joining) > policy.at * window:
        _prune(session, policy, "pressure", window, least=policy.gain * window)


def _make_room(session: SessionHandle, policy: _Policy, why: Why) -> bool:
    """Shorten old results, however little that gains; whether any became shorter."""
    window = _window(session, policy) or _tokens(session, policy)
    return _prune(session, policy, why, window, least=1)


def _prune(
    session: SessionHandle,
    policy: _Policy,
    why: Why,
    window: int,
    *,
    least: float,
) -> bool:
    nodes = list(session.state.surface.nodes)
    old = old_results(nodes, round(policy.keep * window), policy.estimator)
    shorter = [
        (seq, result, content)
        for seq, result in old
        if (content := shortened(result.content, policy.result_chars_max)) != result.content
    ]
    before = policy.estimator.estimate([result for _, result, _ in shorter])
    after = policy.estimator.estimate(
        [
            messages.ToolResultMessage(result.call, result.wire_id, content, result.is_error)
            for _, result, content in shorter
        ]
    )
    if before - after < least:
        return False
    session.append(
        ResultsPruned(why, len(shorter), before, after),
        *(
            events.ToolResultLogged(result.call, content, result.is_error, replaces=seq)
            for seq, result, content in shorter
        ),
    )
    return True


def old_results(
    nodes: Sequence[tuple[int, messages.Message]], keep_tokens: int, estimator: TokenEstimator
) -> list[tuple[int, messages.ToolResultMessage]]:
    """The results that may be shortened: not recent ones, and none that the model hasn't seen.

    Args:
        nodes: the history, each with the seq of its event.
        keep_tokens: how much at its end counts as recent.
        estimator: tells how much that is.
    """
    end = len(nodes)
    while end and (keep_tokens := keep_tokens - estimator.estimate([nodes[end - 1][1]])) >= 0:
        end -= 1
    answers = [
        place
        for place, (_, message) in enumerate(nodes)
        if isinstance(message, messages.AssistantMessage)
    ]
    seen = nodes[: min(end, answers[-1] if answers else 0)]
    return [
        (seq, message) for seq, message in seen if isinstance(message, messages.ToolResultMessage)
    ]


def shortened(content: Sequence[messages.Block], chars_max: int) -> tuple[messages.Block, ...]:
    """Head and tail of some content, cut between code points; it itself, where it is short.

    What came out of here is short, so that shortening it again changes nothing.
    """
    texts = [
        block.text if isinstance(block, TextBlock) else f"[{_kind(block)} was here]"
        for block in content
    ]
    text = "\n".join(texts)
    if len(text) <= chars_max:
        plain = all(isinstance(block, TextBlock) for block in content)
        return tuple(content) if plain else (TextBlock(text),)
    notice = f"\n[... of {len(text):,} characters only head and tail were kept ...]\n"
    room = chars_max - len(notice)
    return (TextBlock(text[: room - room // 2] + notice + text[len(text) - room // 2 :]),)


def _kind(block: messages.Block) -> str:
    return "an image" if isinstance(block, messages.ImageBlock) else "something else"
