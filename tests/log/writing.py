"""Logs written by hand: short names for the facts of a log, and a writer that places them."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import attrs
from msgspec import Raw

from trioloop.chunks import EMPTY_STREAM, Finish, FinishReason, Usage
from trioloop.events import (
    AssistantAttemptLogged,
    AssistantMessageLogged,
    CallConfig,
    Event,
    EventData,
    Failure,
    InboxSpliced,
    PendingMessage,
    RequestContextLogged,
    RequestHeaderLogged,
    SessionOpened,
    StepEnded,
    StepStarted,
    SystemMessageLogged,
    ToolCallStarted,
    ToolDeclaration,
    ToolResultLogged,
    TurnEnded,
    TurnStarted,
    UserMessageLogged,
    event,
)
from trioloop.ids import CallId, call_id
from trioloop.log.fold import LogState
from trioloop.log.rebuild import Request, request_of
from trioloop.machine.inbox import claim_step, claim_turn
from trioloop.messages import (
    AssistantMessage,
    Block,
    MessageList,
    TextBlock,
    ToolCallBlock,
    UserMessage,
    user_message,
)

CONFIG = CallConfig(provider="scripted", model="m")
OTHER_CONFIG = CallConfig(provider="scripted", model="n")
TOOLS = (ToolDeclaration("look", "Look.", Raw(b"{}")),)
OPENED = SessionOpened(format=1, session="paris", created=1_000)
USAGE = Usage(10, None, 5, None)


@event("tests/note")
class Note(EventData):
    """A fact of a plugin, which the grammar has no rule for."""

    text: str = ""


FactT = TypeVar("FactT", bound=EventData)


def changed(fact: FactT, **fields: object) -> FactT:
    """A fact with some of its fields changed."""
    evolve: Callable[..., FactT] = attrs.evolve  # a checker can't see that facts are attrs classes
    return evolve(fact, **fields)


def pending(id: str, *, wakeup: bool = True) -> PendingMessage:
    """A message as an inbox holds it."""
    return PendingMessage(user_message(f"text of {id}", id=id), wakeup=wakeup)


def sent(target: MessageList, id: str, *, start: int = 0, wakeup: bool = True) -> InboxSpliced:
    """The splice that sends a message."""
    return InboxSpliced(target, start, inserted=(pending(id, wakeup=wakeup),))


def user(id: str, *, replaces: tuple[int, int] | None = None) -> UserMessageLogged:
    """A message that joins the history."""
    return UserMessageLogged(user_message(f"text of {id}", id=id), replaces)


def header(why: str = "initial", config: CallConfig = CONFIG) -> RequestHeaderLogged:
    """Settings and tools."""
    return RequestHeaderLogged(config, TOOLS, why)  # type: ignore[arg-type]


CONTEXT = RequestContextLogged("scripted", "m", 1_000)


def call_block(turn: int, step: int, index: int) -> ToolCallBlock:
    """A call as a model asks for it."""
    own = call_id(turn, step, index)
    return ToolCallBlock(own, f"wire_{turn}_{step}_{index}", "look", f'{{"at":{index}}}')


def answer(
    content: Sequence[Block] = (TextBlock("Hello."),),
    reason: FinishReason = "stop",
    *,
    interrupted: bool = False,
) -> AssistantMessageLogged:
    """A model's answer."""
    return AssistantMessageLogged(
        AssistantMessage(tuple(content), "scripted", "m"),
        None if interrupted else Finish(reason),
        USAGE,
        EMPTY_STREAM,
        interrupted,
    )


def answer_calls(turn: int, step: int, count: int) -> AssistantMessageLogged:
    """An answer that asks for calls."""
    return answer([call_block(turn, step, index) for index in range(count)], "tool_calls")


FAILED = AssistantAttemptLogged(
    EMPTY_STREAM, failure=Failure(code="SERVER", message="broken", retryable=True)
)
CANCELLED = AssistantAttemptLogged(EMPTY_STREAM, cancelled=True)
UNSENT = AssistantAttemptLogged(EMPTY_STREAM, cancelled=True, sent=False)


