"""How many tokens of a context window the next request of a log takes.

Counted by the provider as far as it has told, guessed beyond.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import attrs

from trioloop.events import AssistantMessageLogged, Event
from trioloop.log.state import State
from trioloop.messages import (
    Block,
    ImageBlock,
    Message,
    OpaqueBlock,
    RefusalBlock,
    SystemMessage,
    ToolCallBlock,
    UserMessage,
)


class TokenEstimator(Protocol):
    """Guesses the tokens of messages that no provider has counted."""

    def estimate(self, messages: Sequence[Message]) -> int:
        """The tokens of some messages."""
        ...


@attrs.frozen
class ByteEstimator:
    """Guesses tokens from the bytes of texts: about right for prose and code of any script.

    Attributes:
        bytes_per_token: bytes of UTF-8 that make a token.
        image_tokens: tokens of an image.
        message_tokens: tokens of the frame around each message.
    """

    bytes_per_token: float = 4
    image_tokens: int = 1_600
    message_tokens: int = 4

    def estimate(self, messages: Sequence[Message]) -> int:
        """The tokens of some messages. O(their bytes)."""
        return sum(self._of_message(message) for message in messages)

    def _of_message(self, message: Message) -> int:
        if isinstance(message, SystemMessage):
            return self._of_bytes(_size(message.text)) + self.message_tokens
        images = sum(isinstance(block, ImageBlock) for block in message.content)
        size = sum(_block_size(block) for block in message.content)
        return self._of_bytes(size) + images * self.image_tokens + self.message_tokens

    def _of_bytes(self, size: int) -> int:
        return -int(-size // self.bytes_per_token)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _block_size(block: Block) -> int:
    """Bytes of what a model reads of a block, as far as they cost by the byte."""
    if isinstance(block, ImageBlock):
        return 0
    if isinstance(block, OpaqueBlock):
        return len(bytes(block.replay.data))
    if isinstance(block, ToolCallBlock):
        return _size(block.name) + _size(block.arguments)
    kept = None if isinstance(block, RefusalBlock) else block.replay
    return _size(block.text) + (0 if kept is None else len(bytes(kept.data)))


class ReadLog(Protocol):
    """A log as it is read here; a session is one."""

    @property
    def state(self) -> State:
        """What its events add up to."""
        ...

    @property
    def seq(self) -> int:
        """The seq of its last event."""
        ...

    def events(self, after: int = -1) -> Sequence[Event]:
        """Its events with a seq greater than `after`."""
        ...


def context_tokens(
    log: ReadLog,
    *,
    joining: Iterable[UserMessage] = (),
    estimator: TokenEstimator = ByteEstimator(),
) -> int:
    """How many tokens the next request takes, its answer left out.

    Up to the last answer the provider's own count holds, as long as nothing before it was replaced
    since; the rest is guessed, which is all of it where the provider never told. O(what is
    guessed), and O(the log) only where nobody ever counted.

    Args:
        log: an agent's session.
        joining: messages that will be at the end of the history by then.
        estimator: guesses what nobody counted.
    """
    state = log.state
    counted = _counted(log)
    if counted is None:
        rest = [*state.surface.heads, *state.surface.history]
        return _declared(state, estimator) + estimator.estimate([*rest, *joining])
    seq, tokens = counted
    newer = [message for _, message in state.surface.nodes_behind(seq)]
    return tokens + estimator.estimate([*newer, *joining])


def _counted(log: ReadLog) -> tuple[int, int] | None:
    """The last answer whose tokens were counted, with all that stood before it; None: none was."""
    for event in _backwards(log):
        data = event.data
        if getattr(data, "replaces", None) is not None:
            return None
        if isinstance(data, AssistantMessageLogged) and data.usage is not None:
            given, made = data.usage.input_tokens, data.usage.output_tokens
            return None if given is None else (event.seq, given + (made or 0))
    return None


def _backwards(log: ReadLog) -> Iterator[Event]:
    """The events from the last one on, a few at a time: a log decodes only what is read of it."""
    end, size = log.seq, 64
    while end >= 0:
        after = max(end - size, -1)
        yield from reversed(log.events(after)[: end - after])
        end, size = after, 2 * size


def _declared(state: State, estimator: TokenEstimator) -> int:
    """The tokens of the declared tools, guessed as if they were text."""
    if state.header is None:
        return 0
    texts = [
        SystemMessage(tool.name, f"{tool.name} {tool.description} {bytes(tool.parameters)!r}")
        for tool in state.header.tools
    ]
    return estimator.estimate(texts)
