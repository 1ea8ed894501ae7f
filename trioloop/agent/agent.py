"""The handle on one live session: sending, asking, cancelling, disposing.

An idle agent is this handle and a folded log, no task. A waking send starts a supervisor, which
runs the driver in the agent's own nursery and turns idle in its last synchronous stretch (R9).
"""

import contextvars
from collections.abc import Callable
from typing import Literal

import trio

from trioloop.agent.announcing import Announcer
from trioloop.agent.driver import drive
from trioloop.agent.mailbox import Mailbox
from trioloop.agent.notifications import Disposed, Notifications, Settled, StatusChanged, Watch
from trioloop.agent.outside import FromThread
from trioloop.agent.resources import ModelSelection, Resources, Surroundings
from trioloop.agent.signal import TurnSignal, is_inside
from trioloop.agent.stuck import name_while_stuck
from trioloop.errors import (
    AgentBusyError,
    AgentDisposedError,
    DuplicateMessageError,
    InvalidInputError,
    QueueFullError,
    StoreError,
)
from trioloop.events import CallConfig, PendingMessage
from trioloop.hooks.dispatch import Registration
from trioloop.hooks.points import Hooks
from trioloop.ids import CallId, MessageId, SessionId
from trioloop.machine.inbox import insert
from trioloop.machine.turn import goes_on
from trioloop.messages import Content, MessageList, UserMessage, user_message
from trioloop.prompt import Prompt
from trioloop.session import Session
from trioloop.tools.call import RunningCall
from trioloop.tools.registry import ToolRegistry

Intent = Literal["by the rules", "go on", "stop"]


