"""What a sender gives, made into the message that the log will hold."""

from trioloop.errors import DuplicateMessageError, InvalidInputError, QueueFullError
from trioloop.ids import Ids
from trioloop.limits import Limits
from trioloop.log.fold import LogState
from trioloop.messages import Content, ImageBlock, UserMessage, user_message


def composed(
    given: Content | UserMessage, state: LogState, limits: Limits, ids: Ids
) -> UserMessage:
    """A message with an id, checked against the log and the limits.

    Raises:
        DuplicateMessageError: its id is known already.
        InvalidInputError: it is empty or too large.
        QueueFullError: as many messages are pending as may be.
    """
    message = given if isinstance(given, UserMessage) else user_message(given)
    if message.id and message.id in state.fates:
        raise DuplicateMessageError(message.id, str(state.fates[message.id]))
    if len(state.inbox) >= limits.queue_messages_max:
        raise QueueFullError(
            f"{len(state.inbox)} messages are pending, as many as queue_messages_max allows: "
            "send again when some are done"
        )
    size = sum(_size(block) for block in message.content)
    if size > limits.message_bytes_max:
        raise InvalidInputError(
            f"a message of {size} bytes is over message_bytes_max ({limits.message_bytes_max}): "
            "put it into a file and name that"
        )
    if message.id:
        return message
    return UserMessage(message.content, ids.message(), message.source)


def _size(block: object) -> int:
    text = block.data if isinstance(block, ImageBlock) else getattr(block, "text", "")
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
