"""Programs that are stopped: at any moment, the worker is killed and the log is whole. Real time.

The moments are found, not timed: a program tells where it is by calling a tool.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.ext.programs import double, nested, run, step_for
from tests.tools.batches import Step
from trioloop.events import NestedResultLogged
from trioloop.ext.code import run_code
from trioloop.ids import call_id
from trioloop.tools import tool

BUSY = "await reached()\nwhile True: pass"
WAITING = "import asyncio\nawait asyncio.gather(forever(), forever(), reached())"


def workers() -> list[int]:
    """The worker processes that this process has."""
    return list(_workers())


def _workers() -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        try:
            name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        if name == "monty" and int(rest.split()[1]) == os.getpid():
            yield int(entry.name)


class Stage:
    """A step whose programs tell where they are."""

    def __init__(self) -> None:
        self.at = trio.Event()
        self.step = step_for(self.reached, self.forever)

    async def reached(self) -> None:
        """Tell that the program is here."""
        self.at.set()

    async def forever(self) -> None:
        """Wait for ever."""
        await trio.sleep_forever()


@pytest.mark.parametrize("program", [BUSY, WAITING])
@pytest.mark.parametrize("how", ["turn", "by id"])
async def test_a_cancelled_program_ends_at_once_and_leaves_no_process(
    program: str, how: str
) -> None:
    stage = Stage()
    with trio.fail_after(10), trio.CancelScope() as turn:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run, stage.step, program)
            await stage.at.wait()
            if how == "turn":
                turn.cancel()
            else:
                stage.step.running[call_id(1, 1, 0)].cancel()
    assert turn.cancelled_caught is (how == "turn")
    cut = "TOOL_ABORTED" if how == "turn" else "TOOL_CANCELLED"
    assert stage.step.codes == [cut]
    inner = [fact.code for fact in stage.step.facts if isinstance(fact, NestedResultLogged)]
    assert inner == [*[cut, cut] * (program == WAITING), None]
    assert workers() == []
    assert not stage.step.running


@pytest.mark.parametrize("program", ["while True: pass", "await forever()"])
async def test_its_deadline_ends_a_program(program: str) -> None:
    step = Step()
    step.tools.register(run_code(timeout_s=0.5))

    @tool(effects="read-only")
    async def forever() -> None:
        """Wait for ever."""
        await trio.sleep_forever()

    step.tools.register(forever)
    with trio.fail_after(10):
        await run(step, program)
    assert step.codes == ["TOOL_TIMEOUT"]
    cut = ["call forever", "result TOOL_CANCELLED"]
    assert nested(step) in ([cut, []] if "await" in program else [[]])  # it may come before
    assert workers() == []


async def test_cancelled_at_any_moment_a_program_leaves_no_process() -> None:
    """The delays fall into the start of the worker, the program, its calls and its end."""
    for delay in range(12):
        step = step_for(double)
        with trio.move_on_after(delay / 1000):
            await run(step, "[await double(index) for index in range(4)]")
        assert set(step.codes) <= {None, "TOOL_ABORTED", "TOOL_ABORTED_BEFORE_DISPATCH"}
        assert workers() == []


async def test_cancelled_before_its_turn_a_program_starts_no_worker() -> None:
    seen: list[int] = []

    async def first() -> None:
        """Cancel the turn, and look who runs."""
        turn.cancel()
        seen.extend(workers())

    step = step_for(first)
    with trio.CancelScope() as turn:
        await step.run(("first", {}), ("run_code", {"code": "1"}))
    assert step.codes[1] == "TOOL_ABORTED_BEFORE_DISPATCH"
    assert seen == workers() == []


async def test_a_worker_that_dies_fails_its_program_alone() -> None:
    stage = Stage()

    async def strike() -> None:
        """Kill the worker of the program that asks."""
        for pid in workers():
            os.kill(pid, signal.SIGKILL)

    stage.step.tools.register(tool(effects="read-only")(strike))
    with trio.fail_after(10):
        result = await run(stage.step, "print('here')\nawait strike()")
    assert result.code == "CODE_RUN_FAILED"
    assert result.meta == {"error": "WorkerCrashed"}
    assert stage.step.texts[0].startswith("Printed:\nhere")
    assert nested(stage.step) == ["call strike", "result None"]


async def test_two_programs_run_side_by_side() -> None:
    together = trio.Event()
    here: list[int] = []

    async def meet(number: int) -> int:
        """Wait for the other program."""
        here.append(number)
        if len(here) == 2:
            together.set()
        await together.wait()
        return number

    step = Step()
    step.tools.register(run_code(mode="concurrent"))
    step.tools.register(tool(effects="read-only")(meet))
    with trio.fail_after(10):
        await step.run(*[("run_code", {"code": f"await meet({n})"}) for n in (1, 2)])
    assert step.texts == ["1", "2"]
    assert workers() == []
