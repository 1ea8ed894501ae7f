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
from trioloop.plugins.approval import ApprovalAnswered, ApprovalRequested, Remember

_ANSWERS = {"y": True, "yes": True, "n": False, "no": False}
_HELD: dict[str, Remember] = {"turn": "turn", "session": "session"}
_HOLDS = ' ("y turn", "n session": so long for calls like it, too; "/forget" takes that back)'
_FORGET = "/forget"


def _said(line: str) -> tuple[bool, Remember | None] | None:
    """Whether a line allows a call, and for how long all that are like it; None: no answer."""
    word, _, held = line.lower().partition(" ")
    if word not in _ANSWERS or (held and held not in _HELD):
        return None
    return _ANSWERS[word], _HELD.get(held)


async def attach(url: str, name: str | None, output: Output) -> ExitCode:
    """Talk with a served agent until the input ends, `/quit`, or Ctrl-C twice."""
    async with interruptible() as interrupts, connect(url, patience_s=10) as control:
        state = await _chosen(control, name)
        output.hint(f"attached to {state.agent}")
        conversation = _Conversation(control, state, output, interrupts)
        for waiting in await control.approvals():
            if waiting.agent == state.agent:
                conversation.ask(waiting.approval, waiting.question, waiting.about)
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
        live = await _live(control)
        if len(live) > 1:
            names = ", ".join(live)
            raise CommandError(f"several agents are live ({names}): choose one with --agent")
        name = live[0] if live else f"s{secrets.token_hex(6)}"
    try:
        return await control.create(name)
    except WireError as error:
        if error.code != "id_conflict":  # it began as a fork
            raise
        return await control.resume(name)


async def _live(control: Control) -> list[str]:
    """The names of the live agents, from all pages of the list."""
    names, page = list[str](), await control.agents()
    while True:
        names += [one.agent for one in page.agents if one.status != "stored"]
        if not page.more:
            return names
        page = await control.agents(after=page.agents[-1].agent)


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
        self._turnings = 0  # how often it began or ceased to work
        self._questions: dict[str, str] = {}  # those that wait, by their ids, the oldest first
        self._changed = trio.Condition()  # whether it works, or what it asks
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
                await self._note(told)
            elif isinstance(told, StatusChanged):
                await self._turned(working=told.status == "running")
            await display.flush()
        self._output.hint(f"{self._agent} was disposed of")
        await self._turned(working=False)

    async def _note(self, event: Event) -> None:
        data = event.data
        async with self._changed:
            if isinstance(data, ApprovalRequested):
                self.ask(data.approval, data.question, data.about)
            elif isinstance(data, ApprovalAnswered):
                self._close(data)
            self._changed.notify_all()

    def ask(self, approval: str, question: str, about: str) -> None:
        """Ask a person, behind the questions that wait already."""
        if approval not in self._questions:
            self._questions[approval] = f"{question} [y/n]{_HOLDS if about else ''}"
            if len(self._questions) == 1:
                self._show_question()

    def _close(self, answer: ApprovalAnswered) -> None:
        if answer.outcome != "answered":
            self._output.hint(f"the question is closed: {answer.outcome}")
        if self._questions.pop(answer.approval, None) is not None:
            self._show_question()

    def _show_question(self) -> None:
        if self._questions:
            self._output.hint(next(iter(self._questions.values())))

    async def _turned(self, *, working: bool) -> None:
        async with self._changed:
            self._working = working
            self._turnings += 1
            self._changed.notify_all()

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
            said = _said(line) if self._questions else None
            if line == _FORGET:
                await self._forget()
            elif said is not None:
                await self._answer(next(iter(self._questions)), said)
            elif self._interactive and self._working:
                await self._control.steer(self._agent, line)
            else:
                await self._control.followup(self._agent, line)
            if not self._interactive:
                await self._wait_for_answer()
        except TrioloopError as error:
            self._output.complain(str(error))

    async def _answer(self, approval: str, said: tuple[bool, Remember | None]) -> None:
        """Answer a question, and wait until the log says that it is closed."""
        allow, remember = said
        await self._control.answer(approval, allow=allow, remember=remember)
        async with self._changed:
            while approval in self._questions:
                await self._changed.wait()

    async def _forget(self) -> None:
        """Take back the answers that hold."""
        changed = await self._control.forget(self._agent)
        self._output.hint("it asks again" if changed else "no answer holds")

    async def _wait_for_answer(self) -> None:
        """Wait as a script has to: its lines are follow-ups, one after the other."""
        while not self._questions:
            seen = self._turnings  # before its status is asked for, which the feed may overtake
            if (await self._control.status(self._agent)).status == "idle":
                return
            async with self._changed:
                while self._turnings == seen and not self._questions:
                    await self._changed.wait()

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
