"""Every code that a call can end with: what brings it about, whether the body had run (T9, T13).

Each code of the table has a scene here that ends with it, and the table's word on effects is held
against what the body did.
"""

import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from tests.log.writing import LogWriter, answer_calls, call_block, started
from tests.tools.batches import Asked, Step
from tests.tools.test_pool_order import stray_cancelled
from trioloop.codes import TOOL_CODES, ToolCode
from trioloop.errors import ToolError
from trioloop.events import ToolCallStarted, ToolResultLogged
from trioloop.hooks import Deny, Next, PostExecution, PostPolicy, Withhold
from trioloop.ids import call_id
from trioloop.log.repair import repair
from trioloop.tools import tool


class Scene:
    """A step with one tool, `work`, which tells that it has run and then does what it was made for.

    Attributes:
        ran: whether the body has run.
    """

    def __init__(self, then: Callable[[], Awaitable[Any]] | None = None, **options: Any) -> None:
        self.ran = False
        self.step = Step(grace_s=0.02)

        @tool(effects="read-only", **options)
        async def work(number: int = 0) -> Any:
            """Work."""
            self.ran = True
            return await then() if then is not None else number

        self.step.tools.register(work)

    async def end(self, *asked: Asked, **options: Any) -> ToolResultLogged:
        """Run the calls; the last one's result."""
        return (await self.step.run(*(asked or [("work", {})]), **options))[-1]

    async def end_cancelled(self, how: Callable[[trio.CancelScope], None]) -> ToolResultLogged:
        """Run a call, and stop it in some way as soon as its body runs."""
        with trio.CancelScope() as turn:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.end)
                while not self.ran:  # noqa: ASYNC110 - the body tells
                    await trio.lowlevel.checkpoint()
                how(turn)
        return self.step.results[-1]


Outcome = tuple[ToolResultLogged, bool]


async def unknown() -> Outcome:
    """A tool that the step doesn't have."""
    scene = Scene()
    return await scene.end(("wrok", {})), scene.ran


async def invalid() -> Outcome:
    """Arguments that don't fit."""
    scene = Scene()
    return await scene.end(("work", {"number": "one"})), scene.ran


async def denied() -> Outcome:
    """A guard says no."""
    scene = Scene()
    scene.step.tools.guard(lambda request: Deny())
    return await scene.end(), scene.ran


async def cut() -> Outcome:
    """The answer stopped at its maximum of tokens."""
    scene = Scene()
    return await scene.end(cut=True), scene.ran


async def aborted_before() -> Outcome:
    """The turn is cancelled by the call before it."""
    scene = Scene()

    @tool
    async def stop() -> None:
        """Cancel the turn."""
        turn.cancel()

    scene.step.tools.register(stop)
    with trio.CancelScope() as turn:
        await scene.end(("stop", {}), ("work", {}))
    return scene.step.results[-1], scene.ran


async def cancelled() -> Outcome:
    """The call alone is cancelled while it runs."""
    scene = Scene(trio.sleep_forever)
    alone = scene.step.running
    return await scene.end_cancelled(lambda _: alone[call_id(1, 1, 0)].cancel()), scene.ran


async def timed_out() -> Outcome:
    """The body takes longer than its tool may."""
    scene = Scene(trio.sleep_forever, timeout_s=0.01)
    return await scene.end(), scene.ran


async def aborted() -> Outcome:
    """The turn is cancelled while the body runs."""
    scene = Scene(trio.sleep_forever)
    return await scene.end_cancelled(lambda turn: turn.cancel()), scene.ran


async def abandoned() -> Outcome:
    """A body in a thread doesn't end within its grace."""
    scene = Scene()
    release = threading.Event()

    @tool(effects="read-only", timeout_s=0.01)
    def hang() -> None:
        """Hang."""
        scene.ran = True
        release.wait(20)

    scene.step.tools.register(hang)
    result = await scene.end(("hang", {}))
    release.set()
    with trio.fail_after(10):
        while scene.step.threads.strays:  # noqa: ASYNC110 - a thread makes it so
            await trio.sleep(0.001)
    return result, scene.ran


