"""How a call ends, told truthfully: each row of the table in tools.md section 4."""

from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock

from tests.tools.batches import nap, naps, step_of
from tests.tools.test_pool_order import open_nursery, open_scope, stray_cancelled
from trioloop.errors import StoreFailedError, ToolError
from trioloop.events import ToolCallStarted, ToolResultLogged
from trioloop.hooks import CallRequest, Next, PostExecution
from trioloop.hooks.points import PostPolicy, PrePolicy
from trioloop.ports import ToolOutcome
from trioloop.tools import ToolContext, tool


class HostileError(Exception):
    """An exception that can't even be shown."""

    def __str__(self) -> str:
        raise SystemExit("hostile")


class Own(BaseException):
    """A tool's own kind of exception."""


ERRORS: dict[str, tuple[Any, str, str]] = {
    "exception": (ValueError("oops"), "TOOL_FAILED", "ValueError: oops"),
    "no message": (KeyError(), "TOOL_FAILED", "KeyError"),
    "told": (ToolError("Try Paris."), "TOOL_FAILED", "Try Paris."),
    "exit": (SystemExit(3), "TOOL_CRASHED", "SystemExit: 3"),
    "generator exit": (GeneratorExit(), "TOOL_CRASHED", "GeneratorExit"),
    "own": (Own("x"), "TOOL_CRASHED", "Own: x"),
    "hostile": (HostileError(), "TOOL_FAILED", "HostileError: (its message can't be shown)"),
    "group": (
        ExceptionGroup("all", [ValueError("a"), ExceptionGroup("in", [ToolError("b")]), OSError()]),
        "TOOL_FAILED",
        "ValueError: a\nb\nOSError",
    ),
    "crashing group": (
        BaseExceptionGroup("all", [ValueError("a"), Own("b")]),
        "TOOL_CRASHED",
        "ValueError: a\nOwn: b",
    ),
    "surrogate": (ValueError("\udc80"), "TOOL_FAILED", "ValueError: \\udc80"),
}


@pytest.mark.parametrize("name", ERRORS)
async def test_what_a_body_raises_is_its_result(autojump_clock: MockClock, name: str) -> None:
    error, code, text = ERRORS[name]

    async def fail() -> None:
        """Fail."""
        raise error

    step = step_of(fail, nap)
    await step.run(("fail", {}), *naps(1))
    assert step.codes == [code, None]
    assert step.texts == [text, "1.0"]
    assert step.results[0].is_error


async def test_the_log_has_the_chain_of_an_error_and_its_code(autojump_clock: MockClock) -> None:
    async def fail() -> None:
        """Fail."""
        try:
            raise OSError("disk")
        except OSError as error:
            raise ToolError("Can't read it.") from error

    step = step_of(fail)
    (result,) = await step.run(("fail", {}))
    assert result.meta == {
        "errors": [
            {"type": "ToolError", "message": "Can't read it.", "code": "TOOL_FAILED"},
            {"type": "OSError", "message": "disk"},
        ]
    }


async def test_a_very_long_message_is_capped(autojump_clock: MockClock) -> None:
    async def fail() -> None:
        """Fail."""
        raise ValueError("x" * 1_000_000)

    step = step_of(fail)
    await step.run(("fail", {}))
    assert len(step.texts[0]) < 10_000


async def test_a_stray_cancelled_is_told_and_others_go_on(autojump_clock: MockClock) -> None:
    async def stray() -> None:
        """Stray."""
        await stray_cancelled()

    async def mixed() -> None:
        """Raise a group with a stray in it."""
        try:
            await stray_cancelled()
        except trio.Cancelled as error:
            raise BaseExceptionGroup("both", [error, ValueError("real")]) from None

    step = step_of(stray, mixed, nap)
    await step.run(("stray", {}), *naps(1), ("mixed", {}))
    assert step.codes == ["TOOL_LEAKED_CANCEL", None, "TOOL_FAILED"]
    assert step.texts[2] == "ValueError: real"


@pytest.mark.parametrize("leave", [open_scope, open_nursery])
@pytest.mark.parametrize("others", [0, 3])
async def test_what_a_body_leaves_open_is_its_own_fault(
    autojump_clock: MockClock, leave: Any, others: int
) -> None:
    async def careless() -> str:
        """Leave something open."""
        await leave()
        return "done"

    step = step_of(careless, nap, calls_max=2)
    await step.run(("careless", {}), *naps(*range(others)))
    assert step.codes == ["TOOL_CRASHED"] + [None] * others
    await trio.sleep(1)


