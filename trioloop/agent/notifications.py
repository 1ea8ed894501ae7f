"""Live facts about an agent, one frozen class each (H5).

A notification isn't durable and can't veto. How listeners and watchers get them is in `watching`.
"""

from typing import ClassVar, Literal

import attrs

from trioloop.chunks import Chunk, Usage
from trioloop.events import InboxSpliced, SpliceOutcome, TurnReason
from trioloop.ids import CallId, MessageId, SessionId
from trioloop.messages import MessageList, UserMessage


@attrs.frozen
class Notification:
    """The base of every live fact.

    Attributes:
        kind: the name that `agent.on` knows it by.
        agent: whose it is; facts of several agents meet in `runtime.watch`.
    """

    kind: ClassVar[str] = ""
    agent: SessionId = attrs.field(default=SessionId(""), kw_only=True, eq=False)


@attrs.frozen
class Created(Notification):
    """The agent is registered."""

    kind: ClassVar[str] = "created"
    agent: SessionId = attrs.field()


@attrs.frozen
class Disposed(Notification):
    """The agent's registration has ended."""

    kind: ClassVar[str] = "disposed"
    agent: SessionId = attrs.field()


@attrs.frozen
class StatusChanged(Notification):
    """The agent began to work, or became idle (S2).

    Attributes:
        status: what it is now.
    """

    kind: ClassVar[str] = "status"
    status: Literal["idle", "running"]


@attrs.frozen
class MessageInserted(Notification):
    """A message is pending.

    Attributes:
        message: what was sent, with its id.
        list: the list of the inbox that it waits in.
    """

    kind: ClassVar[str] = "inserted"
    message: UserMessage
    list: MessageList


@attrs.frozen
class MessageClaimed(Notification):
    """A turn took a pending message.

    Attributes:
        message: its id.
        turn: the number of the turn.
    """

    kind: ClassVar[str] = "claimed"
    message: MessageId
    turn: int


@attrs.frozen
class MessageDiscarded(Notification):
    """A pending message was dropped.

    Attributes:
        message: its id.
        outcome: how.
    """

    kind: ClassVar[str] = "discarded"
    message: MessageId
    outcome: SpliceOutcome


@attrs.frozen
class InboxChanged(Notification):
    """One list of the inbox was spliced.

    Attributes:
        splice: the event's data.
    """

    kind: ClassVar[str] = "spliced"
    splice: InboxSpliced


@attrs.frozen
class StreamStarted(Notification):
    """An attempt began.

    Attributes:
        turn: the turn's number.
        step: the step's number in it.
        attempt: the attempt's number in that, from 1.
    """

    kind: ClassVar[str] = "stream-start"
    turn: int
    step: int
    attempt: int


@attrs.frozen
class StreamChunks(Notification):
    """Chunks of the running attempt.

    Attributes:
        chunks: in order; those that a watcher missed come together.
    """

    kind: ClassVar[str] = "stream-chunk"
    chunks: tuple[Chunk, ...]


@attrs.frozen
class StreamEnded(Notification):
    """An attempt is in the log.

    Attributes:
        seq: that of its event.
        outcome: whether it is an answer or a mere attempt.
    """

    kind: ClassVar[str] = "stream-end"
    seq: int
    outcome: Literal["message", "attempt"]


@attrs.frozen
class ToolProgress(Notification):
    """A running call reports progress.

    Attributes:
        call: the call's id.
        message: how far it is, in words.
        done: how much is done, in units of its own.
        total: of how much.
    """

    kind: ClassVar[str] = "tool-progress"
    call: CallId
    message: str | None = None
    done: float | None = None
    total: float | None = None


@attrs.frozen
class ToolBodyEnded(Notification):
    """A call's body has ended. Its result is recorded, and told, once all before it are (T4).

    Attributes:
        kind: `tool-body-end`.
        call: which call.
    """

    kind: ClassVar[str] = "tool-body-end"
    call: CallId


@attrs.frozen
class TurnFailed(Notification):
    """A turn is about to end with an error; sent once for each such turn.

    Attributes:
        turn: the turn's number.
        code: the stable code of the error.
        message: the same in words.
        by: the hook listener that raised it.
        error: the exception itself, where there was one.
    """

    kind: ClassVar[str] = "error"
    turn: int
    code: str
    message: str
    by: str | None
    error: BaseException | None = attrs.field(default=None, eq=False)


@attrs.frozen(kw_only=True)
class Settled(Notification):
    """The last turn of a retry chain is over, and durable unless `store_error` tells otherwise.

    Attributes:
        turn: the last turn of the chain.
        turns: all turns of the chain.
        reason: why it ended.
        code: the stable code of a block or an error.
        message: the same in words.
        cause: who or what aborted it.
        text: the text of the chain's last answer; "" where there is none.
        usage: tokens of all attempts of the chain.
        store_error: what kept it from becoming durable.
    """

    kind: ClassVar[str] = "settled"
    turn: int
    turns: tuple[int, ...]
    reason: TurnReason
    code: str | None = None
    message: str | None = None
    cause: str | None = None
    text: str = ""
    usage: Usage = attrs.field(factory=Usage)
    store_error: str | None = None


@attrs.frozen
class Lagged(Notification):
    """A watcher read too slowly.

    Attributes:
        missed: how many notifications are gone for it.
    """

    kind: ClassVar[str] = "lagged"
    missed: int
