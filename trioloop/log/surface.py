"""Events to model-visible nodes and messages (E1, E3).

Head nodes are the system prompt, in section order. History nodes follow in order: each was
appended by an event, or stands for a range of earlier nodes, and is named by the seq of the event
that wrote it. The list of messages only grows; what takes nodes away makes a new list, so every
view that was handed out stays as it was.
"""

from collections.abc import Iterator, Sequence, Set

from trioloop.events import AssistantMessageLogged, SystemMessageLogged
from trioloop.log.history import History, ReadMessage, Source, Unread
from trioloop.messages import (
    AssistantMessage,
    Block,
    Message,
    RefusalBlock,
    SystemMessage,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
)

REMOVED = "The instructions of this section no longer apply."
"""What the model is told of a section that the history took back.

Part of format 1: with other words old logs would tell other requests than were sent (G2).
"""


_NO_MESSAGES = Source([], [])
_NO_HEADS: dict[str, tuple[int, SystemMessageLogged]] = {}
_NO_TAILS: dict[int, SystemMessageLogged] = {}


class Surface:
    """What the model sees of a log; only the fold of that log changes it.

    Attributes:
        heads: the system prompt, in (order, node) order.
        generation: how many replacements the history has seen; system nodes don't count.
    """

    __slots__ = ("_heads", "_source", "_tails", "_wire_ids", "generation", "heads")

    def __init__(self) -> None:
        self.heads: tuple[SystemMessage, ...] = ()
        self.generation = 0
        self._heads = _NO_HEADS  # with seqs; replaced, never changed: empty surfaces share one
        self._tails = _NO_TAILS  # by seq; replaced, never changed
        self._source = _NO_MESSAGES  # never appended to: the first append makes a new one
        self._wire_ids: set[str] | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Surface):
            return NotImplemented
        return (
            self.generation == other.generation
            and self._heads == other._heads
            and self._tails == other._tails
            and self._source.seqs == other._source.seqs
            and self.wire_ids == other.wire_ids
            and self.history == other.history
        )

    __hash__ = None  # type: ignore[assignment]  # it changes

    # What there is

    @property
    def history(self) -> History:
        """A view of the messages behind the system prompt as they are now. O(1)."""
        return History(self._source, len(self._source.messages))

    @property
    def nodes(self) -> Iterator[tuple[int, Message]]:
        """Each history node in order: the seq of the event that wrote it, and its message."""
        return zip(self._source.seqs, self._source.whole(), strict=True)

    def nodes_behind(self, seq: int) -> list[tuple[int, Message]]:
        """The nodes at the end of the history that events behind `seq` wrote. O(their number)."""
        source = self._source
        first = len(source.seqs)
        while first and source.seqs[first - 1] > seq:
            first -= 1
        return [(source.seqs[place], source.at(place)) for place in range(first, len(source.seqs))]

    @property
    def wire_ids(self) -> Set[str]:
        """The ids that providers know of the calls in the history."""
        return self._wire_ids or frozenset()

    @property
    def has_tails(self) -> bool:
        """Whether the history holds system messages, which a series drops (E1)."""
        return bool(self._tails)

    def head(self, node: str) -> SystemMessageLogged | None:
        """The head node of that name, as it was logged last; None: the head has none."""
        _, head = self._heads.get(node, (-1, None))
        return None if head is None or head.text is None else head

    def sections(self) -> dict[str, str]:
        """The text of each section as the model saw it last, updates in the history included."""
        texts = {head.node: head.text for head in self.heads}
        for seq, tail in self._tails.items():
            head_seq, _ = self._heads.get(tail.node, (-1, None))
            if head_seq > seq:
                continue
            if tail.text is None:
                texts.pop(tail.node, None)
            else:
                texts[tail.node] = tail.text
        return texts

    def stale_head(self) -> str | None:
        """A node whose text in the head isn't what the model saw last; None: there is none.

        A series can't start while there is one (E1): it drops the update that said otherwise.
        """
        seen = self.sections() if self._tails else {}
        for head in self.heads if self._tails else ():
            if seen.get(head.node) != head.text:
                return head.node
        return None

    def position(self, seq: int) -> int | None:
        """Where in the history the node stands that the event `seq` wrote; None: nowhere. O(n)."""
        try:
            return self._source.seqs.index(seq)
        except ValueError:
            return None

    def result_at(self, seq: int) -> ToolResultMessage | None:
        """The result that the event `seq` wrote, where the history holds it."""
        place = self.position(seq)
        message = None if place is None else self._source.at(place)
        return message if isinstance(message, ToolResultMessage) else None

    def fault_in_range(self, first: int, last: int) -> str | None:
        """What forbids replacing the nodes from event `first` to event `last`; None: nothing.

        A range is one of positions: behind earlier replacements its seqs needn't ascend. It never
        takes a call without its results, or a result without its call.
        """
        start, stop = self.position(first), self.position(last)
        if start is None or stop is None:
            return f"no node of event {first if start is None else last} in the history"
        if start > stop:
            return f"the node of event {first} behind that of event {last}"
        messages = [self._source.at(place) for place in range(start, stop + 1)]
        calls = {call.call for call in _calls(messages)}
        for message in messages:
            if isinstance(message, ToolResultMessage) and message.call not in calls:
                return f"the result of {message.call!r} without its call"
        for place in range(stop + 1, len(self._source.messages)):
            message = self._source.at(place)
            if not isinstance(message, ToolResultMessage):
                break
            if message.call in calls:
                return f"the call {message.call!r} without its result"
        return None

    # What changes it

    def append(self, seq: int, message: Message) -> None:
        """Add a message at the end. O(1)."""
        source = self._source
        if source is _NO_MESSAGES:
            source = self._source = Source([], [])
        source.seqs.append(seq)
        source.messages.append(message)

    def append_answer(
        self, seq: int, data: AssistantMessageLogged, calls: Sequence[ToolCallBlock]
    ) -> None:
        """Add an answer with its calls, unless the model is not to see it again (E3)."""
        if not (calls or _is_shown(data)):
            return
        self.append(seq, data.message)
        if calls:
            if self._wire_ids is None:
                self._wire_ids = set()
            self._wire_ids.update([call.wire_id for call in calls])

    def set_system(self, seq: int, data: SystemMessageLogged) -> None:
        """Change a head node, or append an update of a section at the tail (E1)."""
        if data.placement == "tail":
            text = REMOVED if data.text is None else data.text
            self.append(seq, SystemMessage(data.node, text))
            self._tails = {**self._tails, seq: data}
            return
        self._heads = {**self._heads, data.node: (seq, data)}
        heads = (head for _, head in self._heads.values())
        self.heads = tuple(
            SystemMessage(head.node, head.text)
            for head in sorted(heads, key=lambda head: (head.order, head.node))
            if head.text is not None
        )

    def start_series(self) -> None:
        """Drop the updates of sections from the history: the head says it all anew (E1)."""
        if self._tails:
            kept = [node for node in self._stored_nodes if node[0] not in self._tails]
            self._renew(kept)
            self._tails = _NO_TAILS

    def replace(self, seq: int, first: int, last: int, message: Message) -> None:
        """Let a message stand for the nodes from event `first` to event `last`. O(n)."""
        start, stop = self.position(first), self.position(last)
        assert start is not None, first
        assert stop is not None, last
        gone = [
            (self._source.seqs[place], self._source.at(place)) for place in range(start, stop + 1)
        ]
        nodes = list(self._stored_nodes)
        nodes[start : stop + 1] = [(seq, message)]
        self._renew(nodes)
        self._forget(gone)
        self.generation += 1

    def rewrite(self, seq: int, replaced: int, content: tuple[Block, ...]) -> None:
        """Give the result that the event `replaced` wrote other content. O(n)."""
        result = self.result_at(replaced)
        assert result is not None, replaced
        message = ToolResultMessage(result.call, result.wire_id, content, result.is_error)
        self.replace(seq, replaced, replaced, message)

    def leave_unread(self, read: ReadMessage) -> None:
        """Let go of the messages that were added last; `read` reads them when they're asked for."""
        if self._source is not _NO_MESSAGES:
            self._source.leave_unread(read)

    @property
    def _stored_nodes(self) -> Iterator[tuple[int, Message | Unread]]:
        return zip(self._source.seqs, self._source.messages, strict=True)

    def _renew(self, nodes: Sequence[tuple[int, Message | Unread]]) -> None:
        seqs, messages = [seq for seq, _ in nodes], [message for _, message in nodes]
        self._source = Source(messages, seqs, self._source.read)

    def _forget(self, nodes: Sequence[tuple[int, Message]]) -> None:
        seqs = {seq for seq, _ in nodes}
        if not seqs.isdisjoint(self._tails):
            self._tails = {seq: tail for seq, tail in self._tails.items() if seq not in seqs}
        if self._wire_ids:
            gone = (call.wire_id for call in _calls([message for _, message in nodes]))
            self._wire_ids.difference_update(gone)


def _calls(messages: Sequence[Message]) -> Iterator[ToolCallBlock]:
    for message in messages:
        if isinstance(message, AssistantMessage):
            yield from message.calls


def _is_shown(data: AssistantMessageLogged) -> bool:
    """Whether an answer has something that the model may be shown again.

    Blank text alone is as good as nothing; an interrupted answer needs words, since providers
    refuse one that only reasoned.
    """
    for block in data.message.content:
        if isinstance(block, (TextBlock, RefusalBlock)):
            if block.text.strip():
                return True
        elif not data.interrupted:
            return True
    return False