async def test_unknown_tools_and_invalid_arguments_start_nothing(autojump_clock: MockClock) -> None:
    step = step_of(nap)
    await step.run(
        ("nip", {}), ("nap", "{not json"), ("nap", "[1]"), ("nap", {"seconds": "x"}), *naps(0)
    )
    assert step.codes == ["UNKNOWN_TOOL", *["INVALID_ARGUMENTS"] * 3, None]
    assert "'nap'" in step.texts[0]
    assert step.shape == [*(f"result {i}" for i in range(4)), "call 4", "result 4"]
    assert [result.call_seq is None for result in step.results] == [True] * 4 + [False]


async def test_empty_arguments_mean_none(autojump_clock: MockClock) -> None:
    async def ping(word: str = "pong") -> str:
        """Ping."""
        return word

    step = step_of(ping)
    await step.run(("ping", ""), ("ping", "{}"))
    assert step.texts == ["pong", "pong"]


async def test_arguments_that_are_too_long_are_refused(autojump_clock: MockClock) -> None:
    async def say(word: str) -> str:
        """Say a word."""
        return word

    step = step_of(say, arguments_bytes_max=100)
    await step.run(*[("say", {"word": "x" * length}) for length in (89, 90)])
    assert [result.is_error for result in step.results] == [False, True]
    assert step.codes == [None, "INVALID_ARGUMENTS"]
    assert "100 bytes are allowed" in step.texts[1]


async def test_no_call_of_an_answer_that_was_cut_runs(autojump_clock: MockClock) -> None:
    step = step_of(nap)
    await step.run(*naps(1, 1), ("nope", {}), cut=True)
    assert step.codes == ["TOOL_CALL_CUT"] * 3
    assert step.shape == ["result 0", "result 1", "result 2"]
    assert not step.running


