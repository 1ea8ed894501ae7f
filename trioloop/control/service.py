"""What all connections of an endpoint share: the runtime, its open questions, what changed."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from weakref import WeakValueDictionary

import attrs
import msgspec
import trio

from trioloop.agent.agent import Agent
from trioloop.agent.notifications import Notification
from trioloop.control.bodies import Bodies
from trioloop.control.changes import Changed, Changes
from trioloop.control.faults import WireError
from trioloop.control.limits import ControlLimits
from trioloop.control.remembered import Remembered
from trioloop.control.results import AgentState, Approval, OpenTurn, RuntimeState
from trioloop.control.subscriptions import Audience
from trioloop.errors import SessionExistsError, SessionLockedError
from trioloop.events import SessionOpened
from trioloop.ids import SessionId, session_id
from trioloop.plugins.approval import Approvals, OpenApproval, void
from trioloop.runtime.runtime import Runtime

_KINDS = ("created", "disposed", "status", "inserted", "claimed", "discarded", "settled")


@attrs.frozen(eq=False)
class Service:
    """What an endpoint serves.

    Attributes:
        runtime: whose agents.
        limits: of the endpoint.
        approvals: the open questions; None: the runtime asks nobody.
        bodies: the running tool bodies.
        remembered: the outcomes of commands that may come again.
        audience: what its subscriptions share.
        changes: of agents and questions.
    """

    runtime: Runtime
    limits: ControlLimits
    approvals: Approvals | None
    bodies: Bodies
    remembered: Remembered
    audience: Audience
    changes: Changes = attrs.field(factory=Changes)
    _opening: WeakValueDictionary[SessionId, trio.Lock] = attrs.field(
        factory=WeakValueDictionary, init=False
    )

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the runtime while the block is open."""
        with ExitStack() as watched:
            for kind in _KINDS:
                watched.enter_context(self.runtime.on(kind, self._note))
            if self.approvals is not None:
                watched.enter_context(self.approvals.observe(self.changes.note_questions))
            watched.enter_context(self.bodies.watching())
            yield

    def _note(self, told: Notification) -> None:
        self.changes.note(told.agent)

    def agent(self, name: str) -> Agent:
        """A live agent.

        Raises:
            WireError: `not_found`: there is none of that name, or no agent may have it.
        """
        agent = self.runtime.agents.get(SessionId(name))
        if agent is None:
            raise WireError("not_found")
        return agent

    async def live(self, name: str) -> Agent:
        """A live agent; one that is only stored is resumed, which starts nothing. A checkpoint.

        Raises:
            WireError: `not_found`: there is none of that name, or no agent may have it.
            SessionLockedError: another process writes it.
        """
        chosen = self.name(name)
        known = self.runtime.agents.get(chosen)
        return known if known is not None else await self._resumed(chosen)

    async def _resumed(self, name: SessionId) -> Agent:
        async with self.opening(name):
            known = self.runtime.agents.get(name)
            if known is not None:  # another client was faster
                return known
            try:
                agent = await self.runtime.resume_agent(name)
            except (SessionExistsError, SessionLockedError):
                if name in self.runtime.agents:  # so was the program that serves
                    return self.runtime.agents[name]
                raise
            if self.approvals is not None:
                void(agent, frozenset(one.asked.approval for one in self.approvals.open))
            return agent

    def opening(self, name: SessionId) -> trio.Lock:
        """Held by whoever makes an agent live, so that others find it instead of being refused."""
        lock = self._opening.get(name)
        if lock is None:
            lock = self._opening[name] = trio.Lock()
        return lock

    def name(self, text: str, *, field: str | None = None) -> SessionId:
        """A name that a session may have.

        Raises:
            WireError: `invalid_params` for a field that is to name a new one, else `not_found`.
        """
        try:
            return session_id(text)
        except ValueError:
            if field is None:
                raise WireError("not_found") from None
            raise WireError("invalid_params", field=field) from None

    def state(self, agent: Agent) -> AgentState:
        """An agent as it is now."""
        session, turn = agent.session, agent.turn
        return AgentState(
            agent=agent.name,
            status=agent.status,
            turn=None if turn is None else OpenTurn(number=turn.turn, cause=turn.cause),
            seq=session.seq,
            durable_seq=session.durable_seq,
            opened=opened_at(agent),
            pending=len(session.state.inbox),
            bodies=self.bodies.of(agent),
        )

    def open_approvals(self) -> tuple[Approval, ...]:
        """The questions that wait, the oldest first."""
        return tuple(map(_told, self.approvals.open)) if self.approvals is not None else ()

    def runtime_state(self, changed: Changed) -> RuntimeState:
        """What has changed, as it is now."""
        live = self.runtime.agents
        told = live.keys() if changed.everything else changed.agents
        return RuntimeState(
            whole=changed.everything,
            agents=tuple(self.state(live[name]) for name in sorted(told) if name in live),
            gone=tuple(sorted(told - live.keys())),
            approvals=self.open_approvals() if changed.questions else None,
        )


def opened_at(agent: Agent) -> int:
    """When an agent's session was opened, in Unix milliseconds."""
    opened = agent.session.state.session
    return opened.created if isinstance(opened, SessionOpened) else 0


def _told(asked: OpenApproval) -> Approval:
    question = asked.asked
    try:
        arguments = msgspec.json.decode(asked.arguments or "{}", type=dict)
    except msgspec.MsgspecError:  # a model may have written anything
        arguments = {}
    return Approval(
        approval=question.approval,
        agent=asked.agent.name,
        call=question.call,
        tool=asked.tool,
        arguments=arguments,
        question=question.question,
        until=question.until,
        about=question.about,
    )
