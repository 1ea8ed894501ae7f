"""The durable facts that the runtime writes: one frozen class each. Their wire names are fixed."""

from typing import Literal, TypeAlias

from trioloop.chunks import Finish, TimedStream, Usage
from trioloop.events.declaring import EventData, event
from trioloop.events.parts import CallConfig, Failure, PendingMessage, ToolDeclaration, Unadmitted
from trioloop.ids import CallId
from trioloop.messages import AssistantMessage, Block, Json, MessageList, UserMessage

FORMAT = 1

TurnReason: TypeAlias = Literal[
    "completed", "max-tokens", "blocked", "aborted", "error", "interrupted"
]
SpliceOutcome: TypeAlias = Literal["canceled", "replaced", "forked"]

# The session and its inbox


@event("session/opened")
class SessionOpened(EventData):
    """The first event of each log (seq 0), a fork's own included (D6).

    Attributes:
        format: the version of the log's format.
        session: the session's name.
        created: Unix milliseconds.
        parent: the session that it was forked from, or that delegated work to it.
        fork_seq: the last event that it has from there; None: it was no fork.
        depth: how many forks and delegations lead to it.
        cwd: the working directory that its tools began in.
    """

    format: int
    session: str
    created: int
    parent: str | None = None
    fork_seq: int | None = None
    depth: int = 0
    cwd: str | None = None


@event("agent/inbox/spliced")
class InboxSpliced(EventData):
    """One change of one list of the inbox (I2), as list slices understand it.

    Attributes:
        list: which list.
        start: the index where it changes.
        removed: how many messages go from there on.
        inserted: what takes their place.
        outcome: what became of those that went; None: the open turn claimed them.
    """

    list: MessageList
    start: int
    removed: int = 0
    inserted: tuple[PendingMessage, ...] = ()
    outcome: SpliceOutcome | None = None


@event("agent/delegated")
class AgentDelegated(EventData):
    """A call works through an agent of its own, its child, until the call ends (R9).

    Attributes:
        call: the call.
        child: the name of the child's session, whose parent this one is.
    """

    call: CallId
    child: str


# Turns and steps


@event("turn/start")
class TurnStarted(EventData):
    """A turn opens.

    Attributes:
        turn: its number in the session, from 1.
        retry_of: the turn that it repeats (R2).
    """

    turn: int
    retry_of: int | None = None


@event("turn/end")
class TurnEnded(EventData):
    """A turn closes.

    Attributes:
        turn: its number.
        reason: why, in one word.
        code: the stable code of a block or an error.
        message: the same in words.
        cause: who or what aborted it, such as `user`, `disposed`, `host-cancelled`.
        by: the hook listener that blocked or failed it.
        unadmitted: what it claimed and didn't admit (R5).
        also: what else was raised while it closed (R8), in words.
    """

    turn: int
    reason: TurnReason
    code: str | None = None
    message: str | None = None
    cause: str | None = None
    by: str | None = None
    unadmitted: tuple[Unadmitted, ...] = ()
    also: tuple[str, ...] = ()


@event("step/start")
class StepStarted(EventData):
    """A step is committed: its admission begins (section 4).

    Attributes:
        turn: the turn's number.
        step: its own number in the turn, from 1.
    """

    turn: int
    step: int


@event("step/end")
class StepEnded(EventData):
    """A step is over: its request is answered, and each call of the answer has its result.

    Attributes:
        turn: the turn's number.
        step: its own number.
    """

    turn: int
    step: int


# What the model sees


@event("system/message")
class SystemMessageLogged(EventData):
    """A node of the system prompt is added, changed, or (text None) removed (E1).

    Attributes:
        node: the section's name.
        order: its place among the head nodes; nodes of equal order stand in order of their names.
        placement: `head` replaces the head node; `tail` appends to the history.
        text: its text.
    """

    node: str
    order: int
    placement: Literal["head", "tail"]
    text: str | None


@event("user/message")
class UserMessageLogged(EventData):
    """A message joins the history.

    Attributes:
        message: what the model is told.
        replaces: seqs of the first and the last event whose nodes it stands for; None appends.
    """

    message: UserMessage
    replaces: tuple[int, int] | None = None


@event("request/header")
class RequestHeaderLogged(EventData):
    """The settings and tools of the requests from here on (E2).

    Attributes:
        config: the settings.
        tools: what the model is told of each tool.
        why: the log's first, the first behind a resume, a change of either, or a new series (E1).
    """

    config: CallConfig
    tools: tuple[ToolDeclaration, ...]
    why: Literal["initial", "resume", "change", "series"]


