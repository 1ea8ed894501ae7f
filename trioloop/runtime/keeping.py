"""Results that are too long for a log, kept whole in the store beside it."""

import attrs
import trio

from trioloop.messages import Block, TextBlock
from trioloop.ports import SessionStore, ToolOutcome
from trioloop.tools.excerpt import excerpt
from trioloop.tools.result import whole_text

_QUICK_CHARACTERS = 32 * 1024  # whose text is made sooner than a thread begins


@attrs.frozen
class KeptResult:
    """A result's text that the store keeps.

    Attributes:
        locator: what finds it again.
        bytes: its size as UTF-8.
        preview: head and tail of the result's content.
    """

    locator: str
    bytes: int
    preview: tuple[Block, ...]


async def keep_result(
    store: SessionStore, outcome: ToolOutcome, *, preview_bytes_max: int
) -> KeptResult:
    """Keep the whole text of an outcome; see `Runtime.keep_result`."""
    content = await _text_of(outcome)
    locator = await store.put_blob(content)
    return KeptResult(locator, len(content), excerpt(outcome.content, preview_bytes_max))


async def _text_of(outcome: ToolOutcome) -> bytes:
    """The whole text, made in a thread where that takes its time."""

    def text() -> bytes:
        return b"".join(whole_text(outcome))

    blocks = (block for block in outcome.content if isinstance(block, TextBlock))
    if sum(len(block.text) for block in blocks) <= _QUICK_CHARACTERS:
        return text()
    # Not abandoned when cancelled: bounded by the size of the result.
    return await trio.to_thread.run_sync(text)
