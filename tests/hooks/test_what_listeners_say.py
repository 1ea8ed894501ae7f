"""What a listener raises or answers may be anything: its turn ends, the agent goes on (H3, G12)."""

from collections.abc import Callable

import pytest
from trio.testing import MockClock

from tests.agent.reading import ends
from trioloop.errors import InvalidInputError
from trioloop.hooks import Reject, Retry, SectionText
from trioloop.prompt import Section
from trioloop.testing import ScriptedModel, Text, open_test_runtime


class _SpeechlessError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class _CodedError(Exception):
    code: object = None

    def __init__(self, code: object) -> None:
        super().__init__("coded")
        self.code = code


class _UncodedError(Exception):
    @property
    def code(self) -> str:
        """No code can be had."""
        raise RuntimeError("no code")


ERRORS: dict[str, tuple[Exception, str, str]] = {
    "half a character": (RuntimeError("a\ud800"), "UNKNOWN", r"a\ud800"),
    "a name of a file": (FileNotFoundError(2, "gone", "x\udcff"), "UNKNOWN", r"'x\udcff'"),
    "no words": (_SpeechlessError(), "UNKNOWN", "can't be shown"),
    "nothing": (ValueError(), "UNKNOWN", "ValueError"),
    "very much": (ValueError("x" * 10_000_000), "UNKNOWN", "xxx"),
    "a code": (_CodedError("MINE"), "MINE", "coded"),
    "a number as its code": (_CodedError(404), "UNKNOWN", "coded"),
    "half a character as its code": (_CodedError("\ud800"), r"\ud800", "coded"),
    "a code that can't be read": (_UncodedError("uncoded"), "UNKNOWN", "uncoded"),
    "a group": (ExceptionGroup("both", [ValueError("\ud800")]), "UNKNOWN", "both"),
}


@pytest.mark.parametrize("hook", ["pre_step", "assemble", "request", "stream", "turn_stopping"])
@pytest.mark.parametrize("case", ERRORS)
async def test_whatever_is_raised_ends_the_turn_and_is_told(
    case: str, hook: str, autojump_clock: MockClock
) -> None:
    error, code, words = ERRORS[case]

    async def boom(*given: object) -> object:
        raise error

    async with open_test_runtime(model=ScriptedModel([Text("1"), Text("2")])) as runtime:
        agent = await runtime.create_agent("a")
        told: list[BaseException | None] = []
        agent.on("error", lambda failed: told.append(failed.error))
        with getattr(agent.hooks, hook).add(boom):
            settled = await agent.ask("one")
        assert (settled.reason, settled.code) == ("error", code)
        (end,) = ends(agent)
        assert end.message is not None
        assert words in end.message
        assert len(end.message) < 5_000
        assert told == [error]
        assert (await agent.ask("two")).reason == "completed"


ANSWERS: dict[str, Callable[[], object]] = {
    "a rejection in half a character": lambda: Reject("\ud800"),
    "a rejection without words": lambda: Reject(None),  # type: ignore[arg-type]
    "a rejection with a number for a code": lambda: Reject("no", 3),  # type: ignore[arg-type]
    "a rejection without a code": lambda: Reject("no", ""),
    "a retry some day": lambda: Retry("soon"),  # type: ignore[arg-type]
    "a section in half a character": lambda: SectionText("a", "\ud800"),
    "a section without a name": lambda: SectionText("", "text"),
    "a section that is a number": lambda: SectionText("a", 5),  # type: ignore[arg-type]
    "a section somewhere": lambda: SectionText("a", "x", "last"),  # type: ignore[arg-type]
    "a registered section that is a number": lambda: Section("a", 5),  # type: ignore[arg-type]
    "a registered section somewhere": lambda: Section("a", "x", 0.5),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", ANSWERS)
def test_an_answer_that_no_log_can_hold_is_refused_where_it_is_made(case: str) -> None:
    with pytest.raises(InvalidInputError, match="must be"):
        ANSWERS[case]()


@pytest.mark.parametrize("cause", ["\ud800", "", None, 3], ids=repr)
async def test_a_cause_that_is_no_word_is_refused_and_cancels_nothing(
    cause: str, autojump_clock: MockClock
) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("1")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        with pytest.raises(InvalidInputError, match="cause"):
            agent.cancel(cause)
        await agent.wait_idle()
        assert [end.reason for end in ends(agent)] == ["completed"]
