"""From events and notifications to what is drawn, without a terminal and without a runtime."""

from typing import Any

import attrs
import pytest

from trioloop.agent.notifications import StreamChunks, StreamStarted, ToolProgress
from trioloop.chunks import EMPTY_STREAM, Finish, ReasoningDelta, TextDelta, Usage
from trioloop.cli.display import Summary, TurnDisplay
from trioloop.events import (
    AssistantAttemptLogged,
    AssistantMessageLogged,
    Event,
    EventData,
    Failure,
    StepStarted,
    ToolCallStarted,
    ToolResultLogged,
    TurnEnded,
    TurnStarted,
    UserMessageLogged,
)
from trioloop.ids import CallId
from trioloop.messages import AssistantMessage, TextBlock, ToolCallBlock, user_message

CALL = CallId("call_1_1_0")


@attrs.define
class RecordingScreen:
    """Keeps what is drawn."""

    drawn: list[tuple[Any, ...]] = attrs.field(factory=list)

    def answer(self, text: str) -> None:
        self.drawn.append(("answer", text))

    def reasoning(self, text: str) -> None:
        self.drawn.append(("reasoning", text))

    def end_of_text(self) -> None:
        self.drawn.append(("end",))

    def call_started(self, line: str) -> None:
        self.drawn.append(("started", line))

    def call_ended(
        self, line: str, result: str, *, is_error: bool, elapsed_s: float | None
    ) -> None:
        self.drawn.append(("ended", line, result, is_error, elapsed_s))

    def note(self, text: str) -> None:
        self.drawn.append(("note", text))

    def summary(self, summary: Summary) -> None:
        self.drawn.append(("summary", str(summary)))

    def progress(self, lines: list[str] | None, now: float) -> None:
        self.drawn.append(("progress", lines))


class Watched:
    """A display that is fed as time passes."""

    def __init__(self) -> None:
        self.screen = RecordingScreen()
        self.display = TurnDisplay(self.screen, 0)

    def see(self, at: float, *facts: Any) -> list[tuple[Any, ...]]:
        """Feed events and notifications; what they make it draw."""
        self.screen.drawn.clear()
        for fact in facts:
            is_event = isinstance(fact, EventData)
            self.display.feed(Event(0, 0, fact) if is_event else fact, at)
        return self.screen.drawn

    def tick(self, now: float) -> Any:
        """What is under way then."""
        self.screen.drawn.clear()
        self.display.tick(now)
        return self.screen.drawn[-1][1]


@pytest.fixture
def watched() -> Watched:
    return Watched()


def answer(*content: Any, usage: Usage | None = None) -> AssistantMessageLogged:
    message = AssistantMessage(content, "scripted", "scripted")
    return AssistantMessageLogged(message, Finish("stop"), usage, EMPTY_STREAM)


def result(text: str, **facts: Any) -> ToolResultLogged:
    return ToolResultLogged(CALL, (TextBlock(text),), **facts)


CALLED = ToolCallBlock(CALL, "w", "add", '{"a": 1}')
STARTED = ToolCallStarted(CALL, "add", '{"a": 1}', True)


def test_streamed_text_isn_t_repeated_by_the_log(watched: Watched) -> None:
    drawn = watched.see(
        1, StreamStarted(1, 1, 1), StreamChunks((TextDelta("Hel"), TextDelta("lo")))
    )
    assert drawn == [("answer", "Hel"), ("answer", "lo")]
    assert watched.see(2, answer(TextBlock("Hello"))) == [("end",)]


def test_text_that_wasn_t_streamed_is_shown_from_the_log(watched: Watched) -> None:
    watched.see(1, StreamStarted(1, 1, 1), StreamChunks((TextDelta("Hel"),)))
    assert watched.see(2, answer(TextBlock("Hello"))) == [("answer", "lo"), ("end",)]


def test_reasoning_is_kept_apart(watched: Watched) -> None:
    assert watched.see(1, StreamChunks((ReasoningDelta("hm"),))) == [("reasoning", "hm")]


def test_a_call_runs_for_as_long_as_its_result_takes(watched: Watched) -> None:
    assert watched.see(1, answer(CALLED), STARTED) == [("end",), ("started", "add(a=1)")]
    assert watched.tick(1.5) == ["add(a=1)  0.5 s"]
    watched.see(2, ToolProgress(CALL, "halfway", 1, 2))
    assert watched.tick(3) == ["add(a=1)  halfway 50%  2.0 s"]
    assert watched.see(3, result("2", call_seq=5)) == [("ended", "add(a=1)", "2", False, 2)]
    assert watched.tick(4) is None


def test_a_call_that_never_started_has_a_result_without_a_time(watched: Watched) -> None:
    watched.see(1, answer(CALLED))
    drawn = watched.see(2, result("no such tool", is_error=True))
    assert drawn == [("ended", "add(a=1)", "no such tool", True, None)]


def test_a_rewritten_result_isn_t_shown_again(watched: Watched) -> None:
    assert watched.see(1, result("shorter", replaces=7)) == []


def test_waiting_for_the_model_is_told_until_it_says_something(watched: Watched) -> None:
    watched.see(1, StepStarted(1, 1), StreamStarted(1, 1, 1))
    assert watched.tick(3) == ["waiting for the model  2.0 s"]
    watched.see(4, StreamChunks((TextDelta("x"),)))
    assert watched.tick(5) is None


def test_a_failure_is_noted_once_another_attempt_follows(watched: Watched) -> None:
    failure = Failure(code="SERVER", message="busy", retryable=True)
    assert watched.see(1, AssistantAttemptLogged(EMPTY_STREAM, failure)) == [("end",)]
    assert watched.tick(2) == ["SERVER, trying again  1.0 s"]
    assert watched.see(3, StreamStarted(1, 1, 2)) == [("note", "SERVER: busy; trying again")]


def test_a_last_failure_is_left_to_whoever_tells_the_outcome(watched: Watched) -> None:
    failure = Failure(code="AUTH", message="wrong key")
    drawn = watched.see(1, AssistantAttemptLogged(EMPTY_STREAM, failure), TurnEnded(1, "error"))
    assert not [one for one in drawn if one[0] == "note"]


def test_only_messages_after_the_first_are_told_as_steering(watched: Watched) -> None:
    first, second = (UserMessageLogged(user_message(text)) for text in ("one", "two"))
    assert watched.see(1, TurnStarted(1), first) == []
    assert watched.see(2, second) == [("note", "↳ steered: two")]


def test_the_summary_counts_the_turn_and_not_the_session(watched: Watched) -> None:
    usage = Usage(input_tokens=5, output_tokens=2)
    for start in (0, 100):
        watched.see(start, TurnStarted(1), StepStarted(1, 1), answer(CALLED, usage=usage))
        watched.see(start, STARTED, result("2"), StepStarted(1, 2))
        watched.see(start, answer(TextBlock("x"), usage=usage))
        drawn = watched.see(start + 2, TurnEnded(1, "completed"))
    told = "completed · 2 steps · 1 call · 10 in + 4 out tokens · 2.0 s"
    assert drawn[-1] == ("summary", told)
