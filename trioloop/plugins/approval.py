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

from trioloop import (
    Agent,
    CallId,
    Event,
    EventData,
    Fold,
    InvalidInputError,
    SessionId,
    TrioloopError,
    event,
    events,
)
from trioloop.hooks import Registration
from trioloop.plugins.options import or_none, positive

Outcome: TypeAlias = Literal["answered", "expired", "withdrawn", "void"]
Remember: TypeAlias = Literal["turn", "session"]


@event("approval/request", ignorable=True)
class ApprovalRequested(EventData):
    """A question is open.

    Attributes:
        approval: its id, derived from the session and the call.
        call: the call that is asked about.
        question: what is asked.
        until: Unix milliseconds at which it counts as a no; None: it waits for ever.
        about: what an answer is about that is remembered; "": it can't be.
    """

    approval: str
    call: CallId
    question: str
    until: int | None = None
    about: str = ""


@event("approval/answer", ignorable=True)
class ApprovalAnswered(EventData):
    """A question is closed.

    Attributes:
        approval: its id.
        allow: whether the call may run.
        outcome: how it came to that.
        reason: why it may not, in words.
        by: who answered, in a word.
        remember: how long the answer holds for further calls that are about the same; None: it
            holds for this call alone.
    """

    approval: str
    allow: bool
    outcome: Outcome
    reason: str = ""
    by: str = ""
    remember: Remember | None = None


