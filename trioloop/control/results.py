"""What methods answer and notifications tell: one frozen class each."""

from typing import Literal

from msgspec import Raw, Struct

from trioloop.control.tokens import Scope
from trioloop.events import PendingMessage
from trioloop.ids import CallId, MessageId, SessionId
from trioloop.messages import Json
from trioloop.plugins.approval import Remember
from trioloop.ports import Mode


class Result(Struct, frozen=True, kw_only=True):
    """The base of what methods answer."""


class Done(Result, frozen=True):
    """It is done.

    Attributes:
        changed: whether it changed anything.
    """

    changed: bool = True


class Granted(Result, frozen=True):
    """What a token allows.

    Attributes:
        scopes: all of them.
    """

    scopes: tuple[Scope, ...]


class Info(Result, frozen=True):
    """What answers here.

    Attributes:
        version: of trioloop.
        protocol: the version of this protocol.
        scopes: what the connection's token allows.
        limits: the endpoint's limits, by name.
    """

    version: str
    protocol: int
    scopes: tuple[Scope, ...]
    limits: dict[str, float]


class OpenTurn(Result, frozen=True):
    """The open turn.

    Attributes:
        number: its number.
        cause: why it was cancelled; null: it wasn't.
    """

    number: int
    cause: str | None = None


class RunningBody(Result, frozen=True):
    """A tool body of the open step.

    Attributes:
        call: the call's id.
        mode: whether it may overlap with others.
        started: Unix milliseconds.
        ended: the same; null: it runs. The call's result may wait for those before it.
    """

    call: CallId
    mode: Mode
    started: int
    ended: int | None = None


class AgentState(Result, frozen=True):
    """An agent, as it is now.

    Attributes:
        agent: its name.
        status: whether it works; `stored`: nobody has made it live.
        turn: the open turn; null: none is open.
        seq: of its last event.
        durable_seq: of its last durable event.
        opened: Unix milliseconds at which its session was opened; a part of each cursor.
        pending: how many messages wait.
        bodies: the tool bodies of the open step.
    """

    agent: SessionId
    status: Literal["idle", "running", "stored"]
    turn: OpenTurn | None = None
    seq: int = -1
    durable_seq: int = -1
    opened: int = 0
    pending: int = 0
    bodies: tuple[RunningBody, ...] = ()


class AgentList(Result, frozen=True):
    """Agents by name.

    Attributes:
        agents: live and stored ones.
        more: whether there are more behind them.
    """

    agents: tuple[AgentState, ...]
    more: bool = False


class Sent(Result, frozen=True):
    """What became of a message; it is durable.

    Attributes:
        message: its id.
        status: `pending`, or what came next.
        turn: the turn that took it, or the open one that it waits behind; null: none is open.
        seq: of the event that decided it.
    """

    message: MessageId
    status: str
    turn: int | None
    seq: int


class Inbox(Result, frozen=True):
    """The pending messages of an agent.

    Attributes:
        next_turn: those that open a turn of their own.
        next_step: those that join at the next step boundary.
    """

    next_turn: tuple[PendingMessage, ...]
    next_step: tuple[PendingMessage, ...]


class Restored(Result, frozen=True):
    """How much came back.

    Attributes:
        messages: how many.
    """

    messages: int


class LargeEvent(Result, frozen=True):
    """An event that is too large for one frame; `session/part` gives its text.

    Attributes:
        seq: its seq.
        type: its type.
        characters: of its JSON text.
    """

    seq: int
    type: str
    characters: int


class Events(Result, frozen=True):
    """A page of events.

    Attributes:
        events: in order, each as the log has it, or as `LargeEvent`.
        more: whether there are more behind them.
    """

    events: tuple[Raw, ...]
    more: bool


class Part(Result, frozen=True):
    """A part of an event's JSON text.

    Attributes:
        text: the part.
        characters: of the whole.
    """

    text: str
    characters: int


class Subscribed(Result, frozen=True):
    """A subscription begins.

    Attributes:
        subscription: its number on this connection.
        agent: the agent as it is now.
    """

    subscription: int
    agent: AgentState


class Story(Result, frozen=True):
    """What happened to a message.

    Attributes:
        message: its id.
        status: the last that happened to it.
        turn: the turn that claimed or admitted it.
        why: how it was discarded, or why it wasn't admitted.
        events: the seqs of the events that tell of it.
    """

    message: MessageId
    status: str
    turn: int | None
    why: str | None
    events: tuple[int, ...]


class Approval(Result, frozen=True):
    """A question that waits for an answer.

    Attributes:
        approval: its id.
        agent: whose call is asked about.
        call: the call's id.
        tool: the tool's name.
        arguments: the call's arguments.
        question: what is asked.
        until: Unix milliseconds at which it counts as a no; null: it waits for ever.
        about: what an answer is about that is remembered; "": it can't be.
    """

    approval: str
    agent: SessionId
    call: CallId
    tool: str
    arguments: dict[str, Json]
    question: str
    until: int | None
    about: str


class Approvals(Result, frozen=True):
    """The questions that wait.

    Attributes:
        approvals: the oldest first.
    """

    approvals: tuple[Approval, ...]


class Answered(Result, frozen=True):
    """What a question came to.

    Attributes:
        approval: its id.
        allow: whether the call may run.
        remember: how long that holds for further calls that are about the same; null: for this
            call alone.
    """

    approval: str
    allow: bool
    remember: Remember | None


# Notifications


class SessionEvent(Result, frozen=True, omit_defaults=True):
    """A durable event.

    Attributes:
        subscription: whose.
        event: as the log has it; null: it is large.
        large: in its place, an event that is too large for a frame.
    """

    subscription: int
    event: Raw
    large: LargeEvent | None = None


class SessionEnd(Result, frozen=True):
    """A subscription is over: the agent was disposed of.

    Attributes:
        subscription: which.
    """

    subscription: int


class AgentNotification(Result, frozen=True):
    """A live fact.

    Attributes:
        subscription: whose.
        kind: as the catalogue of notifications names it, or `body-start`.
        fact: its fields.
    """

    subscription: int
    kind: str
    fact: Raw


class RuntimeState(Result, frozen=True):
    """What has changed of the live agents and the open questions, as it is now.

    Attributes:
        whole: these are all live agents; else the others are as they were.
        agents: live agents, by name.
        gone: names of agents that aren't live any more.
        approvals: the questions that wait, all of them; null: they are as they were.
    """

    whole: bool
    agents: tuple[AgentState, ...]
    gone: tuple[SessionId, ...]
    approvals: tuple[Approval, ...] | None
