"""Where things in a log came from: the fate of a message, the origin of a request, differences.

For people who ask why. Everything is read from the events alone, as the fold reads them.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, zip_longest

import attrs

from trioloop.errors import InvalidInputError
from trioloop.events import (
    AssistantAttemptLogged,
    AssistantMessageLogged,
    Event,
    InboxSpliced,
    RequestHeaderLogged,
    SystemMessageLogged,
    TurnEnded,
    UserMessageLogged,
)
from trioloop.ids import MessageId
from trioloop.log.fold import LogState
from trioloop.log.meaning import Meaning
from trioloop.log.state import Fate
from trioloop.messages import Message


@attrs.frozen
class MessageStory:
    """What happened to one message (S3).

    Attributes:
        message: its id.
        fate: what became of it in the end.
        events: the seqs of the events that tell of it, in order.
        replaced_by: seq of the event that stands for it in the history by now, such as a summary;
            None: nothing does.
    """

    message: MessageId
    fate: Fate
    events: tuple[int, ...]
    replaced_by: int | None = None

    def __str__(self) -> str:
        seqs = ", ".join(map(str, self.events))
        now = "" if self.replaced_by is None else f"; event {self.replaced_by} stands for it"
        return f"{self.message} is {self.fate} (events {seqs}){now}"


@attrs.frozen
class RequestOrigin:
    """Which events one request was made of (G2).

    Attributes:
        seq: of the attempt that it was made for.
        turn: the attempt's turn.
        step: its step.
        header: seq of the header with its settings and tools.
        heads: for each node of its system prompt, the seq that wrote it, in section order.
        history: each message of its history with the seq of the event that wrote it.
        replaced: for the seq of each event that stands for others, such as a summary, what it
            stands for: messages with their seqs, some of which may stand for others in turn.
    """

    seq: int
    turn: int
    step: int
    header: int
    heads: tuple[tuple[int, str], ...]
    history: tuple[tuple[int, Message], ...]
    replaced: Mapping[int, tuple[tuple[int, Message], ...]] = attrs.field(factory=dict)


def explain(events: Iterable[Event], message: str) -> MessageStory:
    """What became of a message.

    Args:
        events: the log, from its first event.
        message: the message's id.

    Raises:
        InvalidInputError: the log knows no such message.
        GrammarError: the events are no log.
    """
    for story in stories(events):
        if story.message == message:
            return story
    raise InvalidInputError(f"the log knows no message {message!r}: give the id of one it has")


def stories(events: Iterable[Event]) -> tuple[MessageStory, ...]:
    """What became of each message, in the order in which the log first tells of them.

    Args:
        events: the log, from its first event.

    Raises:
        GrammarError: the events are no log.
    """
    state, seqs = LogState(), dict[MessageId, list[int]]()
    replacements: dict[int, int] = {}
    for event in events:
        for id in dict.fromkeys(_told(state, event)):
            seqs.setdefault(id, []).append(event.seq)
        replacements.update((seq, event.seq) for seq, _ in _taken(state, event))
        state.apply(event)
    return tuple(
        MessageStory(id, state.fates[id], tuple(told), _last(replacements, state.fates[id].seq))
        for id, told in seqs.items()
    )


def _taken(state: LogState, event: Event) -> tuple[tuple[int, Message], ...]:
    """The nodes that an event takes the place of; the state is the one before it."""
    replaces: tuple[int, int] | int | None = getattr(event.data, "replaces", None)
    if replaces is None:
        return ()
    first, last = (replaces, replaces) if isinstance(replaces, int) else replaces
    start, stop = state.surface.position(first), state.surface.position(last)
    if start is None or stop is None:
        return ()  # it may not stand there, as the fold is about to say
    return tuple(islice(state.surface.nodes, start, stop + 1))


def _last(replacements: Mapping[int, int], seq: int) -> int | None:
    """The event that stands for another in the end; None: nothing does."""
    last = None
    while (found := replacements.get(seq)) is not None:
        last = seq = found
    return last


def _told(state: LogState, event: Event) -> Iterator[MessageId]:
    """The messages that an event tells of; the state is the one before it."""
    data = event.data
    if isinstance(data, InboxSpliced):
        removed = state.inbox.of(data.list)[data.start : data.start + data.removed]
        yield from (pending.message.id for pending in (*removed, *data.inserted))
    elif isinstance(data, UserMessageLogged):
        if data.message.id:
            yield data.message.id
    elif isinstance(data, TurnEnded):
        yield from (one.message for one in data.unadmitted)


def explain_request(events: Iterable[Event], seq: int) -> RequestOrigin:
    """Which events made the request of one attempt.

    Args:
        events: the log, from its first event; read no further than `seq`.
        seq: that of the attempt's `assistant/message` or `assistant/attempt`.

    Raises:
        InvalidInputError: the event is no attempt, or the log doesn't reach it.
        GrammarError: the events are no log up to there.
    """
    state, header = LogState(), -1
    heads: dict[str, int] = {}
    replaced: dict[int, tuple[tuple[int, Message], ...]] = {}
    for event in events:
        if event.seq == seq:
            return _origin(state, event, header, heads, replaced)
        if taken := _taken(state, event):
            replaced[event.seq] = taken
        state.apply(event)
        if isinstance(event.data, RequestHeaderLogged):
            header = event.seq
        elif isinstance(event.data, SystemMessageLogged) and event.data.placement == "head":
            heads[event.data.node] = event.seq
    raise InvalidInputError(f"the log ends with event {state.seq}: it has no event {seq}")


def _origin(
    state: LogState,
    event: Event,
    header: int,
    heads: Mapping[str, int],
    replaced: Mapping[int, tuple[tuple[int, Message], ...]],
) -> RequestOrigin:
    is_attempt = isinstance(event.data, AssistantMessageLogged | AssistantAttemptLogged)
    if not is_attempt or state.turn is None or state.turn.step is None:
        raise InvalidInputError(
            f"event {event.seq} is a {event.type}: give the seq of an assistant/message "
            "or assistant/attempt"
        )
    return RequestOrigin(
        seq=event.seq,
        turn=state.turn.number,
        step=state.turn.step.number,
        header=header,
        heads=tuple((heads[head.node], head.node) for head in state.surface.heads),
        history=tuple(state.surface.nodes),
        replaced=replaced,
    )


def first_difference(
    one: Iterable[Event], other: Iterable[Event], *, times: bool = True, ids: bool = True
) -> int | None:
    """The seq of the first event that two logs don't share; None: they are equal.

    All is compared at first, since equal seeds give equal logs (G10).

    Args:
        one: a log, from its first event.
        other: another one.
        times: whether times count, and how the pieces of streams came.
        ids: whether identifiers count; if not, those that two logs use in the same way are equal.
    """
    pairs: Iterable[tuple[object, object]] = zip_longest(one, other)
    if not (times and ids):
        mine, theirs = Meaning(times=times, ids=ids), Meaning(times=times, ids=ids)
        pairs = zip_longest(map(mine.of, one), map(theirs.of, other))
    for seq, (first, second) in enumerate(pairs):
        if first != second:
            return seq
    return None