@event("approval/forgotten", ignorable=True)
class ApprovalsForgotten(EventData):
    """Answers that were given before hold no longer.

    Attributes:
        about: what they are about; None: all of them.
    """

    about: str | None = None


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
    """

    agent: Agent
    asked: ApprovalRequested
    tool: str
    arguments: str
    _answer: ApprovalAnswered | None = None
    _came: trio.Event = attrs.field(factory=trio.Event)

    @property
    def answer(self) -> ApprovalAnswered | None:
        """The answer; None: it is still open."""
        return self._answer

    async def wait(self) -> ApprovalAnswered:
        """Wait for the answer. A checkpoint."""
        await self._came.wait()
        assert self._answer is not None  # given together with the event
        return self._answer

    def give(self, answer: ApprovalAnswered) -> None:
        """Record the answer and tell who waits."""
        self._answer = answer
        self.agent.session.append(answer)
        self._came.set()


class Approvals:
    """An approver that keeps questions open until somebody answers.

    Args:
        timeout_s: how long a question waits before it counts as a no; None: for ever.
        clock: Unix milliseconds.

    Raises:
        InvalidInputError: `timeout_s` is no time.
    """

    def __init__(
        self,
        *,
        timeout_s: float | None = 300,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        or_none(positive)("timeout_s", timeout_s)
        if timeout_s == math.inf:
            raise InvalidInputError("timeout_s must be finite, not inf: None waits for ever")
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

    async def ask(self, agent: object, call: CallId, question: str, about: str = "") -> bool | str:
        """Open a question and wait for its answer. A checkpoint; cancelled, it is withdrawn.

        Args:
            agent: whose call.
            call: the call's id.
            question: what is asked.
            about: what the answer is about where it is remembered; "": it can't be.

        Returns:
            True: the call may run. False, or words that tell the model why: it may not.
        """
        if not isinstance(agent, Agent):
            return "its agent keeps no log to ask in"
        asked = self._opened(agent, call, question, about)
        try:
            with trio.move_on_after(math.inf if self._timeout_s is None else self._timeout_s):
                await asked.wait()
        except trio.Cancelled:
            self._close(asked, allow=False, outcome="withdrawn")
            raise
        answer = asked.answer or self._expired(asked)  # given in time, if only just
        return answer.allow or answer.reason or False

    def _opened(self, agent: Agent, call: CallId, question: str, about: str) -> OpenApproval:
        void(agent, frozenset(self._open))
        until = None if self._timeout_s is None else self._clock() + round(self._timeout_s * 1000)
        id = approval_id(agent.name, call, agent.session.folded(ASKED).get(call, 0))
        request = ApprovalRequested(id, call, question, until, about)
        agent.session.append(request)
        step = agent.session.state.step
        found = None if step is None else step.calls.get(call)
        name, arguments = ("", "") if found is None else (found.block.name, found.block.arguments)
        asked = self._open[request.approval] = OpenApproval(agent, request, name, arguments)
        self._tell()
        return asked

    def _expired(self, asked: OpenApproval) -> ApprovalAnswered:
        reason = f"nobody answered within {self._timeout_s:g} s: {asked.asked.question}"
        return self._close(asked, allow=False, outcome="expired", reason=reason)

    def answer(
        self,
        approval: str,
        *,
        allow: bool,
        reason: str = "",
        by: str = "",
        remember: Remember | None = None,
    ) -> ApprovalAnswered:
        """Answer an open question; synchronous. The first answer counts.

        Args:
            approval: the question's id.
            allow: whether the call may run.
            reason: why it may not; the model is told.
            by: who answers, in a word.
            remember: let the answer hold for further calls that are about the same, in the open
                turn or in the whole session; None: for this one alone.

        Raises:
            UnknownApprovalError: no such question is open.
            InvalidInputError: the question says of no further call what it is about.
        """
        asked = self._open.get(approval)
        if asked is None:
            raise UnknownApprovalError(f"no question {approval!r} is open")
        if remember is not None and not asked.asked.about:
            raise InvalidInputError(
                f"the answer to {approval!r} can't be remembered: answer it without remember="
            )
        return self._close(
            asked, allow=allow, outcome="answered", reason=reason, by=by, remember=remember
        )

    def forget(self, agent: Agent, about: str | None = None) -> None:
        """Take back answers that hold for an agent's further calls: it asks anew.

        Args:
            agent: whose calls.
            about: what the answer is about that is taken back, as its question says; None: all.

        Raises:
            AgentDisposedError: the agent's registration has ended.
        """
        agent.session.append(ApprovalsForgotten(about))

    def _close(
        self,
        asked: OpenApproval,
        *,
        allow: bool,
        outcome: Outcome,
        reason: str = "",
        by: str = "",
        remember: Remember | None = None,
    ) -> ApprovalAnswered:
        answer = ApprovalAnswered(asked.asked.approval, allow, outcome, reason, by, remember)
        if self._open.pop(answer.approval, None) is not None:
            asked.give(answer)
            self._tell()
        return answer

    def _tell(self) -> None:
        for observer in self._observers:
            observer()


def approval_id(session: SessionId, call: CallId, earlier: int = 0) -> str:
    """The id of a question about a call: derived, so that it means the same after a restart.

    Args:
        session: in whose log it is asked.
        call: the call.
        earlier: how many were asked about that call before, as where two policies ask.
    """
    return f"{session}.{call}" + (f".{earlier}" if earlier else "")


def _asked_in(counts: dict[CallId, int], event: Event) -> dict[CallId, int]:
    match event.data:
        case ApprovalRequested(call=call):
            return {**counts, call: counts.get(call, 0) + 1}
        case events.StepStarted() if counts:
            return {}
    return counts


ASKED: Fold[dict[CallId, int]] = Fold(dict, _asked_in)
"""How many questions were asked about each call of the last step."""


def decided(log: tuple[Event, ...], approval: str) -> ApprovalAnswered | None:
    """How a session's log says that a question was closed; None: it knows of no such thing."""
    for one in reversed(log):
        data = one.data
        if isinstance(data, ApprovalAnswered) and data.approval == approval:
            return data
        if isinstance(data, ApprovalRequested) and data.approval == approval:
            return None
    return None


def _open_in(known: frozenset[str], event: Event) -> frozenset[str]:
    match event.data:
        case ApprovalRequested(approval=approval):
            return known | {approval}
        case ApprovalAnswered(approval=approval):
            return known - {approval}
    return known


OPEN: Fold[frozenset[str]] = Fold(frozenset, _open_in)
"""The ids of the questions that a log leaves open."""


def void(agent: Agent, live: frozenset[str] = frozenset()) -> int:
    """Close the questions that a crash left open in an agent's log; how many there were.

    Args:
        agent: just resumed.
        live: ids of questions that do wait.
    """
    left = sorted(agent.session.folded(OPEN) - live)
    if left:
        agent.session.append(
            *(ApprovalAnswered(approval, allow=False, outcome="void") for approval in left)
        )
    return len(left)