def started(call: ToolCallBlock, *, dispatched: bool = True) -> ToolCallStarted:
    """The start of a call."""
    return ToolCallStarted(call.call, call.name, call.arguments, dispatched)


def result(call: str, call_seq: int | None, text: str = "done") -> ToolResultLogged:
    """The result of a call."""
    return ToolResultLogged(
        CallId(call), (TextBlock(text),), is_error=call_seq is None, call_seq=call_seq
    )


def ended(turn: int, reason: str = "completed") -> TurnEnded:
    """The end of a turn."""
    return TurnEnded(
        turn,
        reason,  # type: ignore[arg-type]
        code="SERVER" if reason in ("error", "blocked") else None,
        cause="user" if reason == "aborted" else None,
    )


class LogWriter:
    """Places facts in a log, one event at a time, each a millisecond after the one before.

    Attributes:
        events: the log.
        state: what it adds up to.
        requests: by the seq of its attempt, what was asked, as the live loop derives it.
    """

    def __init__(self, *facts: EventData) -> None:
        self.events: list[Event] = []
        self.state = LogState()
        self.requests: dict[int, Request] = {}
        self.add(*(facts or (OPENED,)))

    @property
    def seq(self) -> int:
        """The seq of the last event."""
        return self.state.seq

    def add(self, *facts: EventData) -> int:
        """Append facts, and give the seq of the last one."""
        for fact in facts:
            is_attempt = isinstance(fact, AssistantMessageLogged | AssistantAttemptLogged)
            if is_attempt and self.state.header is not None:
                self.requests[self.seq + 1] = request_of(self.state)
            event = Event(self.seq + 1, 1_000 + self.seq, fact)
            self.state.apply(event)
            self.events.append(event)
        return self.seq

    def open_turn(self, *ids: str) -> int:
        """Send messages to next-turn, and open a turn with all that is due; its number."""
        for id in ids:
            self.add(sent("next-turn", id, start=len(self.state.inbox.next_turn)))
        number = self.state.turns + 1
        self.add(TurnStarted(number), *claim_turn(self.state.inbox))
        return number

    def claim(self) -> None:
        """Claim what waits in next-step."""
        splice = claim_step(self.state.inbox)
        assert splice is not None
        self.add(splice)

    def admit(self, *facts: EventData) -> int:
        """Admit the next step, with every claimed message and a header where it is due."""
        turn = self.state.turn
        assert turn is not None
        number = turn.steps + 1
        messages = [UserMessageLogged(claim.pending.message) for claim in turn.fresh]
        first = (header(), CONTEXT) if self.state.header is None else ()
        self.add(StepStarted(turn.number, number))
        system = [fact for fact in facts if isinstance(fact, SystemMessageLogged)]
        others = [fact for fact in facts if not isinstance(fact, SystemMessageLogged)]
        self.add(*system, *messages, *first, *others)
        return number

    def end_step(self) -> None:
        """Close the open step."""
        turn = self.state.turn
        assert turn is not None
        self.add(StepEnded(turn.number, turn.steps))

    def turn_of_text(self, id: str, text: str = "Hello.") -> int:
        """A whole turn: a prompt and a plain answer; the seq of its answer."""
        number = self.open_turn(id)
        self.admit()
        seq = self.add(answer([TextBlock(text)]))
        self.end_step()
        self.add(ended(number))
        return seq

    def step_of_calls(self, count: int) -> list[int]:
        """A whole step of calls, each started and answered; the seqs of its results."""
        self.admit()
        assert self.state.turn is not None
        turn, step = self.state.turn.number, self.state.turn.steps
        self.add(answer_calls(turn, step, count))
        blocks = [call_block(turn, step, index) for index in range(count)]
        seqs = [self.add(started(block)) for block in blocks]
        results = [
            self.add(result(block.call, seq)) for block, seq in zip(blocks, seqs, strict=True)
        ]
        self.end_step()
        return results


def claimed_message(writer: LogWriter, index: int = 0) -> UserMessage:
    """One of the messages that the open turn has claimed."""
    assert writer.state.turn is not None
    return writer.state.turn.fresh[index].pending.message
