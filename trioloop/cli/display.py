"""What a person sees of a turn: events and notifications in, calls on a screen out. Pure.

The log is the truth and the stream only the sooner: where the log holds an answer of which less
was streamed, the rest is shown from the log. Times are seconds of any one clock.
"""

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeAlias

import attrs

from trioloop.agent.notifications import Notification, StreamChunks, StreamStarted, ToolProgress
from trioloop.chunks import Chunk, ReasoningDelta, RefusalDelta, TextDelta, Usage
from trioloop.cli import wording
from trioloop.events import (
    AssistantAttemptLogged,
    AssistantMessageLogged,
    Event,
    Failure,
    StepStarted,
    ToolCallStarted,
    ToolResultLogged,
    TurnEnded,
    TurnStarted,
    UserMessageLogged,
)
from trioloop.ids import CallId
from trioloop.messages import ToolCallBlock, text_of

Seen: TypeAlias = Event | Notification


@attrs.define
class ShownCall:
    """A call as it is shown: `since` it runs, and what it last reported."""

    line: str
    since: float | None = None
    progress: str = ""

    def running(self, now: float) -> str:
        """The call with how long it runs and how far it is."""
        elapsed = wording.seconds(now - self.since) if self.since is not None else ""
        return "  ".join(part for part in (self.line, self.progress, elapsed) if part)


@attrs.frozen
class Summary:
    """A turn in numbers."""

    reason: str
    steps: int
    calls: int
    usage: Usage
    duration_s: float

    def __str__(self) -> str:
        """The numbers on one line."""
        parts = [
            self.reason,
            wording.count(self.steps, "step"),
            wording.count(self.calls, "call") if self.calls else None,
            wording.tokens(self.usage),
            wording.seconds(self.duration_s),
        ]
        return " · ".join(part for part in parts if part)


class Screen(Protocol):
    """Where a display draws. Text comes as it is; a screen makes it harmless."""

    def answer(self, text: str) -> None:
        """More of the model's answer."""
        ...

    def reasoning(self, text: str) -> None:
        """More of what the model thinks aloud."""
        ...

    def end_of_text(self) -> None:
        """The answer, or the thinking, goes on on a new line if at all."""
        ...

    def call_started(self, line: str) -> None:
        """A call runs from now on."""
        ...

    def call_ended(
        self, line: str, result: str, *, is_error: bool, elapsed_s: float | None
    ) -> None:
        """A call has its result; `elapsed_s` is None where it never ran."""
        ...

    def note(self, text: str) -> None:
        """Something worth knowing."""
        ...

    def summary(self, summary: Summary) -> None:
        """The turn is over."""
        ...

    def progress(self, lines: list[str] | None, now: float) -> None:
        """What is under way, to be drawn over the last one; None: nothing is."""
        ...


