"""Which part of a history is summarised: pure, and the same for every reason to do it."""

from collections.abc import Sequence
from itertools import accumulate

from trioloop import TokenEstimator, messages

SOURCE = "compaction"
"""The source of the messages that hold a summary."""


def cuts(history: Sequence[messages.Message]) -> list[int]:
    """Where a history may be cut: how many messages stand before each cut, ascending.

    Never between a call and its result, and never behind what the model has yet to answer: the
    results of its last calls, or what was said to it since.
    """
    return [
        place
        for place in range(1, _answered(history) + 1)
        if place == len(history) or not isinstance(history[place], messages.ToolResultMessage)
    ]


def _answered(history: Sequence[messages.Message]) -> int:
    """How many messages stand before the first that the model has yet to answer."""
    for place in reversed(range(len(history))):
        message = history[place]
        if isinstance(message, messages.AssistantMessage):
            return place if message.calls else place + 1
    return 0


def chosen_cut(
    history: Sequence[messages.Message],
    estimator: TokenEstimator,
    *,
    keep_tokens: float,
    most_tokens: float = float("inf"),
    least_tokens: float = 0,
) -> int | None:
    """How many messages from the beginning on are summarised; None: it isn't worth it.

    Args:
        history: the messages.
        estimator: guesses their tokens.
        keep_tokens: the end that stays as it is, as far as it can be cut so.
        most_tokens: how much a model can read at once. Where that would be too little to be worth
            it, it is given more all the same: this is a guess.
        least_tokens: how much must be new in it, not counting an earlier summary.
    """
    places = cuts(history)
    if not places:
        return None
    sizes = [estimator.estimate([message]) for message in history]
    before = [0, *accumulate(sizes)]
    small_end = (place for place in places if before[-1] - before[place] <= keep_tokens)
    wanted = next(small_end, places[-1])
    readable = [place for place in places if place <= wanted and before[place] <= most_tokens]
    new = [0, *accumulate(0 if is_summary(one) else sizes[at] for at, one in enumerate(history))]
    worth = (place for place in (*readable[-1:], wanted) if new[place] >= max(least_tokens, 1))
    return next(worth, None)


def is_summary(message: messages.Message) -> bool:
    """Whether a message holds the summary of an earlier part."""
    return isinstance(message, messages.UserMessage) and message.source == SOURCE
