"""What the events of a log add up to: the classes that the fold fills.

Only the fold changes them. Everybody else reads them, and reads what is open from here, never from
notes of their own (R8).
"""

from collections.abc import Set
from typing import Literal, TypeAlias

import attrs
from msgspec import Struct

from trioloop.chunks import Usage
from trioloop.events import (
    AssistantMessageLogged,
    Failure,
    PendingMessage,
    RequestContextLogged,
    RequestHeaderLogged,
    SessionOpened,
    ToolResultLogged,
    TurnEnded,
)
from trioloop.ids import CallId, MessageId
from trioloop.log.inbox import EMPTY_INBOX, Inbox
from trioloop.log.phases import Phase
from trioloop.log.surface import Surface
from trioloop.messages import MessageList, ToolCallBlock

NO_USAGE = Usage()
FateStatus: TypeAlias = Literal["pending", "claimed", "admitted", "discarded", "unadmitted"]


@attrs.frozen
class Fate:
    """What became of a message so far (S3, R5).

    Attributes:
        status: the last that happened to it.
        seq: of the event that decided it.
        list: the list that it was sent to; None: a pre-step or a policy added it.
        turn: the turn that claimed or admitted it.
        why: how it was discarded, or why it wasn't admitted.
        pending: the message itself, as long as it may still be admitted.
    """

    status: FateStatus
    seq: int
    list: MessageList | None = None
    turn: int | None = None
    why: str | None = None
    pending: PendingMessage | None = None

    def __str__(self) -> str:
        turn = f" (turn {self.turn})" if self.turn is not None else ""
        return f"{self.status}{turn}" + (f": {self.why}" if self.why else "")


@attrs.frozen
class Claimed:
    """A message that the open turn has claimed and not admitted.

    Attributes:
        pending: the message.
        list: the list that it was taken from.
    """

    pending: PendingMessage
    list: MessageList


class NestedCall(Struct):
    """A call that a call of the open step has made.

    Attributes:
        name: the tool's name.
        dispatched: its body may have begun.
        answered: whether it has its result.
    """

    name: str
    dispatched: bool
    answered: bool = False


class OpenCall(Struct):
    """A call of the open step.

    Attributes:
        block: what the model asked for.
        index: its place among the calls of the answer.
        call_seq: seq of its `tool/call`; None: it has not started.
        dispatched: its body may have begun.
        changed: its arguments as JSON text, where a policy changed them.
        result: its result, once it is recorded.
        nested: the calls that it has made, by id, in order of their starts; None: it made none.
    """

    block: ToolCallBlock
    index: int
    call_seq: int | None = None
    dispatched: bool = False
    changed: str | None = None
    result: ToolResultLogged | None = None
    nested: dict[CallId, NestedCall] | None = None

    @property
    def unanswered(self) -> tuple[CallId, ...]:
        """The calls that it has made and that have no result, in order of their starts."""
        nested = self.nested or {}
        return tuple(id for id, call in nested.items() if not call.answered)


class OpenStep(Struct):
    """The step that is open.

    Attributes:
        number: its number in the turn.
        owed: it was asked for by something else than input (R7).
        admitted: a request has been admitted, and no attempt answers for it yet (P8).
        entered: how many user messages it admitted.
        series: a head node changed, so that this admission's header must start a series (E1).
        attempts: how many attempts it made that gave no answer.
        answer: the model's answer, once there is one.
        calls: the calls of the answer by id, in model order.
        order: their ids.
        starts: the calls that have started, by the seq of their `tool/call`.
        nested: the calls that those have made, by the seq of their `tool/ptc-call`; None: none.
        last_start: the index of the one that started last; -1: none has.
        answered: how many of them have their result.
        is_cut: the answer stopped at its maximum of tokens, so that no call of it runs (P14).
    """

    number: int
    owed: bool = False
    admitted: bool = True
    entered: int = 0
    series: bool = False
    attempts: int = 0
    answer: AssistantMessageLogged | None = None
    calls: dict[CallId, OpenCall] = {}
    order: tuple[CallId, ...] = ()
    starts: dict[int, OpenCall] = {}
    nested: dict[int, NestedCall] | None = None
    last_start: int = -1
    answered: int = 0
    is_cut: bool = False

    @property
    def next_result(self) -> CallId | None:
        """The call whose result has to come next; None: every call has its result. O(1)."""
        return self.order[self.answered] if self.answered < len(self.order) else None

    @property
    def unanswered(self) -> tuple[ToolCallBlock, ...]:
        """The calls without a result, in model order."""
        return tuple(self.calls[call].block for call in self.order[self.answered :])