class Agent:
    """An agent of a runtime; made by `create_agent` and `resume_agent`."""

    __slots__ = (
        "_announcer",
        "_config",
        "_context",
        "_disposal",
        "_hooks",
        "_intent",
        "_nursery",
        "_prompt",
        "_resources",
        "_running_calls",
        "_signal",
        "_status",
        "_surroundings",
        "_tools",
        "_turned_idle",
        "session",
    )

    def __init__(
        self, session: Session, surroundings: Surroundings, config: CallConfig | None
    ) -> None:
        self.session = session
        self._surroundings = surroundings
        self._config = config
        self._context = contextvars.copy_context()
        self._status: Literal["idle", "running"] = "idle"
        self._intent: Intent = "by the rules"  # what a wake or a cancel asked for between turns
        self._signal: TurnSignal | None = None
        self._nursery: trio.Nursery | None = None
        self._resources: Resources | None = None
        self._running_calls: dict[CallId, RunningCall] | None = None
        self._turned_idle: trio.Event | None = None  # made only while somebody waits
        self._disposal: trio.Event | None = None  # made when disposal begins, set when it is over
        self._hooks: Hooks | None = None
        self._tools: ToolRegistry | None = None
        self._prompt: Prompt | None = None
        self._announcer = Announcer(session, surroundings)
        session.on_failure = self._store_failed

    def __repr__(self) -> str:
        return f"<Agent {self.name!r} {self._status}>"

    # What it is

    @property
    def name(self) -> SessionId:
        """The name of its session."""
        return self.session.name

    @property
    def status(self) -> Literal["idle", "running"]:
        """Whether it works (S2)."""
        return self._status

    @property
    def turn(self) -> TurnSignal | None:
        """The open turn: its number, and why it was cancelled if it was; None: no turn is open."""
        return self._signal if self._signal is not None and self._signal.open else None

    @property
    def inbox(self) -> Mailbox:
        """The pending messages."""
        return Mailbox(self.session, self._check_open)

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

    # Sending

    def followup(self, content: Content | UserMessage) -> MessageId:
        """Send a message that opens a turn of its own; as `send` to next-turn."""
        return self.send(content, target="next-turn")

    def steer(self, content: Content | UserMessage) -> MessageId:
        """Send a message that joins at the next step boundary; as `send` to next-step."""
        return self.send(content, target="next-step")

    def inject(self, content: Content | UserMessage) -> MessageId:
        """Send a message that joins at the next step boundary and wakes nobody."""
        return self.send(content, target="next-step", wakeup=False)

    @trio.lowlevel.enable_ki_protection
    def send(
        self,
        message: Content | UserMessage,
        *,
        target: MessageList = "next-turn",
        wakeup: bool = True,
    ) -> MessageId:
        """Send a message: one event in the log, or an error and no change (I1).

        Plain and synchronous, on the Trio thread; from elsewhere use `from_thread` or `send_soon`.

        Args:
            message: text, blocks, or a `UserMessage` with an id or a source of its own.
            target: the list that it joins. A waking message sent after the open turn was cancelled
                goes to next-turn and opens a turn when that one has closed (I4).
            wakeup: whether it wakes an idle agent.

        Returns:
            The message's id.

        Raises:
            AgentDisposedError: the agent's registration has ended.
            DuplicateMessageError: the id is known already; so a send may be repeated safely.
            InvalidInputError: the message is empty or too large.
            QueueFullError: the inbox is full.
        """
        self._check_open()
        composed = self._composed(message)
        late = wakeup and self.turn is not None and self.turn.scope.cancel_called
        pending = PendingMessage(composed, wakeup=wakeup, after_cancel=late)
        self.session.append(
            insert(self.session.state.inbox, "next-turn" if late else target, pending)
        )
        if wakeup:
            self._wake(explicit=False)
        return composed.id

    @property
    def from_thread(self) -> FromThread:
        """The same sends for threads that Trio started: they block for the answer."""
        return FromThread(self, self._surroundings.token)

    def send_soon(
        self,
        message: Content | UserMessage,
        *,
        target: MessageList = "next-turn",
        wakeup: bool = True,
    ) -> None:
        """Send from any thread, a signal handler or a guest-mode host; never blocks.

        What `send` would raise is logged.
        """
        FromThread(self, self._surroundings.token).send_soon(message, target=target, wakeup=wakeup)

    def _composed(self, message: Content | UserMessage) -> UserMessage:
        given = message if isinstance(message, UserMessage) else user_message(message)
        limits = self._surroundings.limits
        state = self.session.state
        if given.id and given.id in state.fates:
            raise DuplicateMessageError(given.id, str(state.fates[given.id]))
        if len(state.inbox) >= limits.queue_messages_max:
            raise QueueFullError(
                f"{self.name!r} has {len(state.inbox)} pending messages, its limit "
                "(queue_messages_max): send again when some are done"
            )
        size = sum(len(getattr(block, "text", "")) for block in given.content)
        if size > limits.message_bytes_max:
            raise InvalidInputError(
                f"a message of {size} characters is over message_bytes_max "
                f"({limits.message_bytes_max}): put it into a file and name that"
            )
        if given.id:
            return given
        return UserMessage(given.content, self._surroundings.ids.message(), given.source)

    def _check_open(self) -> None:
        if self._disposal is not None:
            raise AgentDisposedError(
                f"{self.name!r} was disposed of: resume_agent({self.name!r}) makes a new handle"
            )

    # Working

    @trio.lowlevel.enable_ki_protection
    def wake(self) -> None:
        """Go on with what is pending, if anything is (I5).

        Raises:
            AgentDisposedError: the agent's registration has ended.
        """
        self._check_open()
        if len(self.session.state.inbox):
            self._wake(explicit=True)

    @trio.lowlevel.enable_ki_protection
    def cancel(self, cause: str = "user", *, discard_inbox: bool = False) -> None:
        """Cancel the open turn; with no turn open, drop a wake that has not opened one yet (I3).

        Synchronous and idempotent; the first cause stands.

        Args:
            cause: why, in a word; it becomes the turn's cause.
            discard_inbox: drop what is pending, too, next-step first.
        """
        signal = self.turn
        if signal is None:
            self._intent = "stop" if self._status == "running" else self._intent
        else:
            signal.keeps_inbox = signal.keeps_inbox and not discard_inbox
            if not signal.scope.cancel_called and self._nursery is not None:
                self._nursery.start_soon(name_while_stuck, self, signal)
            signal.cancel(cause)
        if discard_inbox and self._disposal is None:
            self.inbox.clear()

    def cancel_call(self, call: CallId) -> bool:
        """Cancel one call of the running batch (T12); False: there is no such call."""
        running = (self._running_calls or {}).get(call)
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
        message = self._composed(content)
        with self._announcer.askers.expecting(message.id) as answer:
            self.send(message)
            try:
                return await answer.wait()
            except trio.Cancelled:
                if cancel_turn:
                    self._withdraw(message.id, claimed=answer.claimed)
                raise

    def _withdraw(self, id: MessageId, *, claimed: bool) -> None:
        if self.session.state.inbox.find(id) is not None:
            if self._disposal is None:
                self.inbox.remove(id)
        elif claimed:
            self.cancel("asker-cancelled")

    async def wait_idle(self) -> None:
        """Wait until the agent is idle. A checkpoint.

        Raises:
            AgentBusyError: called from inside the agent's own turn.
        """
        self._check_outside("wait_idle")
        while self._status == "running":
            if self._turned_idle is None:
                self._turned_idle = trio.Event()
            await self._turned_idle.wait()
        await trio.lowlevel.checkpoint()

    def _check_outside(self, what: str) -> None:
        if is_inside(self._signal):
            raise AgentBusyError(
                f"{what} was called from inside turn {self._signal and self._signal.turn} of "
                f"{self.name!r}, which it would wait for: use followup or steer there"
            )

    # Watching

    def on(self, kind: str, listener: Callable[[object], None]) -> Registration:
        """Call `listener(notification)` for each notification of a kind; `*` is every kind.

        Raises:
            InvalidInputError: there is no such kind.
        """
        return self.notifications.on(kind, listener)

    def watch(self) -> Watch:
        """Live notifications, from now on: a context manager that gives an async iterator."""
        return self.notifications.watch()

    # The end

    async def dispose(self, *, discard_inbox: bool = False) -> None:
        """End the registration: cancel, wait, flush, deregister (I7).

        A checkpoint; the disposal goes on when the caller is cancelled. From inside the agent's
        own turn it returns at once, and the disposal is done when the turn has closed.
        """
        disposal = self.begin_disposal("disposed", discard_inbox=discard_inbox)
        if is_inside(self._signal):
            await trio.lowlevel.checkpoint()
        else:
            await disposal.wait()

    @trio.lowlevel.enable_ki_protection
    def begin_disposal(self, cause: str, *, discard_inbox: bool = False) -> trio.Event:
        """Cancel with a cause and let the rest follow; the event is set when it is done."""
        if self._disposal is None:
            self.cancel(cause, discard_inbox=discard_inbox)
            self._disposal = trio.Event()
            self._surroundings.nursery.start_soon(self._finish_disposal, self._disposal)
        return self._disposal

    async def _finish_disposal(self, over: trio.Event) -> None:
        limits = self._surroundings.limits
        # A disposal that began must end, host cancel or not. Bounded: the driver closes within
        # grace_s + post_s + close_s, but for a body that swallows its cancel (T13).
        with trio.CancelScope(shield=True):
            await self.wait_idle()
            with trio.move_on_after(limits.close_s):
                await self.session.release()
        self._surroundings.forget(self.name)
        self.notifications.send(Disposed(self.name))
        self.notifications.close()
        over.set()

    # For the driver

    @property
    def resources(self) -> Resources:
        """What the driver works with."""
        if self._resources is None:
            self._resources = self._made_resources()
        return self._resources

    def _made_resources(self) -> Resources:
        around = self._surroundings
        self._running_calls = {}
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
            running_calls=self._running_calls,
        )

    def wants_turn(self) -> bool:
        """Whether a further turn is to open (R4, I3, I4)."""
        state = self.session.state
        if self._disposal is not None or self._intent == "stop" or not len(state.inbox):
            return False
        if self._intent == "go on":
            return True
        return state.last_turn is not None and goes_on(state.last_turn, state.inbox)

    def turn_opens(self, signal: TurnSignal) -> None:
        """Take the signal of the turn that is about to open."""
        self._signal = signal
        self._intent = "by the rules"

    def chain_settled(self, settled: Settled) -> None:
        """Tell the outcome of a chain of turns."""
        self._announcer.settled(settled)

    def _wake(self, *, explicit: bool) -> None:
        """Start the driver, or let the one that runs look again.

        In an open turn a waking message speaks for itself (R4, I4); only an explicit wake is kept.
        """
        if explicit or self.turn is None:
            self._intent = "go on"
        if self._status == "idle":
            self._status = "running"
            self._announcer.tell(StatusChanged("running"))
            nursery = self._surroundings.nursery
            self._context.run(
                lambda: nursery.start_soon(self._supervise, name=f"agent {self.name}")
            )

    async def _supervise(self) -> None:
        fault: Exception | None = None
        try:
            while True:
                async with trio.open_nursery() as self._nursery:
                    try:
                        await drive(self)
                    except Exception as error:  # a fault of our own: told below, never lost
                        fault = error
                    finally:
                        self._nursery.cancel_scope.cancel()
                if fault is not None or self.session.failure or not self.wants_turn():
                    return
        finally:
            self._turn_idle(fault)

    @trio.lowlevel.enable_ki_protection
    def _turn_idle(self, fault: Exception | None) -> None:
        """The last stretch of the supervisor: no await from its last look to here."""
        self._nursery = None
        self._resources = None
        self._intent = "by the rules"
        self._status = "idle"
        self._announcer.askers.driver_stopped(self.session.state.inbox, fault)
        self._announcer.tell(StatusChanged("idle"))
        if self._turned_idle is not None:
            self._turned_idle.set()
            self._turned_idle = None
        if fault is not None:
            self._surroundings.fault(self.name, fault)
            self.begin_disposal("disposed")

    def _store_failed(self, error: StoreError) -> None:
        if self.turn is not None:
            self.turn.fail_store(error)