async def failed() -> Outcome:
    """The body raises."""

    async def fail() -> None:
        raise ToolError("no")

    scene = Scene(fail)
    return await scene.end(), scene.ran


async def crashed() -> Outcome:
    """The body raises what isn't an `Exception`."""

    async def leave() -> None:
        raise SystemExit(1)

    scene = Scene(leave)
    return await scene.end(), scene.ran


async def leaked() -> Outcome:
    """The body raises a `Cancelled` that is nobody's."""
    scene = Scene(stray_cancelled)
    return await scene.end(), scene.ran


async def unencodable() -> Outcome:
    """The body returns what JSON can't hold."""

    async def odd() -> object:
        return {"x": {1, 2}}

    scene = Scene(odd)
    return await scene.end(), scene.ran


async def withheld() -> Outcome:
    """The post-policy withholds the result."""
    scene = Scene()

    @scene.step.hooks.post_execute
    async def hide(done: PostExecution, next: Next[PostPolicy]) -> PostPolicy:
        return Withhold("not for you")

    return await scene.end(), scene.ran


async def internal() -> Outcome:
    """The scheduler fails at the second call, while the first runs."""
    scene = Scene(trio.sleep_forever)
    append = scene.step.session.append

    def failing(*facts: Any) -> Any:
        if isinstance(facts[0], ToolCallStarted) and facts[0].call.endswith("_1"):
            raise RuntimeError("broken")
        return append(*facts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(scene.step.session), "append", lambda _, *facts: failing(*facts))
        with pytest.raises(RuntimeError, match="broken"):
            await scene.end(("work", {}), ("work", {}))
    return scene.step.results[0], scene.ran


def _repaired(*, dispatched: bool) -> ToolResultLogged:
    writer = LogWriter()
    writer.open_turn("m1")
    writer.admit()
    writer.add(answer_calls(1, 1, 1), started(call_block(1, 1, 0), dispatched=dispatched))
    result = repair(writer.events)[0]
    assert isinstance(result, ToolResultLogged)
    return result


async def died_before() -> Outcome:
    """The process died while the call's policy was asked."""
    return _repaired(dispatched=False), False


async def died() -> Outcome:
    """The process died after the call was dispatched: its body may have run."""
    return _repaired(dispatched=True), True


SCENES: dict[ToolCode, Callable[[], Awaitable[Outcome]]] = {
    "UNKNOWN_TOOL": unknown,
    "INVALID_ARGUMENTS": invalid,
    "TOOL_DENIED": denied,
    "TOOL_CALL_CUT": cut,
    "TOOL_ABORTED_BEFORE_DISPATCH": aborted_before,
    "TOOL_NOT_STARTED": died_before,
    "TOOL_CANCELLED": cancelled,
    "TOOL_TIMEOUT": timed_out,
    "TOOL_INTERNAL": internal,
    "TOOL_OUTCOME_UNKNOWN": died,
    "TOOL_ABORTED": aborted,
    "TOOL_ABANDONED": abandoned,
    "TOOL_FAILED": failed,
    "TOOL_CRASHED": crashed,
    "TOOL_LEAKED_CANCEL": leaked,
    "TOOL_RESULT_UNENCODABLE": unencodable,
    "TOOL_RESULT_WITHHELD": withheld,
}


def test_every_code_of_a_call_has_a_scene() -> None:
    assert set(SCENES) == set(TOOL_CODES)


@pytest.mark.parametrize("code", TOOL_CODES)
async def test_a_call_ends_with_its_code_and_the_code_says_whether_it_ran(code: ToolCode) -> None:
    with trio.fail_after(30):
        result, ran = await SCENES[code]()
    assert (result.code, result.is_error) == (code, True)
    assert TOOL_CODES[code].ran in ({"perhaps", "yes"} if ran else {"perhaps", "no"})
    assert result.content
