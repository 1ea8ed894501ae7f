"""Keeping whole what is too long for a model: the result goes to the store, a preview to the log.

Without this plugin, head and tail of an oversized result are recorded, and the rest is gone.
"""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import attrs

from trioloop import Runtime, TextBlock, Tool, ToolOutcome, TrioloopError, tool
from trioloop.hooks import Accept, Next, PostExecution, PostPolicy, Replace
from trioloop.plugins.options import function

_log = logging.getLogger("trioloop.plugins")

_FRAME_BYTES = 128  # room for the words around a slice


@asynccontextmanager
async def spill(
    runtime: Runtime, *, name: str = "read_result", only: Callable[[str], bool] = lambda _: True
) -> AsyncIterator[None]:
    """Keep oversized results whole in the store while the block is open.

    What a post-policy lets through and is longer than the tool's `result_bytes_max` is kept in the
    store's blobs, durable before the result is recorded. The model gets head and tail, within the
    limit, with a locator, and a tool that reads on from there. Where the store can't keep it, head
    and tail are recorded as without the plugin. Results of a program's own calls are left to it.

    Listeners of `tools.post_execute` that were registered after it are asked first: what they
    replace or withhold is never kept.

    Args:
        runtime: for all its agents.
        name: of the tool that reads on.
        only: whether the results of a tool, by its name, are kept.

    Raises:
        InvalidInputError: `only` is no function, or no tool can have that name.
    """
    function("only", only)

    async def keep(done: PostExecution, next: Next[PostPolicy]) -> PostPolicy:
        answer = await next()
        reader = done.request.name == name
        if reader or done.request.parent is not None or not only(done.request.name):
            return answer
        return await _kept(runtime, name, done, answer)

    with runtime.hooks.post_execute.add(keep), runtime.tools.register(_reader(runtime, name)):
        yield


async def _kept(runtime: Runtime, name: str, done: PostExecution, answer: PostPolicy) -> PostPolicy:
    """The answer, with a preview in the place of content that is too long."""
    outcome = done.outcome
    if isinstance(answer, Replace):
        outcome = attrs.evolve(outcome, content=answer.content, value=None)
    elif not isinstance(answer, Accept):
        return answer
    if not _is_oversized(outcome, done.bytes_max):
        return answer
    room = done.bytes_max - len(_notice(name, 10**12, "0" * 64))
    try:
        kept = await runtime.keep_result(outcome, preview_bytes_max=room)
    except TrioloopError as error:
        _log.warning("the result of %s can't be kept whole: %s", done.request.name, error)
        return answer
    notice = TextBlock(_notice(name, kept.bytes, kept.locator))
    return Replace((notice, *kept.preview), answer.contexts)


def _is_oversized(outcome: ToolOutcome, bytes_max: int) -> bool:
    """Whether the text alone is too long; an image that is can't be read on in slices."""
    texts = [block.text for block in outcome.content if isinstance(block, TextBlock)]
    if sum(map(len, texts)) > bytes_max:
        return True
    return sum(len(text.encode("utf-8", "backslashreplace")) for text in texts) > bytes_max


def _notice(name: str, size: int, locator: str) -> str:
    return (
        f"[Head and tail of a result of {size:,} bytes. "
        f'To read on: {name}(locator="{locator}", start=...)]\n'
    )


def _reader(runtime: Runtime, name: str) -> Tool:
    room = max(runtime.limits.result_bytes_max - _FRAME_BYTES, _FRAME_BYTES)

    @tool(name=name, effects="read-only")
    async def read_result(locator: str, start: int = 0) -> str:
        """Read on in a result that was too long to be shown whole.

        Args:
            locator: as the shortened result names it.
            start: the byte to begin at.
        """
        content = await runtime.read_kept(locator)
        first = _boundary(content, max(start, 0))
        last = _boundary(content, first + room)
        return (
            f"[bytes {first} to {last} of {len(content)}]\n"
            + content[first:last].decode()
            + (f"\n[it goes on at start={last}]" if last < len(content) else "")
        )

    return read_result


def _boundary(content: bytes, at: int) -> int:
    """The last place up to `at` where a character begins."""
    at = min(at, len(content))
    while 0 < at < len(content) and 0x80 <= content[at] < 0xC0:
        at -= 1
    return at
