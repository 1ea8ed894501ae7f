"""The places where policy joins the loop, with what each listener is told and may answer.

Payloads and answers are facts; what the loop does with an answer is in `agent/` and `tools/`.
"""

import math
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import attrs

from trioloop.errors import InvalidInputError
from trioloop.events import CallConfig, Failure, ToolDeclaration
from trioloop.handles import AgentHandle
from trioloop.hooks.checks import is_place, is_text, is_word
from trioloop.hooks.dispatch import Serial, Waterfall
from trioloop.ids import CallId
from trioloop.log.rebuild import Request
from trioloop.messages import Block, UserMessage, as_blocks
from trioloop.ports import (
    ChunkStream,
    Effects,
    RetryPolicy,
    ToolOutcome,
)

# agent.pre_step


@attrs.frozen
class PreStep:
    """A step is proposed; its numbers are a proposal until it is admitted (R7).

    Attributes:
        agent: whose step.
        turn: the open turn's number.
        step: the number that the step will have.
        messages: what was claimed and not yet admitted, in order.
        tools: the tools that the step declares.
    """

    agent: AgentHandle
    turn: int
    step: int
    messages: tuple[UserMessage, ...]
    tools: tuple[ToolDeclaration, ...]


def _as_messages(messages: Iterable[UserMessage]) -> tuple[UserMessage, ...]:
    return tuple(messages)


@attrs.frozen
class Enter:
    """Go on with these messages.

    Attributes:
        messages: the same id is the claimed message, perhaps edited; a new or empty id is added;
            a claimed message whose id is missing is left unadmitted (R5).
        starts_request_series: the cached prefix is given up: system and header are sent anew.
    """

    messages: tuple[UserMessage, ...] = attrs.field(converter=_as_messages)
    starts_request_series: bool = False


@attrs.frozen
class Reject:
    """Open no step: the turn ends as blocked (P3).

    Attributes:
        reason: why, in words; the turn's end has it as its message.
        code: the same as a stable word.

    Raises:
        InvalidInputError: one of them is no text.
    """

    reason: str = attrs.field(validator=is_text)
    code: str = attrs.field(default="REJECTED", validator=is_word)


Decision: TypeAlias = Enter | Reject


# agent.request and agent.request_error


@attrs.frozen
class RequestProposal:
    """A request is about to be made.

    Attributes:
        agent: whose request.
        turn: the turn's number.
        step: the step's number.
        attempt: the attempt's number in its step, from 1.
    """

    agent: AgentHandle
    turn: int
    step: int
    attempt: int


@attrs.frozen
class AttemptFailed:
    """An attempt failed and is in the log (E3).

    Attributes:
        agent: whose attempt.
        turn: the turn's number.
        step: the step's number.
        failure: why it failed.
        earlier: failures of this chain before it that no success has cleared, oldest first (R1).
        retry_policy: how the model's provider wants failures retried.
    """

    agent: AgentHandle
    turn: int
    step: int
    failure: Failure
    earlier: tuple[Failure, ...]
    retry_policy: RetryPolicy


def _delay(_: object, field: "attrs.Attribute[float]", value: float) -> None:
    if not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise InvalidInputError(f"{field.name} must be 0 or more seconds, not {value!r}")


@attrs.frozen
class Retry:
    """Try again.

    Attributes:
        delay: seconds from now.
        fresh_turn: repeat the whole turn, for a listener that repaired what every entry passes
            (R2).
    """

    delay: float = attrs.field(default=0.0, validator=_delay)
    fresh_turn: bool = False


# agent.turn_stopping


@attrs.frozen
class TurnStopping:
    """Nothing is owed, so the turn is about to end; a listener that steers goes on with it.

    Attributes:
        agent: whose turn.
        turn: its number.
    """

    agent: AgentHandle
    turn: int


# agent.compact


@attrs.frozen
class Compact:
    """Somebody asks for a shorter history: `agent.compact()`. No turn is open, and none opens.

    Attributes:
        agent: whose.
        focus: what must not get lost, in words; "" is nothing in particular.
    """

    agent: AgentHandle
    focus: str


# system_prompt.assemble


