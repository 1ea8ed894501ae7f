"""What a sender gives, made into the message that the log will hold."""

from collections.abc import Iterable

from trioloop.errors import DuplicateMessageError, InvalidInputError, QueueFullError
from trioloop.ids import Ids
from trioloop.limits import Limits
from trioloop.log.fold import LogState
from trioloop.messages import (
    Block,
    Content,
    ImageBlock,
    TextBlock,
    UserMessage,
    user_message,
)


def composed(
    given: Content | UserMessage, state: LogState, limits: Limits, ids: Ids
) -> UserMessage:
    """A message with an id, checked against the log and the limits.

    Raises:
        DuplicateMessageError: its id is known already.
        InvalidInputError: it is empty or too large.
        QueueFullError: as many messages are pending as may be.
    """
    message = checked(given, limits)
    if message.id in state.fates:
        raise DuplicateMessageError(message.id, str(state.fates[message.id]))
    if len(state.inbox) >= limits.queue_messages_max:
        raise QueueFullError(
            f"{len(state.inbox)} messages are pending, as many as queue_messages_max allows: "
            "send again when some are done"
        )
    if message.id:
        return message
    return with_new_id(message, state, ids)


def with_new_id(message: UserMessage, state: LogState, ids: Ids) -> UserMessage:
    """The message under an id that the log doesn't know: a seeded source may begin anew."""
    id = ids.message()
    while id in state.fates:
        id = ids.message()
    return UserMessage(message.content, id, message.source)


def checked(given: Content | UserMessage, limits: Limits) -> UserMessage:
    """A message of blocks and texts; what is wrong inside them is found as it is appended.

    Raises:
        InvalidInputError: it is empty or too large, or holds something else.
    """
    message = given if isinstance(given, UserMessage) else UserMessage(_sequence(given))
    content = _sequence(message.content)
    for text in (message.id, message.source, *map(_text, content)):
        if not isinstance(text, str):
            raise InvalidInputError(f"{message!r} holds {text!r}: give text there")
    _check_size(content, limits)
    return user_message(content, id=message.id, source=message.source)


def _sequence(content: Content) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (TextBlock(content),)
    if isinstance(content, Block) or not isinstance(content, Iterable):
        return (content,)
    return tuple(content)


def _text(block: object) -> object:
    return block.data if isinstance(block, ImageBlock) else getattr(block, "text", "")


def _check_size(content: tuple[Block, ...], limits: Limits) -> None:
    size = sum(_size(block) for block in content)
    if size > limits.message_bytes_max:
        raise InvalidInputError(
            f"a message of {size} bytes is over message_bytes_max ({limits.message_bytes_max}): "
            "put it into a file and name that"
        )


def _size(block: Block) -> int:
    text = str(_text(block))
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
