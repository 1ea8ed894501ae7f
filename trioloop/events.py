"""The durable events: one frozen class each, and the table from wire name to class.

An `Event` is a fact with its place in a log; the classes below are the facts. Wire names are
fixed. Applications and policies declare their own with `@event`; what an event does to the state
of a session is in `log/`, not here.
"""

from collections.abc import Callable
from typing import Literal, TypeAlias, TypeVar, dataclass_transform

import attrs
from msgspec import Raw, Struct

from trioloop.chunks import Finish, TimedStream, Usage
from trioloop.errors import InvalidInputError, ModelFailure
from trioloop.ids import CallId, MessageId
from trioloop.messages import AssistantMessage, Block, Json, MessageList, UserMessage
from trioloop.settings import check_settings

FORMAT = 1

TurnReason: TypeAlias = Literal[
    "completed", "max-tokens", "blocked", "aborted", "error", "interrupted"
]
SpliceOutcome: TypeAlias = Literal["canceled", "replaced", "forked"]


class EventData:
    """The base of every durable fact. Subclasses are declared with `@event(name)`."""

    __slots__ = ()


class Event(Struct, frozen=True, gc=False):
    """A fact with its place in a session's log.

    Attributes:
        seq: its place, contiguous from 0.
        time: Unix milliseconds of the runtime's wall clock, never decreasing.
        data: the fact.
    """

    seq: int
    time: int
    data: EventData

    @property
    def type(self) -> str:
        """Its wire name, such as `turn/start`."""
        data = self.data
        return data.name if isinstance(data, UnknownEvent) else wire_name(type(data))

    @property
    def ignorable(self) -> bool:
        """Whether a reader that doesn't know the type may skip it (E5)."""
        return isinstance(self.data, UnknownEvent) or is_ignorable(type(self.data))


@attrs.frozen
class UnknownEvent(EventData):
    """A fact that was written as ignorable, of a type that nobody here declares (E5).

    Attributes:
        name: its wire name.
        raw: its data as it was written; it is encoded to the same bytes.
    """

    name: str
    raw: Raw


_CLASSES: dict[str, type[EventData]] = {}
_NAMES: dict[type[EventData], str] = {}
_IGNORABLE: set[type[EventData]] = set()

T = TypeVar("T", bound=type)


@dataclass_transform(frozen_default=True, field_specifiers=(attrs.field,))
def event(name: str, *, ignorable: bool = False) -> Callable[[T], T]:
    """Declare a class of durable events; it becomes a frozen attrs class.

    Args:
        name: its wire name, such as `plan/mode`.
        ignorable: a log that holds it may be read where nobody declares it (E5).

    Raises:
        InvalidInputError: the name is taken by another class.
    """

    def declare(cls: T) -> T:
        known = _CLASSES.get(name)
        if known is not None and known.__qualname__ != cls.__qualname__:
            raise InvalidInputError(f"the event name {name!r} is taken by {known!r}")
        declared = attrs.frozen(cls)
        _CLASSES[name] = declared
        _NAMES[declared] = name
        if ignorable:
            _IGNORABLE.add(declared)
        return declared

    return declare


def wire_name(cls: type[EventData]) -> str:
    """The wire name of a class.

    Raises:
        InvalidInputError: the class wasn't declared with `@event`.
    """
    try:
        return _NAMES[cls]
    except KeyError:
        raise InvalidInputError(
            f"{cls.__name__} is no event: derive it from EventData and declare it with @event(name)"
        ) from None


def is_ignorable(cls: type[EventData]) -> bool:
    """Whether events of a class are written as ignorable (E5)."""
    return cls in _IGNORABLE


def event_class(name: str) -> type[EventData] | None:
    """The class of a wire name, or None where nobody has declared it."""
    return _CLASSES.get(name)


def event_classes() -> dict[str, type[EventData]]:
    """Every declared wire name with its class."""
    return dict(_CLASSES)


# What events are made of


class PendingMessage(Struct, frozen=True):
    """A message in an inbox.

    Attributes:
        message: what was sent.
        wakeup: it opens a turn on an idle agent.
        after_cancel: it was sent while the open turn had been cancelled (I4).
        restored: it was claimed before and came back.
    """

    message: UserMessage
    wakeup: bool = True
    after_cancel: bool = False
    restored: bool = False


class Unadmitted(Struct, frozen=True):
    """A message that a turn claimed and didn't admit (R5).

    Attributes:
        message: its id.
        list: the list that it was claimed from.
        why: the turn's reason, or `dropped` where a pre-step passed it by.
    """

    message: MessageId
    list: MessageList
    why: str


class ToolDeclaration(Struct, frozen=True):
    """A tool as a model is told of it.

    Attributes:
        name: its name.
        description: what it is for.
        parameters: its JSON Schema.
    """

    name: str
    description: str
    parameters: Raw


class CallConfig(Struct, frozen=True, kw_only=True):
    """The settings of one request. None leaves a setting to the provider.

    Attributes:
        provider: the service's name.
        model: the model's name there.
        max_tokens: output tokens, reasoning included.
        temperature: sampling temperature.
        tool_choice: `auto`, `required`, `none`, or the name of a declared tool.
        parallel_tool_calls: whether several calls may come in one answer.
        reasoning_effort: in the provider's words.
        extra: further members of the request's body, as the provider's API names them.

    Raises:
        InvalidInputError: a value is none that any provider takes.
    """

    provider: str
    model: str
    max_tokens: int | None = None
    temperature: float | None = None
    tool_choice: str | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: str | None = None
    extra: dict[str, Json] = {}

    def __post_init__(self) -> None:
        check_settings(self)


class Failure(Struct, frozen=True, kw_only=True):
    """Why an attempt failed, as it is logged.

    Attributes:
        code: a stable word.
        message: what happened, without credentials, headers or prompt text.
        status: the HTTP status, where there was one.
        retry_after_s: how long the provider asked to wait, in seconds.
        request_id: the provider's id of the request.
        retryable: whether the same request may succeed later.
    """

    code: str
    message: str
    status: int | None = None
    retry_after_s: float | None = None
    request_id: str | None = None
    retryable: bool = False

    @classmethod
    def of(cls, failure: ModelFailure) -> "Failure":
        """The facts of a raised failure."""
        return cls(
            code=failure.code,
            message=failure.message,
            status=failure.status,
            retry_after_s=failure.retry_after_s,
            request_id=failure.request_id,
            retryable=failure.retryable,
        )


# The session and its inbox


@event("session/opened")
class SessionOpened(EventData):
    """The first event of each log (seq 0), a fork's own included (D6).

    Attributes:
        format: the version of the log's format.
        session: the session's name.
        created: Unix milliseconds.
        parent: the session that it was forked from.
        fork_seq: the last event that it has from there.
        depth: how many forks lead to it.
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
