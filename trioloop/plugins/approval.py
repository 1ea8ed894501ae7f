"""Questions that a person answers: asked in the log, kept open, answered once.

`open_runtime(approver=Approvals())` answers what a pre-policy asks with `Ask`. A question belongs
to no connection and no window: whoever sees it may answer, and the first answer counts. It ends
without one when its time is over, which is a no, or when its call is cancelled. What a crash left
open is voided when the session is resumed, since its call is closed by then (D4).
"""

import math
import time
from collections.abc import Callable
from typing import Literal, TypeAlias

import attrs
import trio

from trioloop import Agent, CallId, Event, EventData, SessionId, TrioloopError, event
from trioloop.hooks import Registration

Outcome: TypeAlias = Literal["answered", "expired", "withdrawn", "void"]


@event("approval/request", ignorable=True)
class ApprovalRequested(EventData):
    """A question is open.

    Attributes:
        approval: its id, derived from the session and the call.
        call: the call that is asked about.
        question: what is asked.
        until: Unix milliseconds at which it counts as a no; None: it waits for ever.
    """

    approval: str
    call: CallId
    question: str
    until: int | None = None


@event("approval/answer", ignorable=True)
class ApprovalAnswered(EventData):
    """A question is closed.

    Attributes:
        approval: its id.
        allow: whether the call may run.
        outcome: how it came to that.
        reason: why it may not, in words.
        by: who answered, in a word.
    """

    approval: str
    allow: bool
    outcome: Outcome
    reason: str = ""
    by: str = ""


class UnknownApprovalError(TrioloopError, LookupError):
    """There is no such question."""

    code = "UNKNOWN_APPROVAL"


@attrs.define(eq=False)
class OpenApproval:
    """A question that waits for its answer.

    Attributes:
        agent: whose call is asked about.
        asked: the question, as it stands in the log.
        tool: the tool's name.
        arguments: the call's arguments, as the model wrote them.
        given: the answer, once there is one.
    """

    agent: Agent
    asked: ApprovalRequested
    tool: str
    arguments: str
    given: ApprovalAnswered | None = None
    _came: trio.Event = attrs.field(factory=trio.Event)

    async def wait(self) -> None:
        """Wait for the answer. A checkpoint."""
        await self._came.wait()

    def give(self, answer: ApprovalAnswered) -> None:
        """Record the answer and tell who waits."""
        self.given = answer
        self.agent.session.append(answer)
        self._came.set()


class Approvals:
    """An approver that keeps questions open until somebody answers.

    Args:
        timeout_s: how long a question waits before it counts as a no; None: for ever.
        clock: Unix milliseconds.
    """

    def __init__(
        self,
        *,
        timeout_s: float | None = 300,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        if timeout_s is not None and not timeout_s > 0:
            raise ValueError(f"timeout_s must be greater than 0, not {timeout_s!r}")
        self._timeout_s = timeout_s
        self._clock = clock
        self._open: dict[str, OpenApproval] = {}
        self._observers: tuple[Callable[[], None], ...] = ()

    @property
    def open(self) -> tuple[OpenApproval, ...]:
        """The questions that wait, the oldest first."""
        return tuple(self._open.values())

    def observe(self, observer: Callable[[], None]) -> Registration:
        """Call `observer()` whenever a question opens or closes."""
        self._observers = (*self._observers, observer)

        def remove() -> None:
            self._observers = tuple(one for one in self._observers if one is not observer)

        return Registration(remove)

    async def ask(self, agent: object, call: CallId, question: str) -> bool | str:
        """Open a question and wait for its answer. A checkpoint; cancelled, it is withdrawn."""
        if not isinstance(agent, Agent):
            return "its agent keeps no log to ask in"
        asked = self._opened(agent, call, question)
        try:
            with trio.move_on_after(math.inf if self._timeout_s is None else self._timeout_s):
                await asked.wait()
            if asked.given is None:
                return self._expired(asked)
            return asked.given.allow or asked.given.reason or False  # perhaps in the last moment
        except trio.Cancelled:
            self._close(asked, allow=False, outcome="withdrawn")
            raise

    def _opened(self, agent: Agent, call: CallId, question: str) -> OpenApproval:
        until = None if self._timeout_s is None else self._clock() + round(self._timeout_s * 1000)
        request = ApprovalRequested(approval_id(agent.name, call), call, question, until)
        agent.session.append(request)
        step = agent.session.state.step
        found = None if step is None else step.calls.get(call)
        name, arguments = ("", "") if found is None else (found.block.name, found.block.arguments)
        asked = self._open[request.approval] = OpenApproval(agent, request, name, arguments)
        self._tell()
        return asked

    def _expired(self, asked: OpenApproval) -> str:
        reason = f"nobody answered within {self._timeout_s:g} s: {asked.asked.question}"
        self._close(asked, allow=False, outcome="expired", reason=reason)
        return reason

    def answer(
        self, approval: str, *, allow: bool, reason: str = "", by: str = ""
    ) -> ApprovalAnswered:
        """Answer an open question; synchronous. The first answer counts.

        Args:
            approval: the question's id.
            allow: whether the call may run.
            reason: why it may not; the model is told.
            by: who answers, in a word.

        Raises:
            UnknownApprovalError: no such question is open.
        """
        asked = self._open.get(approval)
        if asked is None:
            raise UnknownApprovalError(f"no question {approval!r} is open")
        return self._close(asked, allow=allow, outcome="answered", reason=reason, by=by)

    def _close(
        self,
        asked: OpenApproval,
        *,
        allow: bool,
        outcome: Outcome,
        reason: str = "",
        by: str = "",
    ) -> ApprovalAnswered:
        answer = ApprovalAnswered(asked.asked.approval, allow, outcome, reason, by)
        if self._open.pop(answer.approval, None) is not None:
            asked.give(answer)
            self._tell()
        return answer

    def _tell(self) -> None:
        for observer in self._observers:
            observer()


def approval_id(session: SessionId, call: CallId) -> str:
    """The id of the question about a call: derived, so that it means the same after a restart."""
    return f"{session}.{call}"


def decided(events: tuple[Event, ...], approval: str) -> ApprovalAnswered | None:
    """How a session's log says that a question was closed; None: it knows of no such thing."""
    for one in reversed(events):
        data = one.data
        if isinstance(data, ApprovalAnswered) and data.approval == approval:
            return data
        if isinstance(data, ApprovalRequested) and data.approval == approval:
            return None
    return None


def void(agent: Agent, live: frozenset[str] = frozenset()) -> int:
    """Close the questions that a crash left open in an agent's log; how many there were.

    Args:
        agent: just resumed.
        live: ids of questions that do wait.
    """
    opened: dict[str, None] = {}
    for one in agent.session.events():
        if isinstance(one.data, ApprovalRequested):
            opened[one.data.approval] = None
        elif isinstance(one.data, ApprovalAnswered):
            opened.pop(one.data.approval, None)
    left = [approval for approval in opened if approval not in live]
    if left:
        agent.session.append(
            *(ApprovalAnswered(approval, allow=False, outcome="void") for approval in left)
        )
    return len(left)
