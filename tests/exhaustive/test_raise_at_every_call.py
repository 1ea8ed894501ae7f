"""Whatever is scripted raises, at any of its calls: hooks, sections, conditions, bodies, observers.

What a listener of the log or of notifications raises concerns nobody (H5); a body's is its call's;
the rest ends its turn and is named (H3).
"""

from collections.abc import Callable

import pytest
import trio

from tests.exhaustive.cancelling import go_on
from tests.exhaustive.checks import Ledger, check_durable, check_end
from tests.exhaustive.listeners import observe
from tests.exhaustive.scenes import SCENES
from trioloop.events import ToolResultLogged, TurnEnded
from trioloop.testing import CallPoint, raise_at_every_call, stray_cancelled

HARMLESS = ("observer", "listener of the agent", "listener of the runtime")
OF_CALLS = (
    "look",
    "save",
    "write",
    "note",
    "conclude",
    "page",
    "book",
    "pre_execute",
    "execute",
    "post_execute",
)
CODES = ("UNKNOWN", "LEAKED_CANCEL", "TOOL_ACTIVATION_FAILED")
ERRORS: dict[str, Callable[[], BaseException]] = {
    "an exception": lambda: ValueError("on purpose"),
    "a stray Cancelled": stray_cancelled,
}


def _check(ledger: Ledger, point: CallPoint, error: str) -> None:
    where = point.where
    failed = [end for end in ledger.ends if end.code in CODES]
    if where is None or where in HARMLESS or where in OF_CALLS:
        assert failed == []
    elif failed or not _met_a_child(ledger):
        (end,) = failed
        assert end.reason == "error"
        assert end.code == _code(where, error)
        assert _names(end, where)
    if where in OF_CALLS:
        facts = [event.data for event in ledger.events]
        codes = [fact.code for fact in facts if isinstance(fact, ToolResultLogged)]
        asked_again = where == "post_execute" and error == "a stray Cancelled"
        assert any(codes) or asked_again, "nobody was told that a call failed"


def _met_a_child(ledger: Ledger) -> bool:
    """Whether it was a child's turn that failed, and with it the call that delegated to it."""
    results = [event.data for event in ledger.events if isinstance(event.data, ToolResultLogged)]
    return any(one.code == "SUBAGENT_FAILED" for one in results)


def _code(where: str, error: str) -> str:
    if error == "a stray Cancelled":
        return "LEAKED_CANCEL"
    return "TOOL_ACTIVATION_FAILED" if where == "condition" else "UNKNOWN"


def _names(end: TurnEnded, where: str) -> bool:
    """Whether it tells who raised: a listener by its name, others by the place in the driver."""
    told = f"{end.by} {end.message}"
    return where in told or where in ("condition", "section")


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("name", SCENES)
def test_whatever_raises_at_any_of_its_calls_leaves_the_work_whole(name: str, error: str) -> None:
    scene = SCENES[name]

    async def run(point: CallPoint) -> None:
        async with scene.open(point.count) as stage:
            ledger = Ledger(stage)
            observe(stage.runtime, stage.agent, point.count)
            await scene.act(stage.agent)
            await stage.agent.wait_idle()
            _check(ledger, point, error)
            await go_on(stage.agent)
            assert trio.current_time() <= 2 * scene.takes_s + 1
        check_end(ledger)
        check_durable(ledger)

    assert raise_at_every_call(run, error=ERRORS[error]) > 20