@pytest.mark.parametrize("kind", ["body", "pre", "post"])
async def test_ctrl_c_goes_up_when_everything_is_recorded(
    autojump_clock: MockClock, kind: str
) -> None:
    async def interrupted() -> None:
        """Press Ctrl-C."""
        await trio.sleep(1)
        if kind == "body":
            raise KeyboardInterrupt

    step = step_of(interrupted, nap, calls_max=2)

    @step.hooks.pre_execute
    async def before(request: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
        if kind == "pre" and request.name == "interrupted":
            raise KeyboardInterrupt
        return await next()

    @step.hooks.post_execute
    async def after(done: PostExecution, next: Next[PostPolicy]) -> PostPolicy:
        if kind == "post" and done.request.name == "interrupted":
            raise KeyboardInterrupt
        return await next()

    with pytest.raises(KeyboardInterrupt):
        await step.run(*naps(0.5), ("interrupted", {}), *naps(9, 9))
    assert len(step.codes) == 4
    assert step.codes[0] == ("TOOL_ABORTED" if kind == "pre" else None)
    assert str(step.codes[3]).startswith("TOOL_ABORTED")


async def test_a_scheduler_that_fails_gives_each_call_a_result(
    autojump_clock: MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    step = step_of(nap, calls_max=2)
    append = step.session.append

    def failing(*facts: Any) -> Any:
        if isinstance(facts[0], ToolCallStarted) and facts[0].call.endswith("_2"):
            raise RuntimeError("broken")
        return append(*facts)

    monkeypatch.setattr(type(step.session), "append", lambda _, *facts: failing(*facts))
    with pytest.raises(RuntimeError, match="broken"):
        await step.run(*naps(1, 9, 1, 1))
    assert step.codes == [None, "TOOL_INTERNAL", "TOOL_INTERNAL", "TOOL_INTERNAL"]
    assert not step.running


async def test_a_store_that_fails_at_the_gate_is_nobody_s_result(
    autojump_clock: MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    step = step_of(nap)
    step.tools.register(tool(name="write", description="Write.")(nap))

    async def gate(_: object) -> None:
        await trio.sleep(1)
        raise StoreFailedError("full")

    monkeypatch.setattr(type(step.session), "gate", gate)
    with pytest.raises(StoreFailedError):
        await step.run(("write", {"seconds": 1}), *naps(1))
    assert step.codes == ["TOOL_ABORTED_BEFORE_DISPATCH"] * 2


@pytest.mark.parametrize("own", [True, False])
async def test_a_store_failure_inside_a_body_is_a_result_only_where_it_is_another_s(
    autojump_clock: MockClock,
    own: bool,
) -> None:
    async def stumble() -> None:
        """Meet a store's failure."""
        await trio.sleep(1)
        failure = StoreFailedError("full")
        if own:
            step.session.failure = failure
        raise failure

    step = step_of(stumble)
    if own:
        with pytest.raises(StoreFailedError):
            await step.run(("stumble", {}))
    else:
        await step.run(("stumble", {}))
    assert step.codes == ["TOOL_ABORTED" if own else "TOOL_FAILED"]


async def test_a_result_that_json_cannot_hold_is_refused_with_its_path(
    autojump_clock: MockClock,
) -> None:
    async def odd() -> dict[str, Any]:
        """Give something odd."""
        return {"fine": 1, "list": [1, {2, 3}]}

    step = step_of(odd)
    await step.run(("odd", {}))
    assert step.codes == ["TOOL_RESULT_UNENCODABLE"]
    assert "$.list[1]" in step.texts[0]


async def test_presentation_and_conclusion_are_recorded(autojump_clock: MockClock) -> None:
    async def conclude(error: bool) -> ToolOutcome:
        """Conclude."""
        return ToolOutcome(content="bye", meta={"a": 1}, concludes_turn=True, is_error=error)

    step = step_of(conclude)
    first, second = await step.run(("conclude", {"error": False}), ("conclude", {"error": True}))
    assert isinstance(first, ToolResultLogged)
    assert (first.meta, first.concludes_turn, first.is_error) == ({"a": 1}, True, False)
    assert (second.concludes_turn, second.is_error) == (False, True)


async def test_what_a_body_says_after_its_end_is_dropped(autojump_clock: MockClock) -> None:
    kept: list[ToolContext] = []

    async def keep(context: ToolContext) -> str:
        """Keep the context."""
        kept.append(context)
        context.report_progress("working", done=1, total=2)
        context.nursery.start_soon(trio.sleep_forever)
        return context.key

    step = step_of(keep)
    await step.run(("keep", {}))
    kept[0].report_progress("late")
    kept[0].add_context("late")
    assert step.texts == ["main/call_1_1_0"]
    assert [(one.call, one.message, one.done, one.total) for one in step.progress] == [
        ("call_1_1_0", "working", 1, 2)
    ]
    assert not step.contexts


async def test_many_calls_with_failures_keep_model_order_within_the_limit(
    autojump_clock: MockClock,
) -> None:
    async def mixed(index: int) -> int:
        """Mixed."""
        await trio.sleep(index % 7)
        if index % 5 == 0:
            raise ValueError(index)
        return index

    step = step_of(mixed, calls_max=10)
    await step.run(*[("mixed", {"index": index}) for index in range(200)])
    assert [int(result.call.rpartition("_")[2]) for result in step.results] == list(range(200))
    assert step.codes == [None if index % 5 else "TOOL_FAILED" for index in range(200)]


async def test_what_a_body_says_after_its_end_is_dropped_though_its_result_waits(
    autojump_clock: MockClock,
) -> None:
    kept: list[ToolContext] = []

    async def keep(context: ToolContext) -> None:
        """Keep the context."""
        kept.append(context)

    async def misuse() -> None:
        """Speak for another call, which has ended and isn't recorded."""
        await trio.sleep(1)
        kept[0].report_progress("late")
        kept[0].add_context("late")

    step = step_of(keep, misuse)
    await step.run(("misuse", {}), ("keep", {}))
    assert step.codes == [None, None]
    assert not step.progress
    assert not step.contexts


async def test_an_outcome_that_json_cannot_hold_hurts_no_other_call(
    autojump_clock: MockClock,
) -> None:
    step = step_of(nap)

    @step.hooks.execute
    async def odd(request: CallRequest, next: Next[ToolOutcome]) -> ToolOutcome:
        outcome = await next()
        return attrs.evolve(outcome, meta={"kept": float("nan")}) if outcome.value == 1 else outcome

    await step.run(*naps(1, 2))
    assert step.codes == ["TOOL_RESULT_UNENCODABLE", None]


@pytest.mark.parametrize("times", [1, 3])
async def test_each_call_has_its_result_though_the_scheduler_failed_to_record_one(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    step = step_of(nap)
    append = step.session.append
    failed: list[str] = []

    def failing(*facts: Any) -> Any:
        if isinstance(facts[0], ToolResultLogged) and len(failed) < times:
            failed.append(facts[0].call)
            raise RuntimeError("broken")
        return append(*facts)

    monkeypatch.setattr(type(step.session), "append", lambda _, *facts: failing(*facts))
    with pytest.raises(RuntimeError, match="broken"):
        await step.run(*naps(1, 9))
    assert failed == ["call_1_1_0"] * times
    assert step.codes == [None if times == 1 else "TOOL_INTERNAL", "TOOL_INTERNAL"]
