"""`trioloop explain`: what became of a message, and which events made a request."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from trioloop.cli.exits import OK, ExitCode
from trioloop.cli.listing import print_rows
from trioloop.cli.readable import read_to_attempt, readable
from trioloop.cli.wording import call_line, local_time, one_line, result_line
from trioloop.errors import InvalidInputError
from trioloop.events import (
    Event,
    InboxSpliced,
    RequestHeaderLogged,
    StepStarted,
    SystemMessageLogged,
    TurnEnded,
    TurnStarted,
    UserMessageLogged,
)
from trioloop.ids import MessageId
from trioloop.log.explain import MessageStory, RequestOrigin, explain_request, stories
from trioloop.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)

_DISCARDED = {
    "canceled": "discarded: canceled",
    "replaced": "replaced by another message",
    "forked": "left behind by a fork",
}


def explain_messages(file: Path, name: str, out: Console) -> ExitCode:
    """List every message of a session with its fate."""
    read = readable(file, name)
    told = stories(read.events)
    if told:
        print_rows(
            out,
            ("message", "fate", "events", "text"),
            (
                (story.message, str(story.fate), _seqs(story), _text(read.events, story))
                for story in told
            ),
        )
    elif read.fault is None:
        out.print(Text("no messages", style="dim"))
    read.complain()
    return OK


def explain_message(file: Path, name: str, message: str, out: Console) -> ExitCode:
    """Tell the way of one message."""
    read = readable(file, name)
    found = [story for story in stories(read.events) if story.message == message]
    if not found:
        read.complain()
        raise InvalidInputError(
            f"session {name!r} knows no message {message!r}: see trioloop explain {file} {name}"
        )
    story = found[0]
    fate = Text.assemble((one_line(story.message), "bold"), " is ", one_line(str(story.fate)))
    out.print(fate, soft_wrap=True)
    out.print(Text(one_line(_text(read.events, story)), style="dim"), soft_wrap=True)
    print_rows(out, ("event", "time", "type", "what happened"), _deeds(read.events, story))
    if story.replaced_by is not None:
        out.print(Text(f"event {story.replaced_by} stands for it in the history by now"))
    read.complain()
    return OK


def explain_origin(file: Path, name: str, seq: int, out: Console) -> ExitCode:
    """List the events that made one request."""
    events = read_to_attempt(file, name, seq)
    origin = explain_request(events, seq)
    told = f"the request of event {seq}: turn {origin.turn}, step {origin.step}"
    out.print(Text(told, style="bold"), soft_wrap=True)
    print_rows(out, ("event", "part", "says"), _parts(events, origin))
    return OK


def _seqs(story: MessageStory) -> str:
    return ", ".join(map(str, story.events))


def _text(events: Sequence[Event], story: MessageStory) -> str:
    """What a message says, as it was last written."""
    said = [one for seq in story.events for one in _written(events[seq])]
    return next((result_line(one.content) for one in reversed(said) if one.id == story.message), "")


def _written(event: Event) -> Iterator[UserMessage]:
    data = event.data
    if isinstance(data, InboxSpliced):
        yield from (pending.message for pending in data.inserted)
    elif isinstance(data, UserMessageLogged):
        yield data.message


# The way of a message


def _deeds(events: Sequence[Event], story: MessageStory) -> Iterator[tuple[str, ...]]:
    turn = step = 0
    told = set(story.events)
    for event in events[: story.events[-1] + 1]:
        if isinstance(event.data, TurnStarted):
            turn = event.data.turn
        elif isinstance(event.data, StepStarted):
            step = event.data.step
        if event.seq in told:
            deed = _deed(event, story.message, turn, step)
            yield str(event.seq), local_time(event.time), event.type, deed


def _deed(event: Event, message: MessageId, turn: int, step: int) -> str:
    data = event.data
    if isinstance(data, InboxSpliced):
        return _spliced(data, message, turn)
    if isinstance(data, TurnEnded):
        whys = (one.why for one in data.unadmitted if one.message == message)
        return f"left unadmitted by turn {turn}: {', '.join(whys)}"
    if isinstance(data, UserMessageLogged) and data.replaces is not None:
        first, last = data.replaces
        return f"stands in the history for events {first} to {last}"
    return f"admitted by step {step} of turn {turn}"


def _spliced(data: InboxSpliced, message: MessageId, turn: int) -> str:
    for pending in data.inserted:
        if pending.message.id == message:
            waking = "" if pending.wakeup else ", without waking"
            if data.outcome == "replaced":
                return f"put in the place of one in {data.list}{waking}"
            sent = "put back into" if pending.restored else "sent to"
            return f"{sent} {data.list}{waking}"
    return f"claimed by turn {turn}" if data.outcome is None else _DISCARDED[data.outcome]


# The parts of a request


def _parts(events: Sequence[Event], origin: RequestOrigin) -> Iterator[tuple[str, ...]]:
    header = events[origin.header].data
    if isinstance(header, RequestHeaderLogged):
        tools = ", ".join(tool.name for tool in header.tools) or "none"
        model = f"{header.config.provider} {header.config.model}"
        yield str(origin.header), "settings", f"{model}, tools: {tools}"
    for seq, node in origin.heads:
        head = events[seq].data
        text = head.text if isinstance(head, SystemMessageLogged) else None
        yield str(seq), f"system {node}", text or ""
    for seq, message in origin.history:
        yield from _shown(origin, seq, message, "")


def _shown(
    origin: RequestOrigin, seq: int, message: Message, before: str
) -> Iterator[tuple[str, ...]]:
    """A message of the history, and below it what it stands for."""
    part, text = _said(message)
    yield str(seq), f"{before}{part}", text
    for old, said in origin.replaced.get(seq, ()):
        yield from _shown(origin, old, said, f"{before}for ")


def _said(message: Message) -> tuple[str, str]:
    """Who speaks in the history, and what."""
    match message:
        case SystemMessage():
            return f"system {message.node}", message.text
        case UserMessage():
            return "user", result_line(message.content)
        case AssistantMessage():
            calls = [call_line(call.name, call.arguments) for call in message.calls]
            return "assistant", " · ".join(part for part in (message.text, *calls) if part)
        case ToolResultMessage():
            part = "tool error" if message.is_error else "tool result"
            return part, result_line(message.content)