@event("request/context")
class RequestContextLogged(EventData):
    """The model that serves the requests from here on.

    Attributes:
        provider: the service's name.
        model: the model's name there.
        context_window: tokens of prompt and answer; None: unknown.
    """

    provider: str
    model: str
    context_window: int | None = None


@event("assistant/message")
class AssistantMessageLogged(EventData):
    """A successful attempt, or the visible part of a cancelled one.

    Attributes:
        message: the answer.
        finish: why the model stopped; None: it was cancelled before it did (P9).
        usage: tokens, as the provider counted them; None: it didn't say.
        stream: the chunks as they came, times included (E4).
        interrupted: it was cancelled, so that only its visible text is here, without calls.
    """

    message: AssistantMessage
    finish: Finish | None
    usage: Usage | None
    stream: TimedStream
    interrupted: bool = False


@event("assistant/attempt")
class AssistantAttemptLogged(EventData):
    """Any other attempt (E3): failed, cancelled before anything was visible, or never sent.

    Attributes:
        stream: the chunks that came, times included (E4).
        failure: why it failed; None: it was cancelled.
        cancelled: it was cancelled.
        sent: the request may have reached the provider.
        usage: tokens, where the provider told.
    """

    stream: TimedStream
    failure: Failure | None = None
    cancelled: bool = False
    sent: bool = True
    usage: Usage | None = None


# Calls


@event("tool/call")
class ToolCallStarted(EventData):
    """A call starts (T5).

    Attributes:
        call: its id, as in the answer that asks for it.
        name: the tool's name as the model wrote it.
        arguments: raw text as the model wrote it, perhaps not JSON.
        dispatched: no pre-policy follows, so that its body may run at once.
    """

    call: CallId
    name: str
    arguments: str
    dispatched: bool


@event("tool/dispatch")
class ToolDispatched(EventData):
    """A call's pre-policy is through, and its body may run.

    Attributes:
        call_seq: seq of its `tool/call` or `tool/ptc-call`.
        arguments: their JSON text, where the policy changed them.
        by: the listeners that did.
    """

    call_seq: int
    arguments: str | None = None
    by: str | None = None


@event("tool/result")
class ToolResultLogged(EventData):
    """The one result of a call.

    Attributes:
        call: the call's id.
        content: what the model is told.
        is_error: whether it is told as an error.
        code: how the call ended, where it wasn't by a plain result.
        meta: what people are shown of it, never sent to a model.
        call_seq: seq of its `tool/call`; None: the call never started.
        concludes_turn: the tool asked for the turn to end here (P15).
        replaces: seq of the earlier result whose content it rewrites; None: this is the result.
    """

    call: CallId
    content: tuple[Block, ...]
    is_error: bool = False
    code: str | None = None
    meta: dict[str, Json] | None = None
    call_seq: int | None = None
    concludes_turn: bool = False
    replaces: int | None = None


@event("tool/ptc-call")
class NestedCallStarted(EventData):
    """A call that another call makes, such as one of a program, starts (T5).

    Attributes:
        call: its id.
        parent: the call of the answer that it belongs to.
        name: the tool's name.
        arguments: their JSON text.
        dispatched: no pre-policy follows, so that its body may run at once.
    """

    call: CallId
    parent: CallId
    name: str
    arguments: str
    dispatched: bool


@event("tool/ptc-result")
class NestedResultLogged(EventData):
    """The one result of a nested call, which its program sees and the model doesn't.

    Attributes:
        call: the call's id.
        parent: the call of the answer that it belongs to.
        content: what it gave.
        is_error: whether it failed.
        code: how it ended, where it wasn't by a plain result.
    """

    call: CallId
    parent: CallId
    content: tuple[Block, ...]
    is_error: bool = False
    code: str | None = None


# Asides


@event("aside/start", ignorable=True)
class AsideStarted(EventData):
    """A model is about to be asked something that doesn't join the conversation.

    With the log up to here it tells the request: the settings and the system prompt of the last
    header, a part of the history, the question.

    Attributes:
        question: what is asked, behind that part.
        history: seqs of the first and the last event whose nodes the model is shown; None: none.
        tools: whether it is told of the tools. None of them is run.
    """

    question: UserMessage
    history: tuple[int, int] | None
    tools: bool


@event("aside/end", ignorable=True)
class AsideEnded(EventData):
    """What came of an aside: an answer, a failure, or neither where it was cancelled.

    Attributes:
        start: seq of its `aside/start`.
        message: the answer, calls included; None: there is none.
        finish: why the model stopped.
        usage: tokens, as the provider counted them; None: it didn't say.
        failure: why there is no answer; None: it was cancelled.
    """

    start: int
    message: AssistantMessage | None = None
    finish: Finish | None = None
    usage: Usage | None = None
    failure: Failure | None = None