class TurnDisplay:
    """Turns what is seen of one agent into calls on a screen.

    Args:
        screen: draws.
        now: when it began.
    """

    def __init__(self, screen: Screen, now: float) -> None:
        self._screen = screen
        self._calls: dict[CallId, ShownCall] = {}
        self._running: dict[CallId, ShownCall] = {}
        self._waiting_since: float | None = None
        self._failure: Failure | None = None  # of the last attempt, until it is known what follows
        self._streamed = ""
        self._began = now
        self._steps = 0
        self._call_count = 0
        self._messages = 0
        self._usage = Usage()
        # Events by class and notifications by kind; Any: each takes its own class
        self._show: dict[type | str, Callable[[Any, float], None]] = {
            StreamStarted.kind: self._stream_started,
            StreamChunks.kind: self._chunks,
            ToolProgress.kind: self._tool_progress,
            TurnStarted: self._turn_started,
            StepStarted: self._step_started,
            UserMessageLogged: self._user_message,
            AssistantMessageLogged: self._answered,
            AssistantAttemptLogged: self._attempt_over,
            ToolCallStarted: self._call_started,
            ToolResultLogged: self._call_ended,
            TurnEnded: self._turn_ended,
        }

    def feed(self, seen: Seen, at: float) -> None:
        """Show something that was seen at a time."""
        fact = seen.data if isinstance(seen, Event) else seen
        key = type(fact) if isinstance(seen, Event) else seen.kind
        show = self._show.get(key)
        if show is not None:
            show(fact, at)

    def tick(self, now: float) -> None:
        """Draw how long what is under way has been so."""
        if self._running:
            self._screen.progress([call.running(now) for call in self._running.values()], now)
        elif self._waiting_since is not None:
            waited = wording.seconds(now - self._waiting_since)
            what = "waiting for the model"
            if self._failure is not None:
                what = f"{self._failure.code}, trying again"
            self._screen.progress([f"{what}  {waited}"], now)
        else:
            self._screen.progress(None, now)

    # The turn

    def _turn_started(self, fact: TurnStarted, at: float) -> None:
        self._began = at
        self._steps = self._call_count = self._messages = 0
        self._usage = Usage()

    def _step_started(self, fact: StepStarted, at: float) -> None:
        self._steps = fact.step
        self._waiting_since = at

    def _user_message(self, fact: UserMessageLogged, at: float) -> None:
        if fact.replaces is not None:
            return
        self._messages += 1
        if self._messages > 1:
            self._screen.note(f"↳ steered: {text_of(fact.message.content)}")

    def _turn_ended(self, fact: TurnEnded, at: float) -> None:
        self._waiting_since = self._failure = None
        self._running.clear()
        self._screen.end_of_text()
        self._screen.summary(
            Summary(fact.reason, self._steps, self._call_count, self._usage, at - self._began)
        )

    # The model

    def _stream_started(self, fact: StreamStarted, at: float) -> None:
        self._waiting_since = at
        self._streamed = ""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            self._screen.note(f"{failure.code}: {failure.message}; trying again")

    def _chunks(self, fact: StreamChunks, at: float) -> None:
        self._show_chunks(fact.chunks)

    def _show_chunks(self, chunks: Iterable[Chunk]) -> None:
        for chunk in chunks:
            match chunk:
                case TextDelta(text=text) | RefusalDelta(text=text) if text:
                    self._answer(text)
                case ReasoningDelta(text=text) if text:
                    self._waiting_since = None
                    self._screen.reasoning(text)

    def _answer(self, text: str) -> None:
        self._waiting_since = None
        self._streamed += text
        self._screen.answer(text)

    def _answered(self, fact: AssistantMessageLogged, at: float) -> None:
        text = fact.message.text
        if text.startswith(self._streamed):
            rest = text[len(self._streamed) :]
            if rest:
                self._answer(rest)
        self._over(fact.usage)
        for call in fact.message.calls:
            self._calls[call.call] = ShownCall(_line(call))

    def _attempt_over(self, fact: AssistantAttemptLogged, at: float) -> None:
        self._over(fact.usage)
        if fact.failure is not None:
            self._failure = fact.failure
            self._waiting_since = at

    def _over(self, usage: Usage | None) -> None:
        self._streamed = ""
        self._waiting_since = None
        self._usage += usage or Usage()
        self._screen.end_of_text()

    # Its calls

    def _call_started(self, fact: ToolCallStarted, at: float) -> None:
        call = self._calls.setdefault(
            fact.call, ShownCall(wording.call_line(fact.name, fact.arguments))
        )
        call.since = at
        self._running[fact.call] = call
        self._screen.call_started(call.line)

    def _tool_progress(self, fact: ToolProgress, at: float) -> None:
        call = self._running.get(fact.call)
        if call is not None:
            call.progress = progress_words(fact)

    def _call_ended(self, fact: ToolResultLogged, at: float) -> None:
        if fact.replaces is not None:
            return
        self._running.pop(fact.call, None)
        call = self._calls.pop(fact.call, None) or ShownCall(fact.call)
        self._call_count += 1
        self._screen.call_ended(
            call.line,
            wording.result_line(fact.content),
            is_error=fact.is_error,
            elapsed_s=at - call.since if call.since is not None else None,
        )


def _line(call: ToolCallBlock) -> str:
    return wording.call_line(call.name, call.arguments)


def progress_words(fact: ToolProgress) -> str:
    """How far a call is: its own words, and a share or an amount."""
    if fact.done is None:
        share = ""
    elif fact.total:
        share = f"{fact.done / fact.total:.0%}"
    else:
        share = f"{fact.done:g}"
    return " ".join(part for part in (fact.message or "", share) if part)