@attrs.define
class OpenTurn:
    """The turn that is open.

    Attributes:
        number: its number in the session.
        start_seq: seq of its `turn/start`.
        retry_of: the turn that it repeats (R2).
        retries: how many retry turns its chain has, this one included.
        steps: how many steps it has committed.
        step: the open step.
        claims: what it has claimed since its last admission, by id.
        passed: what it claimed before that and hasn't admitted, by id.
        took_next_turn: it has claimed a message of the next-turn list.
        failures: of its chain since the last success, oldest first (R1).
        reason_so_far: what it ends with if it ends well (P14).
        owed: what asks for a further step without any input (R7): results that the model hasn't
            seen, a pause, or the request of the turn that this one repeats.
        usage: of its attempts.
    """

    number: int
    start_seq: int
    retry_of: int | None = None
    retries: int = 0
    steps: int = 0
    step: OpenStep | None = None
    claims: dict[MessageId, Claimed] = attrs.Factory(dict)
    passed: dict[MessageId, Claimed] = attrs.Factory(dict)
    took_next_turn: bool = False
    failures: tuple[Failure, ...] = ()
    reason_so_far: Literal["completed", "max-tokens"] = "completed"
    owed: Literal["results", "pause", "retry"] | None = None
    usage: Usage = NO_USAGE

    @property
    def claimed(self) -> tuple[Claimed, ...]:
        """What it has claimed and not admitted, in the order of the claims."""
        return (*self.passed.values(), *self.claims.values())

    @property
    def fresh(self) -> tuple[Claimed, ...]:
        """What it has claimed since its last admission: this goes back if it ends now (R5)."""
        return tuple(self.claims.values())

    @property
    def dropped(self) -> tuple[Claimed, ...]:
        """What it claimed before its last admission, which passed it by (R5)."""
        return tuple(self.passed.values())


_NO_FATES: dict[MessageId, Fate] = {}


@attrs.define
class State:
    """The state of a session behind some of its events. Two are equal if all they hold is.

    Attributes:
        phase: where in the grammar the log stands.
        session: how it was opened; None: it has no event yet.
        seq: that of the last event; -1: it has none.
        time: that of the last event, which the next must not precede.
        inbox: the pending messages.
        fates: what became of each message that the log has seen, by id.
        turns: the number of the last turn that started.
        turn: the open turn.
        last_turn: how the last turn ended.
        last_turn_seq: seq of that `turn/end`.
        chain_failures: the failures that it left uncleared, which a retry turn inherits (R2).
        chain_retries: how many retry turns its chain has.
        fork_due: the seq at which a fork, its inherited events behind it, must go on with an empty
            inbox (D6); -1: none.
        header: the settings and tools of the next request.
        context: the model that serves it.
        surface: what the model sees.
        past_usage: of all attempts of turns that have ended.
    """

    phase: Phase = Phase.NEW
    session: SessionOpened | None = None
    seq: int = -1
    time: int = 0
    inbox: Inbox = EMPTY_INBOX
    fates: dict[MessageId, Fate] = _NO_FATES
    turns: int = 0
    turn: OpenTurn | None = None
    last_turn: TurnEnded | None = None
    last_turn_seq: int = -1
    chain_failures: tuple[Failure, ...] = ()
    chain_retries: int = 0
    fork_due: int = -1
    header: RequestHeaderLogged | None = None
    context: RequestContextLogged | None = None
    surface: Surface = attrs.Factory(Surface)
    past_usage: Usage = NO_USAGE

    @property
    def usage(self) -> Usage:
        """Of all attempts."""
        return self.past_usage if self.turn is None else self.past_usage + self.turn.usage

    @property
    def wire_ids(self) -> Set[str]:
        """The ids that providers know of the calls in the history."""
        return self.surface.wire_ids

    @property
    def step(self) -> OpenStep | None:
        """The open step of the open turn."""
        return None if self.turn is None else self.turn.step
