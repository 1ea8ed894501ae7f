"""Having a part of a history summarised by the agent's own model.

It is first asked as the conversation goes on, so that the provider's cache of that serves once
more. A model that answers with calls instead is asked again, once, about a transcript and without
tools.
"""

from collections.abc import Iterator, Sequence

from trioloop import (
    AgentHandle,
    Assembled,
    ModelFailure,
    TextBlock,
    TrioloopError,
    messages,
    user_message,
)
from trioloop.plugins.compaction.choosing import SOURCE

INSTRUCTIONS = """\
Summarise this conversation up to here. Your summary takes its place: whoever goes on knows \
nothing else of it. Say what the user wants, in their own words where those matter; what was \
decided and why; what was done and found, with the names, paths, numbers and identifiers that \
count; what failed; and what is still to be done. Write the summary alone, and call no tools."""

_HEADING = "[A summary of the conversation up to here]\n\n"
_LEAVES_OUT = ("content_filter", "refusal")


class SummaryError(TrioloopError):
    """There is no summary, or nothing that it could stand for any more: nothing was replaced."""

    code = "NO_SUMMARY"


async def summary_of(
    agent: AgentHandle, part: Sequence[tuple[int, messages.Message]], instructions: str
) -> str:
    """What the agent's model says a part of its history comes to. A checkpoint.

    Args:
        agent: whose history.
        part: messages of it, each with the seq of its event.
        instructions: what the model is asked to do.

    Raises:
        SummaryError: it says nothing of use.
        ModelFailure: it fails.
    """
    text = await _asked_in_place(agent, part, instructions)
    if text is None:
        answer = await agent.aside(_transcript(part, instructions))
        text = _summary_in(answer)
    if text is None:
        raise SummaryError("the model was asked twice for a summary and wrote none")
    return text


async def _asked_in_place(
    agent: AgentHandle, part: Sequence[tuple[int, messages.Message]], instructions: str
) -> str | None:
    """The summary, asked for as the conversation goes on; None: the model said something else."""
    question = user_message(instructions, source=SOURCE)
    try:
        answer = await agent.aside(question, history=(part[0][0], part[-1][0]), tools=True)
    except ModelFailure as failure:
        if failure.code != "MALFORMED_RESPONSE":  # as a provider says of a call that it can't read
            raise
        return None
    return _summary_in(answer)


def summary_message(text: str) -> messages.UserMessage:
    """The message that stands in the history for what was summarised."""
    return user_message(_HEADING + text, source=SOURCE)


def _summary_in(answer: Assembled) -> str | None:
    """The words of an answer that is a summary; None: it is none."""
    said = [block.text for block in answer.message.content if isinstance(block, TextBlock)]
    text = "".join(said).strip()
    left_out = answer.finish is None or answer.finish.reason in _LEAVES_OUT
    return None if not text or left_out or answer.message.calls else text


def _transcript(
    part: Sequence[tuple[int, messages.Message]], instructions: str
) -> messages.UserMessage:
    """A question that holds the part itself, for a model that knows of no tools."""
    lines = [line for _, message in part for line in _said(message)]
    return user_message("\n\n".join([*lines, "---", instructions]), source=SOURCE)


def _said(message: messages.Message) -> Iterator[str]:
    if isinstance(message, messages.SystemMessage):
        yield f"Instructions: {message.text}"
        return
    text = messages.text_of(message.content)
    if isinstance(message, messages.AssistantMessage):
        if text:
            yield f"Assistant: {text}"
        yield from (f"Call of {call.name}: {call.arguments}" for call in message.calls)
    elif isinstance(message, messages.ToolResultMessage):
        yield f"{'Failed' if message.is_error else 'Result'}: {text}"
    else:
        yield f"User: {text}"
