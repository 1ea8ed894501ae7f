"""Results that are too long for a log, kept whole in the store beside it."""

import attrs
import trio

from trioloop.messages import Block
from trioloop.ports import SessionStore, ToolOutcome
from trioloop.tools.excerpt import excerpt
from trioloop.tools.result import whole_text


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
    # Not abandoned when cancelled: bounded by the size of the result.
    content = await trio.to_thread.run_sync(lambda: b"".join(whole_text(outcome)))
    locator = await store.put_blob(content)
    return KeptResult(locator, len(content), excerpt(outcome.content, preview_bytes_max))
