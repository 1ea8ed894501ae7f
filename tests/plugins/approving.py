"""Tools to be asked about, models that call them, and people who answer."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from trio.testing import wait_all_tasks_blocked

from tests.agent.reading import facts
from trioloop import Agent, Runtime, tool
from trioloop.events import ToolResultLogged
from trioloop.hooks import Ask, Next, PrePolicy
from trioloop.plugins import Approvals
from trioloop.testing import ScriptedModel, Text, ToolCall, open_test_runtime


@tool(effects="read-only")
async def read(name: str) -> str:
    """Read."""
    return f"read {name}"


@tool
async def write(name: str, text: str = "") -> str:
    """Write."""
    return f"wrote {name} {text}".strip()


@tool(effects="idempotent")
async def delete(name: str) -> str:
    """Delete."""
    return f"deleted {name}"


TOOLS = [read, write, delete]


class Person:
    """Answers each question of some approvals as it comes.

    Attributes:
        asked: the questions, in order.
    """

    def __init__(self, approvals: Approvals, *answers: dict[str, Any]) -> None:
        self.asked: list[str] = []
        self._approvals = approvals
        self._answers = list(answers)
        approvals.observe(self._look)

    def _look(self) -> None:
        for one in self._approvals.open:
            if one.asked.question not in self.asked or self._answers:
                self.asked.append(one.asked.question)
                if self._answers:
                    self._approvals.answer(one.asked.approval, **self._answers.pop(0))


def calling(*steps: Sequence[ToolCall]) -> ScriptedModel:
    """A model that makes calls, step by step, then ends; each turn anew."""
    script: list[Any] = []
    for step in steps:
        script += [list(step), Text("done")]
    return ScriptedModel(script)


def codes(agent: Agent) -> list[str | None]:
    """How the calls of an agent ended."""
    return [one.code for one in facts(agent, ToolResultLogged)]


YES, NO = {"allow": True}, {"allow": False}


@asynccontextmanager
async def asking(
    timeout_s: float | None = None,
) -> AsyncIterator[tuple[Agent, Approvals, Runtime]]:
    """An agent whose first call is being asked about by a policy of the application's."""
    approvals = Approvals(timeout_s=timeout_s, clock=lambda: 0)
    model = calling([ToolCall("write", name="a")])
    async with open_test_runtime(model=model, tools=TOOLS, approver=approvals) as runtime:

        @runtime.hooks.pre_execute
        async def ask(call: Any, next: Next[PrePolicy]) -> PrePolicy:
            return Ask("May it?")

        agent = await runtime.create_agent("a")
        agent.followup("go")
        await wait_all_tasks_blocked()
        yield agent, approvals, runtime
