"""Which tool bodies run, as people watch them: the log has results in model order only.

A hook around each body tells of its beginning as a live fact; the runtime itself tells of its end.
What the open step has run so far is kept for those who come later.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import attrs
from msgspec.structs import replace

from trioloop.agent.agent import Agent
from trioloop.agent.notifications import Disposed, Notification, ToolBodyEnded
from trioloop.control.results import RunningBody
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import CallRequest
from trioloop.ids import CallId, SessionId
from trioloop.ports import Mode, ToolOutcome
from trioloop.runtime.runtime import Runtime, wall_clock


@attrs.frozen
class BodyStarted(Notification):
    """A tool's body begins.

    Attributes:
        call: the call's id.
        mode: whether it may overlap with others.
        at: Unix milliseconds.
    """

    kind: ClassVar[str] = "body-start"
    call: CallId
    mode: Mode
    at: int


class Bodies:
    """The tool bodies of each agent's open step."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._steps: dict[SessionId, tuple[tuple[int, int], dict[CallId, RunningBody]]] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the runtime's bodies while the block is open."""
        with (
            self._runtime.hooks.execute.add(self._around),
            self._runtime.on(ToolBodyEnded.kind, self._ended),
            self._runtime.on(Disposed.kind, lambda gone: self._steps.pop(gone.agent, None)),
        ):
            yield

    def of(self, agent: Agent) -> tuple[RunningBody, ...]:
        """The bodies of an agent's open step, in the order in which they began."""
        step, bodies = self._steps.get(agent.name, ((0, 0), {}))
        return tuple(bodies.values()) if step == _open_step(agent) else ()

    async def _around(self, request: CallRequest, next: Next[ToolOutcome]) -> ToolOutcome:
        agent = self._runtime.agents.get(request.agent.name)
        if agent is None:
            return await next()
        mode, now = _mode(self._runtime, agent, request), wall_clock()
        body = RunningBody(call=request.call, mode=mode, started=now)
        self._bodies(agent)[request.call] = body
        agent.notifications.send(BodyStarted(request.call, mode, now, agent=agent.name))
        return await next()

    def _ended(self, told: ToolBodyEnded) -> None:
        _, bodies = self._steps.get(told.agent, ((0, 0), {}))
        body = bodies.get(told.call)
        if body is not None:
            bodies[told.call] = replace(body, ended=wall_clock())

    def _bodies(self, agent: Agent) -> dict[CallId, RunningBody]:
        step = _open_step(agent)
        known = self._steps.get(agent.name)
        if known is None or known[0] != step:
            known = self._steps[agent.name] = (step, {})
        return known[1]


def _open_step(agent: Agent) -> tuple[int, int]:
    turn = agent.session.state.turn
    if turn is None or turn.step is None:
        return (0, 0)
    return (turn.number, turn.step.number)


def _mode(runtime: Runtime, agent: Agent, request: CallRequest) -> Mode:
    for registry in (agent.tools, runtime.tools):
        for tool in registry:
            if tool.name == request.name:
                return tool.mode_of(request.arguments)
    return "barrier"
