"""Reading a request's history: what is asked now, and what was already called for it."""

from collections.abc import Iterator, Sequence

import attrs

from trioloop.messages import AssistantMessage, Message, ToolResultMessage, UserMessage, text_of


@attrs.frozen
class Called:
    """A call that was made for the question, with what it gave."""

    tool: str
    arguments: str
    result: str
    is_error: bool


@attrs.frozen
class Conversation:
    """What the model has to answer.

    Attributes:
        questions: the texts that nothing has answered yet, oldest first.
        called: the calls made for them, in order.
        is_first: nothing was answered in this conversation before.
        last_tool: the last tool called for an earlier question, "" if there is none.
    """

    questions: tuple[str, ...]
    called: tuple[Called, ...]
    is_first: bool
    last_tool: str


def read_conversation(history: Sequence[Message]) -> Conversation:
    """Read a history from its end back to the last answer, however long it is."""
    start = _open_part(history)
    part = [history[index] for index in range(start, len(history))]
    return Conversation(
        tuple(text_of(message.content) for message in part if isinstance(message, UserMessage)),
        tuple(_called(part)),
        is_first=not any(isinstance(history[index], AssistantMessage) for index in range(start)),
        last_tool=_last_tool(history, start),
    )


def _open_part(history: Sequence[Message]) -> int:
    """Where the part begins that isn't answered: after an answer, or after calls that failed.

    A message that follows failed calls starts afresh: most likely somebody cancelled them.
    """
    for index in range(len(history) - 1, -1, -1):
        message = history[index]
        if isinstance(message, AssistantMessage) and not message.calls:
            return index + 1
        follows = index + 1 < len(history) and isinstance(history[index + 1], UserMessage)
        if follows and isinstance(message, ToolResultMessage) and message.is_error:
            return index + 1
    return 0


def _called(part: Sequence[Message]) -> Iterator[Called]:
    results = {m.call: m for m in part if isinstance(m, ToolResultMessage)}
    for message in part:
        for call in message.calls if isinstance(message, AssistantMessage) else ():
            result = results.get(call.call)
            if result is not None:
                text = text_of(result.content)
                yield Called(call.name, call.arguments, text, result.is_error)


def _last_tool(history: Sequence[Message], start: int) -> str:
    for index in range(start - 1, -1, -1):
        message = history[index]
        if isinstance(message, AssistantMessage) and message.calls:
            return message.calls[-1].name
    return ""
