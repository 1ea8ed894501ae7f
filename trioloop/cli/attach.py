"""`trioloop attach`: `chat` on a served agent, from another terminal.

What is shown comes from the agent's log and its live notifications, so two terminals show the same.
"""

import math
import secrets
import signal
import sys
from contextlib import aclosing, suppress

import trio

from trioloop.agent.notifications import StatusChanged
from trioloop.cli.chat import LEAVE, TWICE_S, lines
from trioloop.cli.console import Output
from trioloop.cli.exits import OK, CommandError, ExitCode
from trioloop.cli.interrupts import Interrupts, cause_of, interruptible
from trioloop.control import Control, WireError, connect
from trioloop.control.client import Feed
from trioloop.control.results import AgentState
from trioloop.errors import TrioloopError
from trioloop.events import Event
from trioloop.plugins.approval import ApprovalAnswered, ApprovalRequested

_YES, _NO = frozenset(("y", "yes")), frozenset(("n", "no"))


async def attach(url: str, name: str | None, output: Output) -> ExitCode:
    """Talk with a served agent until the input ends, `/quit`, or Ctrl-C twice."""
    async with interruptible() as interrupts, connect(url, patience_s=10) as control:
        state = await _chosen(control, name)
        output.hint(f"attached to {state.agent}")
        conversation = _Conversation(control, state, output, interrupts)
        async with (
            control.subscribe(
                state.agent, after=state.durable_seq, opened=state.opened, live=True
            ) as feed,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(conversation.show, feed)
            await conversation.listen()
            nursery.cancel_scope.cancel()
    return interrupts.exit_code or OK if interrupts.scope.cancelled_caught else OK


async def _chosen(control: Control, name: str | None) -> AgentState:
    """The agent of that name, made or resumed; left out, the only live one, or a new one."""
    if name is None:
        live = [one for one in (await control.agents()).agents if one.status != "stored"]
        if len(live) > 1:
            names = ", ".join(one.agent for one in live)
            raise CommandError(f"several agents are live ({names}): choose one with --agent")
        name = live[0].agent if live else f"s{secrets.token_hex(6)}"
    try:
        return await control.create(name)
    except WireError as error:
        if error.code != "id_conflict":  # it began as a fork
            raise
        return await control.resume(name)


class _Conversation:
    """What a person types, and what a served agent does."""

    def __init__(
        self, control: Control, state: AgentState, output: Output, interrupts: Interrupts
    ) -> None:
        self._control = control
        self._agent = state.agent
        self._output = output
        self._interactive = sys.stdin.isatty()
        self._working = state.status == "running"
        self._idle = trio.Condition()
        self._question: ApprovalRequested | None = None
        self._interrupted_at = -math.inf
        self._cancels, self._asked_to_cancel = trio.open_memory_channel[str](1)
        interrupts.react = self._interrupted

    # What the agent does

    async def show(self, feed: Feed) -> None:
        """Show it until the agent is disposed of."""
        display = self._output.chat_display(trio.current_time())
        async for told in feed:
            display.feed(told, trio.current_time())
            if isinstance(told, Event):
                self._note(told)
            elif isinstance(told, StatusChanged):
                await self._turned(working=told.status == "running")
            await display.flush()
        self._output.hint(f"{self._agent} was disposed of")
        await self._turned(working=False)

    def _note(self, event: Event) -> None:
        if isinstance(event.data, ApprovalRequested):
            self._question = event.data
            self._output.hint(f"{event.data.question} [y/n]")
        elif isinstance(event.data, ApprovalAnswered):
            if event.data.outcome != "answered":
                self._output.hint(f"the question is closed: {event.data.outcome}")
            self._question = None

    async def _turned(self, *, working: bool) -> None:
        async with self._idle:
            self._working = working
            self._idle.notify_all()

    # What a person types

    async def listen(self) -> None:
        """Send what is typed, until the input ends or somebody leaves."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._cancel_when_asked)
            if self._interactive:
                self._output.hint("typing while it works steers; Ctrl-C cancels, twice leaves")
                self._output.prompt()
            async with aclosing(lines(sys.stdin.fileno())) as typed:
                async for line in typed:
                    if line.strip() in LEAVE:
                        break
                    await self._hear(line.strip())
            nursery.cancel_scope.cancel()

    async def _hear(self, line: str) -> None:
        if not line:
            return
        try:
            if self._question is not None and line.lower() in _YES | _NO:
                allow = line.lower() in _YES
                await self._control.answer(self._question.approval, allow=allow)
            elif self._interactive and self._working:
                await self._control.steer(self._agent, line)
            else:
                await self._control.followup(self._agent, line)
        except TrioloopError as error:
            self._output.complain(str(error))
        if not self._interactive:
            await self._wait_for_answer()

    async def _wait_for_answer(self) -> None:
        """Wait as a script has to: its lines are follow-ups, one after the other."""
        state = await self._control.status(self._agent)
        async with self._idle:
            self._working = state.status == "running"
            while self._working and self._question is None:
                await self._idle.wait()

    # Signals

    def _interrupted(self, number: int) -> bool:
        now = trio.current_time()
        soon = now - self._interrupted_at < TWICE_S
        if number != signal.SIGINT or not self._interactive or soon:
            return False
        self._interrupted_at = now
        self._output.end_line()
        if self._working:
            with suppress(trio.WouldBlock):
                self._cancels.send_nowait(cause_of(number))
        else:
            self._output.hint("Ctrl-C again leaves, and so does Ctrl-D; the agent goes on")
            self._output.prompt()
        return True

    async def _cancel_when_asked(self) -> None:
        async for cause in self._asked_to_cancel:
            await self._control.cancel(self._agent, cause=cause)
