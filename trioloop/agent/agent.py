"""The handle on one live session: asking, cancelling, disposing. Sending is in `sending`.

A handle is registered from `create_agent` or `resume_agent` until it is disposed of (S1). What
works behind it is in `supervisor` and below; an idle agent is this handle and a folded log.
"""

from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

import trio

from trioloop.agent.announcing import Announcer
from trioloop.agent.aside import ask_aside
from trioloop.agent.closing import Closing
from trioloop.agent.mailbox import Mailbox
from trioloop.agent.notifications import Disposed, Settled
from trioloop.agent.resources import ModelSelection, Resources, Surroundings
from trioloop.agent.sending import Addressee
from trioloop.agent.signal import ASKER_CANCELLED, TurnSignal, is_inside
from trioloop.agent.supervisor import Supervisor
from trioloop.agent.watching import Listener, Notifications, Watch
from trioloop.codec import is_unicode
from trioloop.errors import AgentBusyError, InvalidInputError, NoPolicyError
from trioloop.events import AsideStarted, CallConfig
from trioloop.hooks.dispatch import Registration, run_waterfall
from trioloop.hooks.points import Compact, Hooks
from trioloop.ids import CallId, MessageId, SessionId
from trioloop.messages import Content, UserMessage, user_message
from trioloop.prompt import Prompt
from trioloop.session import Session
from trioloop.stream.assemble import Assembled
from trioloop.tools.registry import ToolRegistry

ResultT = TypeVar("ResultT")


