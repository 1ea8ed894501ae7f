"""A policy of your own: `trioloop.plugins.pruning`, written once more with public names alone.

What a policy is made of: an async context manager over a runtime, listeners of hooks, a durable
event of its own, and facts that it appends to the log. This one makes room in a model's context
window: old tool results are cut to head and tail, once the window fills or a request was too large
for it. The plugin's own tests run on this file, too.

The demonstration needs no key: a scripted model reads a book of 12 pages, one call after the other,
with a window that holds four of them.

    python examples/prune_results.py
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

import trio

import trioloop
from trioloop.events import ToolResultLogged
from trioloop.hooks import AttemptFailed, Compact, Decision, Next, PreStep, Retry
from trioloop.messages import AssistantMessage, Block, TextBlock, ToolResultMessage, UserMessage
from trioloop.models import ScriptedModel
from trioloop.testing import Answer, Text, ToolCall

ESTIMATOR = trioloop.ByteEstimator()
WINDOW = 2_000


@trioloop.event("example/pruned", ignorable=True)
class Pruned(trioloop.EventData):
    """Some results were cut; `tokens` came free by that, about."""

    results: int
    tokens: int


class Pruner:
    """Cuts the old results of one session. Parts are those of the window, 0 to 1."""

    def __init__(
        self, session: trioloop.SessionHandle, window: int, keep: float, chars_max: int
    ) -> None:
        self.session = session
        self.window = window
        self.keep = keep
        self.chars_max = chars_max

    def prune(self, least: float) -> bool:
        """Cut what is old and long, if that frees so many tokens; whether it did."""
        cut = [
            (old, ToolResultLogged(old.call, content, old.is_error, replaces=seq))
            for seq, old in self._old()
            if (content := cut_to(old.content, self.chars_max)) != old.content
        ]
        freed = sum(_tokens(old.content) - _tokens(new.content) for old, new in cut)
        if freed < least:
            return False
        self.session.append(Pruned(len(cut), freed), *(new for _, new in cut))  # all, or none
        return True

    def _old(self) -> Iterator[tuple[int, ToolResultMessage]]:
        """Results that the model has seen, and that lie behind what is recent."""
        recent, seen = 0.0, False
        for seq, message in reversed(list(self.session.state.surface.nodes)):
            recent += ESTIMATOR.estimate([message])
            if seen and recent > self.keep * self.window and isinstance(message, ToolResultMessage):
                yield seq, message
            seen = seen or isinstance(message, AssistantMessage)


def _tokens(content: Sequence[Block]) -> int:
    return ESTIMATOR.estimate([UserMessage(tuple(content))])


def cut_to(content: Sequence[Block], chars_max: int) -> tuple[Block, ...]:
    """Head and tail of some content, unless it is short."""
    if all(isinstance(one, TextBlock) for one in content):
        whole = "\n".join(one.text for one in content if isinstance(one, TextBlock))
        if len(whole) <= chars_max:
            return tuple(content)
    whole = "\n".join(getattr(one, "text", "[no text]") for one in content)
    if len(whole) <= chars_max:
        return (TextBlock(whole),)
    notice = "\n[... cut ...]\n"
    half = (chars_max - len(notice)) // 2
    return (TextBlock(whole[:half] + notice + whole[-half:]),)


@asynccontextmanager
async def pruning(
    runtime: trioloop.Runtime,
    *,
    window_tokens: int | None = None,
    at: float = 0.6,
    keep: float = 0.2,
    gain: float = 0.05,
    result_chars_max: int = 2_000,
) -> AsyncIterator[None]:
    """Cut old results while the block is open."""

    def window_of(session: trioloop.SessionHandle) -> int | None:
        told = session.state.context
        return window_tokens or (told.context_window if told else None)

    def relieve(session: trioloop.SessionHandle, joining: Sequence[UserMessage]) -> None:
        window = window_of(session)
        used = trioloop.context_tokens(session, joining=joining)
        if window and used > at * window:
            Pruner(session, window, keep, result_chars_max).prune(least=gain * window)

    def make_room(session: trioloop.SessionHandle) -> bool:
        window = window_of(session) or trioloop.context_tokens(session)
        return Pruner(session, window, keep, result_chars_max).prune(least=1)

    async def before_step(step: PreStep, next: Next[Decision]) -> Decision:
        await trio.lowlevel.checkpoint_if_cancelled()  # what was cancelled changes nothing
        relieve(step.agent.session, step.messages)
        return await next()

    async def after_failure(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
        await trio.lowlevel.checkpoint_if_cancelled()
        overflow = failed.failure.code == "CONTEXT_WINDOW_EXCEEDED"
        freed = overflow and make_room(failed.agent.session)
        decided = await next()
        return Retry() if decided is None and freed else decided

    async def when_asked(asked: Compact, next: Next[bool]) -> bool:
        freed = make_room(asked.agent.session)
        return await next() or freed

    hooks = runtime.hooks
    with (
        hooks.pre_step.add(before_step),
        hooks.request_error.add(after_failure),
        hooks.compact.add(when_asked),
    ):
        yield


# The demonstration


@trioloop.tool(effects="read-only")
async def read_page(number: int) -> str:
    """A page of the book.

    Args:
        number: from 1 on.
    """
    return f"Page {number}. " + "It was a dark and stormy night. " * 60


def answer(request: trioloop.Request) -> Answer:
    """Read on until the last page."""
    read = sum(isinstance(message, ToolResultMessage) for message in request.history)
    used = ESTIMATOR.estimate(list(request.messages))
    print(f"{read:2} pages read, {used:4} of {WINDOW} tokens used")
    piece = ToolCall("read_page", number=read + 1) if read < 12 else Text("It was stormy.")
    return Answer([piece], usage=None)


async def main() -> None:
    """Read the book, and count what the log has of it."""
    model = ScriptedModel(answer)
    async with (
        trioloop.open_runtime(model=model, tools=[read_page]) as runtime,
        pruning(runtime, window_tokens=WINDOW, result_chars_max=200),
    ):
        agent = await runtime.create_agent("reader")
        settled = await agent.ask("How was the night?")
        facts = [event.data for event in agent.session.events()]
    print(f"the model: {settled.text}")
    results = [fact for fact in facts if isinstance(fact, ToolResultLogged)]
    whole = sum(fact.replaces is None for fact in results)
    pruned = [fact for fact in facts if isinstance(fact, Pruned)]
    print(f"{whole} whole results are in the log, {len(results) - whole} of them also cut,")
    print(f"in {len(pruned)} goes that freed {sum(fact.tokens for fact in pruned)} tokens")


if __name__ == "__main__":
    trio.run(main)
