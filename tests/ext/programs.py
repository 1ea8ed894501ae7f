"""A step whose model calls `run_code`, with tools that its programs call. In real time."""

from typing import Any

from tests.tools.batches import Step
from trioloop.events import NestedCallStarted, NestedResultLogged, ToolResultLogged
from trioloop.ext.code import ProgramLimits, run_code
from trioloop.tools import tool


def step_for(*functions: Any, limits: ProgramLimits | None = None, **options: Any) -> Step:
    """A step with `run_code` and some read-only tools."""
    step = Step(**options)
    step.tools.register(run_code(limits=limits))
    for function in functions:
        step.tools.register(tool(effects="read-only")(function))
    return step


async def run(step: Step, code: str) -> ToolResultLogged:
    """Run one program."""
    (result,) = await step.run(("run_code", {"code": code}))
    return result


def nested(step: Step) -> list[str]:
    """The nested calls' facts in the log: `call double`, `result None`."""
    return [
        f"call {fact.name}" if isinstance(fact, NestedCallStarted) else f"result {fact.code}"
        for fact in step.facts
        if isinstance(fact, NestedCallStarted | NestedResultLogged)
    ]


async def double(number: int) -> int:
    """Twice a number."""
    return 2 * number