@attrs.frozen
class SectionText:
    """A section of the system prompt.

    Attributes:
        name: its name, which is that of its node in the log.
        text: as it reads now.
        order: its place; sections of equal order stand in order of their names.

    Raises:
        InvalidInputError: one of them is none.
    """

    name: str = attrs.field(validator=is_word)
    text: str = attrs.field(validator=is_text)
    order: int = attrs.field(default=0, validator=is_place)


@attrs.frozen
class Assembly:
    """The system prompt is put together; the answer is the sections that the model shall see.

    Attributes:
        agent: whose prompt.
        sections: as they read now.
    """

    agent: AgentHandle
    sections: tuple[SectionText, ...]


# model.stream


@attrs.frozen
class StreamRequest:
    """A request is about to be sent; what the answered stream gives is recorded.

    Attributes:
        agent: whose request.
        turn: the turn's number.
        step: the step's number.
        request: what is sent; it is frozen.
    """

    agent: AgentHandle
    turn: int
    step: int
    request: Request


# tools.*


@attrs.frozen
class CallRequest:
    """One call, as its policies see it.

    Attributes:
        agent: whose call.
        call: its id.
        name: the tool's name.
        arguments: decoded arguments by name, as JSON values; a copy, so changing it does nothing.
        effects: what running the tool does.
        parent: the call whose program asked for it, if one did.
    """

    agent: AgentHandle
    call: CallId
    name: str
    arguments: dict[str, object]
    effects: Effects
    parent: CallId | None = None


@attrs.frozen
class Allow:
    """Let the call go on.

    Attributes:
        arguments: others in their place; the change is logged. None: as they are.
    """

    arguments: dict[str, object] | None = None


@attrs.frozen
class Deny:
    """Don't run the call.

    Attributes:
        reason: why; the model is told.
    """

    reason: str = "this call was not allowed"


@attrs.frozen
class Ask:
    """Ask a person. Where nobody can be asked, the call is denied.

    Attributes:
        question: what is asked.
        arguments: others in the place of the call's, if the answer is yes.
    """

    question: str
    arguments: dict[str, object] | None = None


PrePolicy: TypeAlias = Allow | Deny | Ask


@attrs.frozen
class PostExecution:
    """A call has come to an outcome that isn't recorded yet, nor cut to its size.

    Attributes:
        request: the call.
        outcome: what it came to.
        bytes_max: the size beyond which only head and tail of its content are recorded.
    """

    request: CallRequest
    outcome: ToolOutcome
    bytes_max: int


@attrs.frozen
class Accept:
    """Record the outcome.

    Attributes:
        contexts: messages that join the next step (T7).
    """

    contexts: Sequence[UserMessage] = ()


@attrs.frozen
class Replace:
    """Record other content in the outcome's place.

    Attributes:
        content: what the model is told.
        contexts: messages that join the next step (T7).
    """

    content: tuple[Block, ...] = attrs.field(converter=as_blocks)
    contexts: Sequence[UserMessage] = ()


@attrs.frozen
class Withhold:
    """Withhold the outcome.

    Attributes:
        feedback: what the model is told instead, as an error.
        contexts: messages that join the next step (T7).
    """

    feedback: str
    contexts: Sequence[UserMessage] = ()


PostPolicy: TypeAlias = Accept | Replace | Withhold


class Hooks:
    """The hooks of one scope: a runtime's, which wrap those of each agent in it, or an agent's."""

    __slots__ = (
        "assemble",
        "compact",
        "execute",
        "post_execute",
        "pre_execute",
        "pre_step",
        "request",
        "request_error",
        "stream",
        "turn_stopping",
    )

    def __init__(self) -> None:
        self.pre_step = Waterfall[PreStep, Decision]("agent.pre_step")
        self.request = Waterfall[RequestProposal, CallConfig]("agent.request")
        self.request_error = Waterfall[AttemptFailed, Retry | None]("agent.request_error")
        self.turn_stopping = Serial[TurnStopping]("agent.turn_stopping")
        self.compact = Waterfall[Compact, bool]("agent.compact")
        self.assemble = Waterfall[Assembly, tuple[SectionText, ...]]("system_prompt.assemble")
        self.stream = Waterfall[StreamRequest, ChunkStream]("model.stream")
        self.pre_execute = Waterfall[CallRequest, PrePolicy]("tools.pre_execute")
        self.execute = Waterfall[CallRequest, ToolOutcome]("tools.execute")
        self.post_execute = Waterfall[PostExecution, PostPolicy]("tools.post_execute")