class Agent(Addressee):
    """An agent of a runtime.

    Attributes:
        session: its log.
    """

    __slots__ = (
        "_announcer",
        "_config",
        "_hooks",
        "_prompt",
        "_tools",
    )

    def __init__(
        self,
        session: Session,
        surroundings: Surroundings,
        config: CallConfig | None,
        tools: ToolRegistry | None,
    ) -> None:
        self.session = session
        self._surroundings = surroundings
        self._config = config
        self._announcer = Announcer(session, surroundings)
        self._supervisor = Supervisor(
            session,
            self._announcer,
            self._make_resources,
            self._driver_failed,
            Closing(surroundings.limits, surroundings.closing),
        )
        self._disposal = None
        self._hooks: Hooks | None = None
        self._tools = tools
        self._prompt: Prompt | None = None

    def __repr__(self) -> str:
        return f"<Agent {self.name!r} {self.status}>"

    # What it is

    @property
    def name(self) -> SessionId:
        """The name of its session."""
        return self.session.name

    @property
    def status(self) -> Literal["idle", "running"]:
        """Whether it works (S2)."""
        return self._supervisor.status

    @property
    def turn(self) -> TurnSignal | None:
        """The open turn: its number, and why it was cancelled if it was; None: no turn is open."""
        return self._supervisor.turn

    @property
    def inbox(self) -> Mailbox:
        """The pending messages."""
        return Mailbox(self.session, self._check_open, self._surroundings.limits)

    @property
    def hooks(self) -> Hooks:
        """The hooks of this agent alone; the runtime's wrap them."""
        if self._hooks is None:
            self._hooks = Hooks()
        return self._hooks

    @property
    def tools(self) -> ToolRegistry:
        """The tools of this agent alone; they shadow the runtime's by name."""
        if self._tools is None:
            self._tools = ToolRegistry()
        return self._tools

    @property
    def prompt(self) -> Prompt:
        """The prompt sections of this agent alone; they shadow the runtime's by name."""
        if self._prompt is None:
            self._prompt = Prompt()
        return self._prompt

    @property
    def notifications(self) -> Notifications:
        """Where live facts about this agent are told."""
        return self._announcer.notifications

    # Working

    @trio.lowlevel.enable_ki_protection
    def wake(self) -> None:
        """Go on with what is pending, if anything is (I5).

        Raises:
            AgentDisposedError: the agent's registration has ended.
        """
        self._check_open()
        if len(self.session.state.inbox):
            self._supervisor.wake(self._surroundings.nursery, explicit=True)

    @trio.lowlevel.enable_ki_protection
    def cancel(self, cause: str = "user", *, discard_inbox: bool = False) -> None:
        """Cancel the open turn; with no turn open, drop a wake that has not opened one yet (I3).

        Synchronous and idempotent; the first cause stands.

        Args:
            cause: why, in a word; it becomes the turn's cause.
            discard_inbox: drop what is pending, too, next-step first.

        Raises:
            InvalidInputError: the cause is no text, or empty.
        """
        if not isinstance(cause, str) or not cause or not is_unicode(cause):
            raise InvalidInputError(f"cause= must be a word, not {cause!r}")
        self._supervisor.cancel(cause, keeps_inbox=not discard_inbox)
        if discard_inbox and self._disposal is None:
            self.inbox.clear()

    def cancel_call(self, call: CallId) -> bool:
        """Cancel one call of the running batch (T12); False: there is no such call."""
        if self.status == "idle":
            return False
        running = self._supervisor.resources.running_calls.get(call)
        if running is None:
            return False
        running.cancel()
        return True

    async def ask(self, content: Content | UserMessage, *, cancel_turn: bool = True) -> Settled:
        """Send a follow-up and wait for the outcome of the chain of turns that takes it (I6).

        A checkpoint. When it is cancelled, the message is removed if it is still pending, else
        its turn is cancelled.

        Args:
            content: text, blocks, or a `UserMessage`.
            cancel_turn: False leaves message and turn alone when this is cancelled.

        Raises:
            AgentBusyError: called from inside the agent's own turn.
            DiscardedError: the message was dropped before a turn took it.
            ParkedError: it is still pending, but the driver has stopped.
            AgentFailedError: the driver failed by a fault of trioloop's own.
            TrioloopError: whatever `send` raises.
        """
        self._check_outside("ask")
        self._check_open()
        message = self._composed(content)
        await trio.lowlevel.checkpoint_if_cancelled()  # before the message is sent
        askers = self._announcer.askers
        answer = askers.expect(message.id)
        try:
            self._deliver(message, "next-turn", wakeup=True)
            return await answer.wait()
        except trio.Cancelled:
            if cancel_turn:
                self._withdraw(message.id, claimed=answer.claimed)
            raise
        finally:
            askers.forget(message.id)

    def _withdraw(self, id: MessageId, *, claimed: bool) -> None:
        if self.session.state.inbox.find(id) is not None:
            if self._disposal is None:
                self.inbox.remove(id)
        elif claimed:
            self.cancel(ASKER_CANCELLED)

    async def wait_idle(self) -> None:
        """Wait until the agent is idle. A checkpoint.

        Raises:
            AgentBusyError: called from inside the agent's own turn.
        """
        self._check_outside("wait_idle")
        await self._supervisor.wait_idle()

    async def run_maintenance(self, job: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """Run `await job()` between turns: no turn is open, and none opens before it ends (I7).

        A checkpoint. A wake that comes meanwhile opens its turn afterwards.

        Raises:
            AgentBusyError: called from inside the agent's own turn.
            AgentDisposedError: the agent was disposed of, before or meanwhile.
            Exception: whatever the job raised.
        """
        self._check_outside("run_maintenance")
        self._check_open()
        return await self._supervisor.maintain(job)

    async def compact(self, focus: str = "") -> bool:
        """Have the history made shorter between turns, by the policies that are open for that.

        A checkpoint. A wake that comes meanwhile opens its turn afterwards.

        Args:
            focus: what must not get lost, in words.

        Returns:
            Whether it is shorter now.

        Raises:
            NoPolicyError: no policy is open that does it.
            AgentBusyError: called from inside the agent's own turn.
            AgentDisposedError: the agent was disposed of, before or meanwhile.
            Exception: whatever a policy raised.
        """
        self._check_outside("compact")
        hooks = [self._surroundings.hooks.compact, self.hooks.compact]
        if not any(hooks):
            raise NoPolicyError(
                "nobody can make the history shorter: open trioloop.plugins.compaction(runtime)"
            )

        async def nobody() -> bool:
            return False

        payload = Compact(self, focus)
        return await self.run_maintenance(lambda: run_waterfall(hooks, payload, nobody))

    async def aside(
        self,
        question: Content | UserMessage,
        *,
        history: tuple[int, int] | None = None,
        tools: bool = False,
    ) -> Assembled:
        """Ask the model something beside the conversation, with the settings of its last request.

        A checkpoint. Question and answer are in the log, but don't join the history. No hook sees
        them, no call of the answer runs, and nobody retries a failure.

        Args:
            question: text, blocks, or a `UserMessage`.
            history: seqs of the first and the last event whose nodes the model is shown before it.
            tools: whether it is told of the tools, as it was.

        Returns:
            The answer, with its finish and usage.

        Raises:
            InvalidInputError: the agent has asked nothing yet, or the history has no such part.
            ModelFailure: there is no answer.
            StoreFailedError: the store failed, so nobody was asked.
        """
        self._check_open()
        asked = question if isinstance(question, UserMessage) else user_message(question)
        selection = ModelSelection(self._surroundings.models, self._config)
        return await ask_aside(self.session, selection, AsideStarted(asked, history, tools))

    def _check_outside(self, what: str) -> None:
        turn = self.turn
        if turn is not None and is_inside(turn):
            raise AgentBusyError(
                f"{what} was called from inside turn {turn.turn} of {self.name!r}, which it would "
                "wait for: use followup or steer there"
            )

    # Watching

    def on(self, kind: str, listener: Listener) -> Registration:
        """Call `listener(notification)` for each notification of a kind; `*` is every kind.

        Raises:
            InvalidInputError: there is no such kind.
        """
        return self.notifications.on(kind, listener)

    def watch(self, *, whole_attempt: bool = False) -> Watch:
        """Live notifications, from now on: a context manager that gives an async iterator.

        Args:
            whole_attempt: begin with what the running attempt, if any, has streamed so far.
        """
        return self.notifications.watch(whole_attempt=whole_attempt)

    # The end

    async def dispose(self, *, discard_inbox: bool = False) -> None:
        """End the registration: cancel, wait, flush, deregister (I7).

        A checkpoint; the disposal goes on when the caller is cancelled. From inside the agent's
        own turn it returns at once, and the disposal is done when the turn has closed.
        """
        over = self.begin_disposal("disposed", discard_inbox=discard_inbox)
        if self.turn is not None and is_inside(self.turn):
            await trio.lowlevel.checkpoint()
        else:
            await over.wait()

    @trio.lowlevel.enable_ki_protection
    def begin_disposal(self, cause: str, *, discard_inbox: bool = False) -> trio.Event:
        """Cancel with a cause and let the rest follow; the event is set when it is done."""
        if self._disposal is None:
            self.cancel(cause, discard_inbox=discard_inbox)
            self._supervisor.leave()
            self._supervisor.closing.begin()
            self._disposal = trio.Event()
            self._surroundings.nursery.start_soon(self._finish_disposal, self._disposal)
        return self._disposal

    async def _finish_disposal(self, over: trio.Event) -> None:
        # A disposal that began must end, host cancel or not. Bounded: the driver closes within
        # grace_s + post_s + close_s, but for a body that swallows its cancel (T13).
        with trio.CancelScope(shield=True):
            await self._supervisor.wait_idle()
            await self._supervisor.maintain_nothing()
            by = self._supervisor.closing.flushed_by
            with trio.move_on_at(by):
                await self.session.release(by=by)
        self._surroundings.forget(self.name)
        self._announcer.tell(Disposed(self.name))
        self._announcer.close()
        over.set()

    # For the runtime and the supervisor

    def end_interrupted_turn(self) -> None:
        """Start on what a dead process left open, if it was left for the driver to close (D4)."""
        if self.session.state.turn is not None:
            self._supervisor.reopen(self._surroundings.nursery)

    def _make_resources(self) -> Resources:
        around = self._surroundings
        return Resources(
            agent=self,
            session=self.session,
            hooks=(around.hooks, self.hooks),
            prompts=(around.prompt, self.prompt),
            tools=(around.tools, self.tools),
            selection=ModelSelection(around.models, self._config),
            limits=around.limits,
            notifications=self.notifications,
            ids=around.ids,
            threads=around.threads,
            places=around.places,
            approver=around.approver,
            running_calls={},
            stuck=around.stuck,
            host_cause=around.host_cause,
        )

    def _driver_failed(self, error: Exception) -> None:
        self._surroundings.fault(self.name, error)
        self.begin_disposal("disposed")
